// SPDX-License-Identifier: Apache-2.0
// Reads the facts of a process or a core dump from which remedies are worked out.
#include <stdlib.h>

#include "tool/base/clock.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/core_sets.h"
#include "tool/heap/other_heaps.h"
#include "tool/proc/process.h"
#include "tool/watch/free_chunks.h"

enum { PROC_BYTES = 8192, KIB = 1024 };

static uint64_t field_bytes(pid_t pid, const char *file, const char *key) {
    char text[PROC_BYTES];
    process_read(pid, file, text, sizeof text);
    return strtoull(process_field(text, key), NULL, 10) * KIB;
}

void core_remedies_facts(pid_t pid, bool is_recorded, const struct rss_parts *resident,
                         struct remedy_facts *facts) {
    facts->rss_bytes = resident->picture.rss_bytes;
    facts->anonymous_bytes = resident->picture.heap_bytes;
    facts->lazy_bytes = field_bytes(pid, "smaps_rollup", "LazyFree");
    facts->is_locked = field_bytes(pid, "status", "VmLck") > facts->rss_bytes / 2;
    if (field_bytes(pid, "smaps_rollup", "AnonHugePages"))
        huge_pages_find(pid, is_recorded, &facts->huge);
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

static void read_other(const struct heap_look *look, const struct glibc_heap *heap,
                       struct other_facts *facts) {
    const struct core_image *core = look->core;
    const struct stopped_image *live = look->is_core ? NULL : &look->live;
    const struct other_heap *other = &heap->other;
    const uint64_t ns_per_ms = 1000000;
    const uint64_t used = other_heap_used(core, live, heap);
    facts->name = other->name;
    facts->all_bytes = other_heap_there(core, live, &other->memory);
    facts->free_bytes = facts->all_bytes > used ? facts->all_bytes - used : 0;
    facts->asked_bytes = other_heap_there(core, live, &other->asked);
    facts->is_early = other->asked_from_ms > clock_now_ns() / ns_per_ms;
    facts->empty_bytes = other_heap_there(core, live, &other->free_pages);
    facts->emptied_bytes = other_heap_there(core, live, &other->emptied);
}

bool core_remedies_read_heap(const struct heap_look *look, const struct glibc_heap *heap,
                             struct remedy_facts *facts) {
    const struct memory_view view = core_view(look->core);
    const struct resident_source resident = {resident_in_look, (void *)(uintptr_t)look,
                                             core_page_bytes(look->core)};
    facts->is_core = look->is_core;
    if (heap->other.name) read_other(look, heap, &facts->other);
    find_parameters(&view, &facts->giveback);
    facts->has_giveback = giveback_of_heap(heap, &view.reader, &resident, &facts->giveback);
    return facts->has_giveback;
}
