// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_remedies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_remedies_pin.h"
#include "tool/cmds/core_sets.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/views.h"
#include "tool/watch/free_chunks.h"
#include "tool/watch/program.h"

enum { TEXT_BYTES = 256, PROC_PATH_BYTES = 32, PROC_BYTES = 8192, KIB = 1024, PERCENT = 100 };

// Time that malloc_trim takes, about: for each chunk that it walks over, and for each page that
// goes back.
enum { CHUNK_NS = 20, TRIMMED_PAGE_NS = 150 };

// Above so many percent of what is resident glibc's malloc is what a process consists of.
enum { MOSTLY_MALLOC = 40 };

// --- what is known

static uint64_t field_bytes(pid_t pid, const char *file, const char *key) {
    char text[PROC_BYTES];
    process_read(pid, file, text, sizeof text);
    return strtoull(process_field(text, key), NULL, 10) * KIB;
}

void core_remedies_facts(pid_t pid, const struct rss_parts *resident, struct remedy_facts *facts) {
    facts->rss_bytes = resident->picture.rss_bytes;
    facts->anonymous_bytes = resident->picture.heap_bytes;
    facts->huge_bytes = resident->picture.huge_bytes;
    facts->lazy_bytes = field_bytes(pid, "smaps_rollup", "LazyFree");
    facts->is_locked = field_bytes(pid, "status", "VmLck") > facts->rss_bytes / 2;
}

bool core_remedies_read_running(pid_t pid, const struct rss_parts *resident,
                                struct remedy_facts *facts) {
    const struct mapped_range *data = &resident->libc_data;
    facts->has_giveback =
        data->start &&
        free_chunks_giveback(pid, data->start, data->end, FREE_CHUNKS_LONG_NS, &facts->giveback);
    return facts->has_giveback;
}

static uint64_t resident_in_look(void *context, uint64_t start, uint64_t end) {
    const struct heap_look *look = context;
    return look->is_core ? end - start : stopped_resident_bytes(&look->live, start, end);
}

static void find_parameters(const struct memory_view *view, struct giveback *giveback) {
    for (size_t i = 0; i < view->segment_count && !giveback->has_parameters; i++) {
        const struct memory_segment *segment = &view->segments[i];
        if (!segment->is_writable) continue;
        giveback->has_parameters = malloc_parameters_find(
            &view->reader, segment->start, segment->start + segment->bytes, &giveback->parameters);
    }
}

bool core_remedies_read_heap(const struct heap_look *look, const struct glibc_heap *heap,
                             struct remedy_facts *facts) {
    const struct memory_view view = core_view(look->core);
    const struct resident_source resident = {resident_in_look, (void *)(uintptr_t)look,
                                             core_page_bytes(look->core)};
    facts->is_core = look->is_core;
    find_parameters(&view, &facts->giveback);
    facts->has_giveback = giveback_of_heap(heap, &view.reader, &resident, &facts->giveback);
    return facts->has_giveback;
}

// --- the words

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
    [REMEDY_HUGE_PAGES] = {"huge_pages", "no transparent huge pages", "more misses of the TLB",
                           "prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) before it allocates"},
    [REMEDY_ALLOCATOR] = {"allocator", NULL, "not known without a log",
                          "cairn run --events PROGRAM, then cairn whatif"},
};

const char *core_remedy_class(const struct remedy *remedy) {
    static const char *const names[] = {
        [REMEDY_NOW] = "now", [REMEDY_AT_MOST] = "at most", [REMEDY_NEEDS_LOG] = "needs a log"};
    return names[remedy->class];
}

void core_remedy_title(const struct remedy *remedy, const struct remedy_facts *facts,
                       char title[REMEDY_TITLE_BYTES]) {
    const struct arena_free *pinned = remedies_pinned(&facts->giveback);
    if (words[remedy->kind].title)
        snprintf(title, REMEDY_TITLE_BYTES, "%s", words[remedy->kind].title);
    else if (remedy->kind == REMEDY_THRESHOLD)
        snprintf(title, REMEDY_TITLE_BYTES, "M_MMAP_THRESHOLD fixed at 128 KiB (now %s)",
                 units_size((int64_t)facts->giveback.parameters.mmap_threshold).text);
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

static void cost_text(const struct remedy *remedy, const struct remedy_facts *facts,
                      char text[TEXT_BYTES]) {
    enum { PAGE_USUAL = 4096 };
    size_t arenas = facts->giveback.arenas.count;
    if (words[remedy->kind].cost)
        snprintf(text, TEXT_BYTES, "%s", words[remedy->kind].cost);
    else if (remedy->kind == REMEDY_TRIM)
        snprintf(text, TEXT_BYTES, "%s about %s in all; a page comes back when it is used again",
                 arenas > 1 ? "the lock of each arena in turn," : "malloc's lock for",
                 units_duration(trim_ns(facts, PAGE_USUAL)).text);
    else
        snprintf(text, TEXT_BYTES, "threads wait for each other in malloc: it has %zu arenas now",
                 arenas);
}

struct remedies_answer {
    const char *word;
    char name[TEXT_BYTES];  // safe to print
    pid_t pid;              // 0: a core
    struct remedy_facts facts;
    struct pin_origin pin;
    char obstacle[TEXT_BYTES];  // why its events cannot be recorded; "": they can, or a core's
    bool is_stopped;
    uint64_t pause_ns;
    char why[sizeof((struct error *)0)->text];  // there is no heap
    struct remedy remedies[REMEDIES];
    size_t count;
};

static void apply_text(const struct remedies_answer *answer, const struct remedy *remedy,
                       const char *name, char text[TEXT_BYTES]) {
    const struct arena_free *pinned = remedies_pinned(&answer->facts.giveback);
    if (remedy->kind == REMEDY_ALLOCATOR && *answer->obstacle)
        snprintf(text, TEXT_BYTES, "a log of its events cannot be had: %.200s", answer->obstacle);
    else if (words[remedy->kind].apply)
        snprintf(text, TEXT_BYTES, "%s", words[remedy->kind].apply);
    else
        snprintf(text, TEXT_BYTES, "cairn core %s describe 0x%" PRIx64 " says what it is", name,
                 pinned ? pinned->pin.address : 0);
}

static void sure_text(const struct remedy *remedy, const struct remedy_facts *facts,
                      bool is_stopped, char text[TEXT_BYTES]) {
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
    else if (remedy->kind == REMEDY_THRESHOLD)
        how = "it cannot be more than this, and may be nothing; large blocks may have left";
    else if (remedy->class == REMEDY_AT_MOST)
        how = "it cannot be more than this, and may be nothing";
    else if (is_cut)
        how = "at least: some of the heap changed while it was read";
    else
        how = is_stopped ? "exact, as it stood" : "as it was read while the process went on";
    snprintf(text, TEXT_BYTES, "%s", how);
    if (remedy->kind == REMEDY_THRESHOLD && !facts->is_core)
        snprintf(text, TEXT_BYTES, "%s %s of it: free in pieces of 128 KiB or more", how,
                 units_size((int64_t)remedy->piece_bytes).text);
}

// --- the answer

// Tells by what malloc took from the system, as far as that can be resident.
static bool is_of_malloc(const struct remedies_answer *answer) {
    const struct remedy_facts *facts = &answer->facts;
    uint64_t bytes = giveback_sum(&facts->giveback).system_bytes;
    if (facts->giveback.has_parameters) bytes += facts->giveback.parameters.mapped_bytes;
    if (bytes > facts->anonymous_bytes) bytes = facts->anonymous_bytes;
    return bytes >= facts->rss_bytes / PERCENT * MOSTLY_MALLOC;
}

static void write_sentence(const struct remedies_answer *answer, char text[TEXT_BYTES]) {
    struct remedy shown[REMEDIES];
    const struct remedy *first = shown;
    char title[REMEDY_TITLE_BYTES];
    size_t count = remedies_find(&answer->facts, false, shown);
    bool is_help = count && first->class != REMEDY_NEEDS_LOG;
    if (!answer->facts.has_giveback && !is_help) {
        snprintf(text, TEXT_BYTES, "not known: %s", answer->why);
    } else if (is_help) {
        core_remedy_title(first, &answer->facts, title);
        bool is_least = first->kind == REMEDY_TRIM && giveback_sum(&answer->facts.giveback).is_cut;
        snprintf(text, TEXT_BYTES, "%s would give back %s%s", title,
                 first->class == REMEDY_AT_MOST ? "at most "
                 : is_least                     ? "at least "
                                                : "",
                 units_size((int64_t)first->bytes).text);
    } else if (answer->facts.is_locked) {
        snprintf(text, TEXT_BYTES, "its memory is locked (mlock): the kernel takes nothing back");
    } else if (count) {
        snprintf(text, TEXT_BYTES,
                 "%s are free, but between blocks in use: no page of it can go back",
                 units_size((int64_t)first->bytes).text);
    } else if (giveback_sum(&answer->facts.giveback).is_cut) {
        snprintf(text, TEXT_BYTES,
                 "not known: the heap changed while it was read; --no-copy-limit stops it");
    } else if (answer->facts.is_core) {
        snprintf(text, TEXT_BYTES, "nothing would help: malloc keeps little that is free");
    } else if (is_of_malloc(answer)) {
        snprintf(text, TEXT_BYTES, "nothing would help: the memory is live and touched");
    } else {
        snprintf(text, TEXT_BYTES, "nothing would help: most of it is not glibc's malloc's");
    }
}

static void print_remedy(const struct remedies_answer *answer, const struct terminal *terminal,
                         const struct remedy *remedy) {
    char title[REMEDY_TITLE_BYTES], text[TEXT_BYTES];
    bool is_known = remedy->class != REMEDY_NEEDS_LOG, has_share = answer->facts.rss_bytes;
    core_remedy_title(remedy, &answer->facts, title);
    printf("  %-11s %10s %6s  ", core_remedy_class(remedy),
           is_known ? units_size((int64_t)remedy->bytes).text : "not known",
           is_known && has_share
               ? units_percent((int64_t)remedy->bytes, (int64_t)answer->facts.rss_bytes).text
               : "");
    terminal_print(terminal, STYLE_NAME, "%s\n", title);
    if (remedy->kind == REMEDY_PIN) pin_origin_print(&answer->pin, terminal);
    apply_text(answer, remedy, answer->name, text);
    printf("      apply: %s\n", text);
    cost_text(remedy, &answer->facts, text);
    printf("      costs: %s\n", text);
    sure_text(remedy, &answer->facts, answer->is_stopped, text);
    printf("      sure:  %s\n", text);
}

static void print_screen(const struct remedies_answer *answer) {
    const struct terminal terminal = terminal_of(stdout);
    char sentence[TEXT_BYTES];
    write_sentence(answer, sentence);
    terminal_print(&terminal, STYLE_STRONG, "%s", answer->name);
    if (answer->facts.rss_bytes)
        printf(" · %s resident", units_size((int64_t)answer->facts.rss_bytes).text);
    terminal_print(&terminal, STYLE_STRONG, ": %s\n", sentence);
    for (size_t i = 0; i < answer->count; i++) {
        if (!i)
            terminal_print(&terminal, STYLE_DIM, "  %-11s %10s %6s  %s\n", "CLASS", "BYTES",
                           answer->facts.rss_bytes ? "OF RSS" : "", "REMEDY");
        print_remedy(answer, &terminal, &answer->remedies[i]);
    }
}

static void put_bytes(struct json *json, const char *key, bool is_known, uint64_t bytes) {
    if (is_known)
        json_put_uint(json, key, bytes);
    else
        json_put_null(json, key);
}

static void put_remedy(const struct remedies_answer *answer, struct json *json,
                       const struct remedy *remedy) {
    char text[TEXT_BYTES];
    json_open_object(json, NULL);
    json_put_string(json, "remedy", words[remedy->kind].key);
    json_put_string(json, "class", core_remedy_class(remedy));
    put_bytes(json, "bytes", remedy->class != REMEDY_NEEDS_LOG, remedy->bytes);
    if (remedy->kind == REMEDY_THRESHOLD)
        json_put_uint(json, "large_free_bytes", remedy->piece_bytes);
    apply_text(answer, remedy, answer->word, text);
    json_put_string(json, "apply", text);
    cost_text(remedy, &answer->facts, text);
    json_put_string(json, "costs", text);
    sure_text(remedy, &answer->facts, answer->is_stopped, text);
    json_put_string(json, "sure", text);
    if (remedy->kind == REMEDY_PIN) pin_origin_put(json, "frames", &answer->pin);
    json_close(json);
}

static void put_arenas(struct json *json, const struct giveback *giveback) {
    json_open_array(json, "arenas");
    for (size_t i = 0; i < giveback->arenas.count; i++) {
        const struct arena_free *arena = &giveback->arenas.items[i];
        json_open_object(json, NULL);
        json_put_bool(json, "main", arena->is_main);
        json_put_uint(json, "address", arena->address);
        json_put_uint(json, "bytes", arena->system_bytes);
        json_put_uint(json, "free_chunks", arena->chunk_count);
        json_put_uint(json, "free_bytes", arena->chunk_bytes);
        json_put_uint(json, "free_resident_bytes", arena->chunk_resident_bytes);
        json_put_uint(json, "top_bytes", arena->top_bytes);
        json_put_uint(json, "top_resident_bytes", arena->top_resident_bytes);
        json_put_uint(json, "trim_bytes", arena->trim_bytes);
        put_bytes(json, "pinned_by", arena->pin.address, arena->pin.address);
        put_bytes(json, "pinned_bytes", arena->pin.address, arena->pin.resident_bytes);
        json_put_bool(json, "at_least", arena->is_cut);
        json_close(json);
    }
    json_close(json);
}

static void print_json(const struct remedies_answer *answer) {
    const struct remedy_facts *facts = &answer->facts;
    const struct malloc_parameters *parameters = &facts->giveback.parameters;
    bool has_parameters = facts->giveback.has_parameters;
    char sentence[TEXT_BYTES];
    struct json json;
    write_sentence(answer, sentence);
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", "cairn.remedies/1");
    put_bytes(&json, "pid", answer->pid, (uint64_t)answer->pid);
    put_bytes(&json, "pause_ns", answer->is_stopped, answer->pause_ns);
    put_bytes(&json, "rss_bytes", facts->rss_bytes, facts->rss_bytes);
    json_put_string(&json, "sentence", sentence);
    json_put_string(&json, "not_known", facts->has_giveback ? NULL : answer->why);
    json_open_array(&json, "remedies");
    for (size_t i = 0; i < answer->count; i++) put_remedy(answer, &json, &answer->remedies[i]);
    json_close(&json);
    put_bytes(&json, "mmap_threshold", has_parameters, parameters->mmap_threshold);
    put_bytes(&json, "trim_threshold", has_parameters, parameters->trim_threshold);
    json_put_bool(&json, "thresholds_fixed", has_parameters && parameters->are_fixed);
    put_arenas(&json, &facts->giveback);
    json_close(&json);
}

// --- what is looked at

static bool read_stopped(struct remedies_answer *answer, const struct remedies_wish *wish,
                         struct error *error) {
    const struct heap_wish look_wish = {.depth = HEAP_BLOCKS,
                                        .bytes_max =
                                            wish->has_limit ? CORE_COPIED_BYTES_MAX : UINT64_MAX,
                                        .way_around = "--no-copy-limit"};
    struct heap_look look;
    struct glibc_heap heap;
    if (!heap_look_take(answer->word, &look_wish, &look, error)) return false;
    const struct memory_view view = core_view(look.core);
    answer->is_stopped = !look.is_core;
    answer->pause_ns = look.is_core ? 0 : look.live.pause_ns;
    if (!look.is_core)
        fprintf(stderr, "cairn: process %s was paused for %s\n", look.name,
                units_duration(look.live.pause_ns).text);
    bool is_ok = glibc_heap_read(&view, &heap, error);
    if (is_ok) {
        is_ok = core_remedies_read_heap(&look, &heap, &answer->facts) ||
                error_set(error, "out of memory");
        if (is_ok)
            pin_origin_of_look(&look, remedies_pinned(&answer->facts.giveback), &answer->pin);
        glibc_heap_free(&heap);
    }
    heap_look_close(&look);
    return is_ok;
}

// Notes why its program cannot be recorded, if that is so.
static void find_obstacle(struct remedies_answer *answer) {
    struct program program;
    struct error unused;
    char file[PROC_PATH_BYTES];
    int status;
    snprintf(file, sizeof file, "/proc/%d/exe", (int)answer->pid);
    if (program_find(file, &program, &status, &unused) && program.obstacle)
        snprintf(answer->obstacle, sizeof answer->obstacle, "%s", program.obstacle);
}

static bool read_process(struct remedies_answer *answer, const struct remedies_wish *wish,
                         struct error *error) {
    struct rss_parts resident;
    struct error reason = {""};
    if (!running_find(answer->word, &answer->pid, error)) return false;
    bool is_ok = rss_parts_of_process(answer->pid, &resident);
    if (!is_ok)
        error_set(error,
                  "process %d: its memory may not be read, or it has none: ask as root, of "
                  "one that runs",
                  (int)answer->pid);
    if (is_ok) {
        core_remedies_facts(answer->pid, &resident, &answer->facts);
        find_obstacle(answer);
        bool is_read = wish->may_stop && read_stopped(answer, wish, &reason);
        bool is_running =
            !is_read && core_remedies_read_running(answer->pid, &resident, &answer->facts);
        if (is_running)
            pin_origin_of_process(answer->pid, remedies_pinned(&answer->facts.giveback),
                                  &answer->pin);
        else if (!is_read)
            text_escape(answer->why, sizeof answer->why,
                        *reason.text ? reason.text : "no heap of glibc's malloc could be read");
    }
    rss_parts_free(&resident);
    return is_ok;
}

bool core_remedies_report(const char *word, const struct request *request,
                          const struct remedies_wish *wish, struct error *error) {
    struct remedies_answer answer = {.word = word};
    text_escape(answer.name, sizeof answer.name, word);
    bool is_core = core_is_one(word);
    bool is_ok = is_core ? read_stopped(&answer, wish, error) : read_process(&answer, wish, error);
    if (is_ok) {
        answer.count = remedies_find(&answer.facts, request->is_json, answer.remedies);
        if (request->is_json)
            print_json(&answer);
        else
            print_screen(&answer);
    }
    pin_origin_close(&answer.pin);
    giveback_free(&answer.facts.giveback);
    return is_ok;
}
