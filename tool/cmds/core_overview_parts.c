// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_overview_parts.h"

#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/heap/remedies.h"
#include "tool/query/views.h"
#include "tool/watch/stack_end.h"

static void add(struct resident_parts *parts, enum part_kind kind, uint64_t bytes,
                const char *text) {
    if (!bytes) return;
    struct resident_part *part = &parts->items[parts->count++];
    *part = (struct resident_part){.kind = kind, .bytes = bytes};
    snprintf(part->text, sizeof part->text, "%s", text);
    parts->all_bytes += bytes;
}

// Adds the largest of what the program named, and takes it out of `other`, in which it is.
static void add_names(const struct rss_parts *resident, struct resident_parts *parts,
                      uint64_t *other) {
    for (size_t i = 0; i < resident->names.count && i < RESIDENT_NAMES; i++) {
        const struct mapped_name *name = &resident->names.items[i];
        uint64_t bytes = name->rss_bytes < *other ? name->rss_bytes : *other;
        char safe[RESIDENT_TEXT_BYTES - 16], text[RESIDENT_TEXT_BYTES];
        text_escape(safe, sizeof safe, name->name);
        snprintf(text, sizeof text, "[anon:%s]", safe);
        add(parts, PART_OTHER, bytes, text);
        *other -= bytes;
    }
}

// Adds what Python's allocator has, and takes it out of `other`, in which it is.
static void add_python(const struct python_pools *python, struct resident_parts *parts,
                       uint64_t *other) {
    const uint64_t bytes = python->bytes < *other ? python->bytes : *other;
    const uint64_t used = python->used_bytes < bytes ? python->used_bytes : bytes;
    char text[RESIDENT_TEXT_BYTES];
    snprintf(text, sizeof text, "in Python's pymalloc, %s of it free",
             units_size((int64_t)(bytes - used)).text);
    add(parts, PART_OTHER, bytes, text);
    *other -= bytes;
}

// Takes the heap's part of anonymous memory, as far as the heap could be read. Returns what the
// dynamic linker and libc map for each program, which is nobody's own.
static uint64_t add_heap(const struct rss_parts *resident, const struct heap_state *heap,
                         const struct giveback *giveback, const struct python_pools *python,
                         struct resident_parts *parts) {
    const uint64_t small_bytes = 128 << 10;  // as of recordings (tool/model/figures.c)
    const uint64_t anonymous = resident->picture.heap_bytes;
    const struct giveback_sum walked = giveback_sum(giveback);
    // pages are counted, and may be shared, or others by now: no part is more than the kernel
    // counts
    uint64_t in_heap = heap ? heap->residency.resident_bytes : 0;
    if (in_heap > anonymous) in_heap = anonymous;
    bool is_cut = !heap && walked.is_cut;
    uint64_t free = heap ? heap->free_resident_bytes : walked.free_resident_bytes;
    if (!heap) in_heap = free < anonymous ? free : anonymous;
    if (free > in_heap) free = in_heap;
    uint64_t other = anonymous > in_heap ? anonymous - in_heap : 0;
    add(parts, PART_USED, in_heap - free, "in use in glibc's malloc");
    add(parts, PART_FREE, free,
        parts->are_dumped ? "free in glibc's malloc"
        : is_cut          ? "free in glibc's malloc, still resident, at least"
                          : "free in glibc's malloc, still resident");
    if (python) add_python(python, parts, &other);
    add_names(resident, parts, &other);
    if (heap && other < small_bytes) return other;
    add(parts, PART_OTHER, other,
        heap              ? "mapped by the program or another allocator"
        : free && !is_cut ? "heap in use and other anonymous memory"
                          : "heap and other anonymous memory");
    return 0;
}

// Adds what is no heap.
static void add_rest(const struct rss_parts *resident, uint64_t linked_bytes,
                     struct resident_parts *parts) {
    const struct cairn_picture *picture = &resident->picture;
    add(parts, PART_REST, picture->files_bytes + linked_bytes, "code, data and files");
    add(parts, PART_REST, picture->shared_bytes, "shared memory without a file");
    add(parts, PART_REST, picture->stacks_bytes, "stacks of threads");
    add(parts, PART_CLOSED, resident->zero_stack_bytes, "zero pages of stacks, perhaps never used");
    add(parts, PART_REST, picture->other_bytes, "of the kernel and devices");
    add(parts, PART_CLOSED, resident->closed_bytes, "not writable: constants, or kept for later");
}

void resident_parts_find(const struct rss_parts *resident, const struct heap_state *heap,
                         const struct giveback *giveback, const struct python_pools *python,
                         struct resident_parts *parts) {
    *parts = (struct resident_parts){.are_dumped = parts->are_dumped};
    uint64_t linked_bytes = add_heap(resident, heap, giveback, python, parts);
    add_rest(resident, linked_bytes, parts);
}

void resident_parts_find_other(const struct rss_parts *resident, const struct other_resident *other,
                               struct resident_parts *parts) {
    const uint64_t anonymous = resident->picture.heap_bytes;
    const uint64_t in_heap = other->bytes < anonymous ? other->bytes : anonymous;
    const uint64_t used = other->used_bytes < in_heap ? other->used_bytes : in_heap;
    uint64_t rest = anonymous - in_heap;
    char text[RESIDENT_TEXT_BYTES];
    *parts = (struct resident_parts){.are_dumped = parts->are_dumped};
    snprintf(text, sizeof text, "in use in %s", other->name);
    add(parts, PART_USED, used, text);
    snprintf(text, sizeof text, "free in %s or its tables%s", other->name,
             parts->are_dumped ? "" : ", still resident");
    add(parts, PART_FREE, in_heap - used, text);
    add_names(resident, parts, &rest);
    add(parts, PART_OTHER, rest, "other anonymous memory");
    add_rest(resident, 0, parts);
}

uint64_t resident_parts_bytes(const struct resident_parts *parts, enum part_kind kind) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].kind == kind) bytes += parts->items[i].bytes;
    return bytes;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Returns where the stack ends that a segment has, with its thread's data if these lie in it, else
// with the segment; 0: it has none. The kernel joins a stack with memory above.
static uint64_t stack_end_of(const struct core_image *core, const struct memory_segment *segment) {
    const uint64_t page_bytes = core_page_bytes(core);
    for (size_t i = 0; i < core->threads.count; i++) {
        const uint64_t stack = core->threads.items[i].stack,
                       pointer = core->threads.items[i].pointer;
        if (stack < segment->start || stack >= segment->end) continue;
        if (pointer < stack || pointer >= segment->end) return segment->end;
        const uint64_t end =
            (pointer + STACK_THREAD_BYTES + page_bytes - 1) / page_bytes * page_bytes;
        return end < segment->end ? end : segment->end;
    }
    return 0;
}

// Returns what of a stack, the first so many bytes of a segment, is pages of zeros. gdb writes all
// that is reserved for it; whether a page was ever there is not known then.
static uint64_t zero_bytes(const struct core_image *core, const struct memory_segment *segment,
                           uint64_t stack_bytes) {
    static const uint8_t zeros[4096];
    uint8_t page[sizeof zeros];
    uint64_t bytes = 0;
    for (uint64_t at = 0; at + sizeof page <= stack_bytes; at += sizeof page)
        if (core_read(core, segment->start + at, page, sizeof page) &&
            !memcmp(page, zeros, sizeof page))
            bytes += sizeof page;
    return bytes;
}

void resident_of_dump(const struct core_image *core, struct rss_parts *resident) {
    struct cairn_picture *picture = &resident->picture;
    *resident = (struct rss_parts){.libc_data = {0, 0}};
    for (size_t i = 0; i < core->segments.count; i++) {
        const struct memory_segment *segment = &core->segments.items[i];
        const uint64_t end = stack_end_of(core, segment);
        uint64_t *kind = &picture->heap_bytes, stack_bytes = 0;
        if (core_module_of(core, segment->start))
            kind = &picture->files_bytes;
        else if (!segment->is_writable)
            kind = segment->is_code ? &picture->other_bytes : &resident->closed_bytes;
        else if (end)
            stack_bytes = least(segment->bytes, end - segment->start);
        const uint64_t zero = zero_bytes(core, segment, stack_bytes);
        resident->zero_stack_bytes += zero;
        picture->stacks_bytes += stack_bytes - zero;
        *kind += segment->bytes - stack_bytes;
        picture->rss_bytes += segment->bytes;
    }
}

enum part_column { PART_SHARE, PART_BYTES, PART_WHAT, PART_COLUMNS };

static const struct answer_column part_columns[PART_COLUMNS] = {
    [PART_SHARE] = {.key = "share",
                    .unit = ANSWER_SHARE,
                    .place = ANSWER_FIGURE,
                    .style = STYLE_STRONG,
                    .width = 6},
    [PART_BYTES] = ANSWER_FIGURES("bytes", NULL, ANSWER_BYTES, 10),
    [PART_WHAT] = {.key = "what", .place = ANSWER_TAIL, .before = "  "}};

struct part_list {
    const struct resident_parts *parts;
    size_t at;
};

static bool next_part(struct answer *answer, struct answer_row *row) {
    struct part_list *list = answer->state;
    if (list->at == list->parts->count) return false;
    const struct resident_part *part = &list->parts->items[list->at++];
    answer_set(row, PART_SHARE, (int64_t)part->bytes);
    answer_set(row, PART_BYTES, (int64_t)part->bytes);
    answer_set_text(row, PART_WHAT, part->text);
    return true;
}

bool resident_parts_print(const struct resident_parts *parts, const char *name, pid_t pid,
                          const struct request *request, struct error *error) {
    struct part_list list = {.parts = parts};
    const struct terminal terminal = terminal_of(stdout);
    struct answer answer = {.view = request->view->name,
                            .options = &request->options,
                            .columns = part_columns,
                            .column_count = PART_COLUMNS,
                            .indent = 1,
                            .gap = 1,
                            .whole = (int64_t)parts->all_bytes,
                            .shown = parts->count,
                            .count = parts->count,
                            .next_row = next_part,
                            .state = &list};
    const struct unit_text size = units_size((int64_t)parts->all_bytes);
    if (parts->are_dumped)
        snprintf(answer.title, sizeof answer.title, "%.100s · %s of memory in it, no recording",
                 name, size.text);
    else
        snprintf(answer.title, sizeof answer.title, "%.100s (%d) · %s resident, not recorded", name,
                 (int)pid, size.text);
    return request->form ? request->form->print(stdout, &answer, error)
                         : answer_print_text(&terminal, &answer, error);
}
