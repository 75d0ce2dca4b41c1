// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_subject.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/query/name_options.h"

enum { LINE_BYTES = 1024 };

static bool open_recording(struct core_subject *subject, const char *beside, struct error *error) {
    subject->header = subject->look.header;
    if (!beside) return heap_look_recording(&subject->look, &subject->opened, error);
    if (!opened_open(beside, &subject->opened, error)) return false;
    if (!subject->look.is_recorded) subject->header = subject->opened.recording.header;
    return true;
}

static void say_pause(const struct heap_look *look) {
    const struct stopped_image *live = &look->live;
    fprintf(stderr, "cairn: process %s was stopped for %s (%s, %s copied)\n", look->name,
            units_duration(live->pause_ns).text,
            units_counted((int64_t)live->thread_count, "thread", "threads").text,
            units_size((int64_t)live->copied_bytes).text);
}

static bool open_inside(struct core_subject *subject, const char *beside, struct error *error) {
    if (!subject->look.is_recorded && !beside) return true;
    if (!open_recording(subject, beside, error)) return false;
    subject->is_recorded =
        core_read_blocks(subject->core, &subject->header, subject->opened.profile.cell_count,
                         &subject->blocks, error);
    if (!subject->is_recorded) opened_close(&subject->opened);
    return subject->is_recorded;
}

bool core_subject_open(const char *word, const struct heap_wish *wish, const char *beside,
                       struct core_subject *subject, struct error *error) {
    *subject = (struct core_subject){0};
    if (!heap_look_take(word, wish, &subject->look, error)) return false;
    subject->core = subject->look.core;
    if (!subject->look.is_core) {
        say_pause(&subject->look);
        name_options_symbols()->process = (uint32_t)subject->look.pid;
    }
    if (!subject->look.is_core && beside)
        error_set(error, "--recording is for core dumps: of a process it is found");
    else if (open_inside(subject, beside, error))
        return true;
    heap_look_blame(&subject->look, error);
    heap_look_close(&subject->look);
    return false;
}

void core_subject_close(struct core_subject *subject) {
    core_types_close(subject->types);
    if (subject->has_reach) core_reach_close(&subject->reach);
    glibc_heap_free(&subject->heap);
    if (subject->is_recorded) {
        core_free_blocks(&subject->blocks);
        opened_close(&subject->opened);
    }
    heap_look_close(&subject->look);
}

const char *core_other_allocator(const struct core_subject *subject) {
    static const char *const names[] = {"libjemalloc", "libtcmalloc",  "libmimalloc", "libhoard",
                                        "libsnmalloc", "libtbbmalloc", "librpmalloc", "ld-musl"};
    for (size_t i = 0; i < subject->core->files.count; i++) {
        const char *base = text_base_name(subject->core->files.items[i].path);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (!strncmp(base, names[k], strlen(names[k]))) return base;
    }
    return NULL;
}

bool core_need_heap(struct core_subject *subject, struct error *error) {
    if (subject->has_heap || subject->has_reach) return true;
    const struct memory_view view = core_view(subject->core);
    subject->has_heap = glibc_heap_read(&view, &subject->heap, error);
    const char *other = core_other_allocator(subject);
    if (subject->has_heap) return true;
    if (other)
        error_set(error,
                  "there is no heap of glibc's malloc in it; it used %s, whose blocks are "
                  "known only of recorded processes",
                  other);
    else if (subject->core->missing_bytes)
        error_set(error,
                  "no heap of glibc's malloc was found in it; the file is cut off, %s of it "
                  "are missing",
                  units_size((int64_t)subject->core->missing_bytes).text);
    return false;
}

// What belongs to the recording refers to no block.
static bool own_memory(const struct core_subject *subject, struct spans *own) {
    bool is_ok = true;
    if (!subject->is_recorded) return true;
    const struct spans *map = &subject->blocks.map;
    for (size_t i = 0; i < map->items.count && is_ok; i++)
        is_ok = spans_add(own, map->items.items[i].start, map->items.items[i].end);
    uint64_t start = subject->header.self_address;
    is_ok = is_ok && spans_add(own, start, start + subject->header.mapped_bytes);
    spans_settle(own);
    return is_ok;
}

bool core_need_map(struct core_subject *subject, struct error *error) {
    struct spans own = {0};
    bool are_all_glibc = true;
    if (subject->has_reach) return true;
    if (!core_need_heap(subject, error) && !subject->is_recorded) return false;
    bool is_ok = own_memory(subject, &own);
    if (is_ok && subject->is_recorded)
        is_ok = core_add_blocks(subject->core, &subject->blocks, &subject->heap, &are_all_glibc);
    if (!is_ok) error_set(error, "out of memory");
    subject->has_foreign = !are_all_glibc;
    subject->has_reach = is_ok && core_reach_open(subject->core, &subject->heap, are_all_glibc,
                                                  &own, &subject->reach, error);
    spans_free(&own);
    return subject->has_reach;
}

bool core_need_reach(struct core_subject *subject, struct error *error) {
    return core_need_map(subject, error) &&
           (subject->reach.is_marked || core_reach_mark(&subject->reach, error));
}

bool core_need_types(struct core_subject *subject, struct error *error) {
    if (!subject->types) subject->types = core_types_open(subject->core, name_options_symbols());
    return subject->types || error_set(error, "out of memory");
}

const struct glibc_heap *core_heap_of(const struct core_subject *subject) {
    return subject->has_reach ? &subject->reach.heap : &subject->heap;
}

void core_print_doubts(const struct core_subject *subject) {
    char text[LINE_BYTES];
    size_t count = subject->types ? core_types_missing(subject->types, text, sizeof text) : 0;
    const char *other = core_other_allocator(subject);
    if (subject->has_reach && subject->has_foreign)
        fprintf(stderr,
                "cairn: lists of %s itself refer to its blocks: not all that are leaked are seen\n",
                other ? other : "the allocator");
    if (subject->is_recorded && subject->opened.profile.sampling.is_on)
        fprintf(stderr, "cairn: a sample was recorded: blocks in use are those of the sample\n");
    if (subject->types && !subject->core->files.count)
        fprintf(stderr,
                "cairn: this core does not say which files were mapped: no block has a type\n");
    if (count)
        fprintf(stderr, "cairn: names of %zu %s are missing (--sysroot, --debug-dir): %s\n", count,
                units_noun((int64_t)count, "module", "modules"), text);
}
