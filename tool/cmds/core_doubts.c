// SPDX-License-Identifier: Apache-2.0
// What limits an answer about a heap (core_sets.h), in lines.
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/core_sets.h"
#include "tool/heap/roots.h"

enum { LINE_BYTES = 1024 };

const char *core_other_allocator(const struct core_subject *subject) {
    for (size_t i = 0; i < subject->core->files.count; i++) {
        const struct core_file *file = &subject->core->files.items[i];
        if (core_file_is_allocator(file)) return text_base_name(file->path);
    }
    return NULL;
}

bool core_busy_text(const struct core_subject *subject, char *out, size_t size) {
    const struct other_heap *other = &core_heap_of(subject)->other;
    if (!other->busy_threads) return false;
    int used = snprintf(
        out, size, "%s may be within a call of %s: a block of each may count as in use that is not",
        units_counted((int64_t)other->busy_threads, "thread", "threads").text, other->name);
    if (other->moving_blocks && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, "; %s that they may be moving %s neither",
                 units_counted((int64_t)other->moving_blocks, "block", "blocks").text,
                 other->moving_blocks == 1 ? "counts as" : "count as");
    return true;
}

void core_print_doubts(const struct core_subject *subject) {
    char text[LINE_BYTES];
    size_t count = subject->types ? core_types_missing(subject->types, text, sizeof text) : 0;
    const char *other = core_other_allocator(subject);
    if (subject->has_reach && subject->has_foreign)
        fprintf(stderr,
                "cairn: lists of %s itself refer to its blocks: not all that are leaked are seen\n",
                other ? other : "the allocator");
    const uint64_t broken = core_heap_of(subject)->broken_count;
    char busy[BUSY_BYTES];
    if (core_busy_text(subject, busy, sizeof busy)) fprintf(stderr, "cairn: %s\n", busy);
    if (broken)
        fprintf(stderr,
                "cairn: %s of the heap made no sense from some place on: blocks behind it are not "
                "known\n",
                units_counted((int64_t)broken, "stretch", "stretches").text);
    if (core_is_sampled(subject))
        fprintf(stderr,
                "cairn: a sample was recorded: blocks in use are the heap's, with the allocator's "
                "sizes\n");
    if (subject->types && !subject->core->files.count)
        fprintf(stderr,
                "cairn: this core does not say which files were mapped: no block has a type\n");
    if (count)
        fprintf(stderr, "cairn: names of %zu %s are missing (--sysroot, --debug-dir): %s\n", count,
                units_noun((int64_t)count, "module", "modules"), text);
}

// Libraries may have it where the program has not.
const char *core_sources_missing(const struct core_subject *subject) {
    const struct typed_counts counts = typed_count(subject->typed);
    char text[LINE_BYTES];
    if (counts.has_program || !subject->core->files.count) return NULL;
    if (subject->types && core_types_missing(subject->types, text, sizeof text))
        return "debug information of the program was not found: few types are known";
    return "the program has no debug information (-g, a -dbgsym package, --debuginfod): few types "
           "are known";
}
