// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_remedies_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/units.h"

// Time that malloc_trim takes, about: for each chunk that it walks over, and for each page that
// goes back.
enum { CHUNK_NS = 20, TRIMMED_PAGE_NS = 150 };

static const struct {
    const char *key, *title;
    const char *cost, *apply;  // NULL, as of `title`: told with a figure
} words[REMEDIES] = {
    [REMEDY_TRIM] = {"malloc_trim", "malloc_trim(0)", NULL,
                     "malloc_trim(0) in the program, when it is idle"},
    [REMEDY_PIN] = {"pinned_end", NULL, "nothing beyond what frees the block", NULL},
    [REMEDY_LAZY] = {"lazily_freed", "pages given back by MADV_FREE, still counted", "nothing",
                     "no need: the kernel takes it when memory is short"},
    [REMEDY_ONE_ARENA] = {"one_arena", "MALLOC_ARENA_MAX=1", NULL,
                          "MALLOC_ARENA_MAX=1 in its environment, at the next start"},
    [REMEDY_TWO_ARENAS] = {"two_arenas", "MALLOC_ARENA_MAX=2", NULL,
                           "MALLOC_ARENA_MAX=2 in its environment, at the next start"},
    [REMEDY_THRESHOLD] = {"threshold", NULL,
                          "a mapping, and new pages, for each block of 128 KiB or more",
                          "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072, at the next start"},
    [REMEDY_PURGE] = {"purge", NULL, "a page comes back, by a fault, when it is used again", NULL},
    [REMEDY_DECAY] = {"decay", NULL, "a system call, and new pages, where whole pages were freed",
                      NULL},
    [REMEDY_CACHES] = {"caches", NULL, "a lock at each malloc and free", NULL},
    [REMEDY_HUGE_PAGES] = {"huge_pages", NULL, "more misses of the TLB",
                           "prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) before it allocates"},
    [REMEDY_ALLOCATOR] = {"allocator", NULL, "not known without a log",
                          "cairn run --events PROGRAM, then cairn whatif"},
};

// Calls and settings of other allocators: what each is called, and how it is applied.
static const struct {
    const char *name;
    struct {
        const char *title, *apply;
    } words[REMEDY_CACHES - REMEDY_PURGE + 1];
} others[] = {
    {"jemalloc",
     {{"mallctl(\"arena.4096.purge\")",
       "mallctl(\"arena.4096.purge\", NULL, NULL, NULL, 0) in the program, when it is idle"},
      {"MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0",
       "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0 in its environment, at the next start"},
      {"MALLOC_CONF=tcache:false",
       "MALLOC_CONF=tcache:false in its environment, at the next start"}}},
    {"mimalloc",
     {{"mi_collect(true)", "mi_collect(true) in each of its threads, when they are idle"},
      {"MIMALLOC_DECOMMIT_DELAY=0",
       "MIMALLOC_DECOMMIT_DELAY=0 in its environment, at the next start"},
      {NULL, NULL}}},
    {"tcmalloc",
     {{"MallocExtension_ReleaseFreeMemory()",
       "MallocExtension_ReleaseFreeMemory() in the program, when it is idle"},
      {"TCMALLOC_AGGRESSIVE_DECOMMIT=true",
       "TCMALLOC_AGGRESSIVE_DECOMMIT=true in its environment, at the next start"},
      {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=524288",
       "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=524288 in its environment, at the next start"}}},
};

static const char *other_words(const struct remedy *remedy, const struct remedy_facts *facts,
                               bool are_title) {
    if (remedy->kind < REMEDY_PURGE || remedy->kind > REMEDY_CACHES) return NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].name, facts->other.name))
            return are_title ? others[i].words[remedy->kind - REMEDY_PURGE].title
                             : others[i].words[remedy->kind - REMEDY_PURGE].apply;
    return NULL;
}

const char *core_remedy_key(const struct remedy *remedy) {
    return words[remedy->kind].key;
}

const char *core_remedy_class(const struct remedy *remedy) {
    static const char *const names[] = {
        [REMEDY_NOW] = "now", [REMEDY_AT_MOST] = "at most", [REMEDY_NEEDS_LOG] = "needs a log"};
    return names[remedy->class];
}

void core_remedy_title(const struct remedy *remedy, const struct remedy_facts *facts,
                       char title[REMEDY_TITLE_BYTES]) {
    const struct arena_free *pinned = remedies_pinned(&facts->giveback);
    const char *of_other = other_words(remedy, facts, true);
    if (words[remedy->kind].title || of_other)
        snprintf(title, REMEDY_TITLE_BYTES, "%s", of_other ? of_other : words[remedy->kind].title);
    else if (remedy->kind == REMEDY_THRESHOLD)
        snprintf(title, REMEDY_TITLE_BYTES, "M_MMAP_THRESHOLD fixed at 128 KiB (now %s)",
                 units_size((int64_t)facts->giveback.parameters.mmap_threshold).text);
    else if (remedy->kind == REMEDY_HUGE_PAGES)
        snprintf(title, REMEDY_TITLE_BYTES, "no transparent huge pages (now %s)",
                 units_size((int64_t)huge_pages_bytes(&facts->huge)).text);
    else if (remedy->kind == REMEDY_ALLOCATOR)
        snprintf(title, REMEDY_TITLE_BYTES, "another allocator (%s are free now)",
                 units_size((int64_t)remedy->bytes).text);
    else
        snprintf(title, REMEDY_TITLE_BYTES,
                 "free the block at 0x%" PRIx64 ", the last of its arena",
                 pinned ? pinned->pin.address : 0);
}

static uint64_t trim_ns(const struct remedy_facts *facts, uint64_t page_bytes) {
    struct giveback_sum sum = giveback_sum(&facts->giveback);
    return sum.chunk_count * CHUNK_NS + sum.trim_bytes / page_bytes * TRIMMED_PAGE_NS;
}

void core_remedy_cost(const struct remedy *remedy, const struct remedy_about *about,
                      char text[REMEDY_WORDS_BYTES]) {
    enum { PAGE_USUAL = 4096 };
    const struct remedy_facts *facts = about->facts;
    size_t arenas = facts->giveback.arenas.count;
    if (words[remedy->kind].cost)
        snprintf(text, REMEDY_WORDS_BYTES, "%s", words[remedy->kind].cost);
    else if (remedy->kind == REMEDY_TRIM)
        snprintf(text, REMEDY_WORDS_BYTES,
                 "%s about %s in all; a page comes back when it is used again",
                 arenas > 1 ? "the lock of each arena in turn," : "malloc's lock for",
                 units_duration(trim_ns(facts, PAGE_USUAL)).text);
    else
        snprintf(text, REMEDY_WORDS_BYTES,
                 "threads wait for each other in malloc: it has %zu arena%s now", arenas,
                 arenas == 1 ? "" : "s");
}

void core_remedy_apply(const struct remedy *remedy, const struct remedy_about *about,
                       char text[REMEDY_WORDS_BYTES]) {
    const struct arena_free *pinned = remedies_pinned(&about->facts->giveback);
    const char *of_other = other_words(remedy, about->facts, false);
    if (remedy->kind == REMEDY_ALLOCATOR && *about->obstacle)
        snprintf(text, REMEDY_WORDS_BYTES, "a log of its events cannot be had: %.200s",
                 about->obstacle);
    else if (of_other)
        snprintf(text, REMEDY_WORDS_BYTES, "%s", of_other);
    else if (words[remedy->kind].apply)
        snprintf(text, REMEDY_WORDS_BYTES, "%s", words[remedy->kind].apply);
    else if (!about->name)
        snprintf(text, REMEDY_WORDS_BYTES, "free it, or allocate it before what is free below it");
    else
        snprintf(text, REMEDY_WORDS_BYTES, "cairn core %s describe 0x%" PRIx64 " says what it is",
                 about->name, pinned ? pinned->pin.address : 0);
}

void core_remedy_sure(const struct remedy *remedy, const struct remedy_about *about,
                      char text[REMEDY_WORDS_BYTES]) {
    const struct remedy_facts *facts = about->facts;
    bool is_cut = giveback_sum(&facts->giveback).is_cut;
    const char *how = "";
    if (remedy->kind == REMEDY_TRIM && facts->is_locked)
        how = "its memory is locked (mlock), the kernel keeps all but the end of the heap";
    else if (facts->is_core)
        how = "a core does not say what was resident: all of it counts as if it was";
    else if (remedy->kind == REMEDY_PIN)
        how = "if it goes past the threads' caches; part of what malloc_trim gives back";
    else if (remedy->class == REMEDY_NEEDS_LOG)
        how = "free now, whoever allocates";
    else if (remedy->kind == REMEDY_HUGE_PAGES)
        how = "it cannot be more than this: what of those pages was never written, or holds zeros";
    else if (remedy->kind == REMEDY_THRESHOLD)
        how = "it cannot be more than this, and may be nothing; large blocks may have left";
    else if (remedy->class == REMEDY_AT_MOST)
        how = "it cannot be more than this, and may be nothing";
    else if (is_cut)
        how = "at least: some of the heap changed while it was read";
    else
        how = about->is_stopped ? "exact, as it stood" : "as it was read while the process went on";
    snprintf(text, REMEDY_WORDS_BYTES, "%s", how);
    if (remedy->kind == REMEDY_THRESHOLD && !facts->is_core)
        snprintf(text, REMEDY_WORDS_BYTES, "%s %s of it: free in pieces of 128 KiB or more", how,
                 units_size((int64_t)remedy->piece_bytes).text);
}
