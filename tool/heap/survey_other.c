// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/survey_other.h"

#include "tool/heap/other_heaps.h"

static struct heap_sum sum_of(uint64_t count, uint64_t size) {
    return (struct heap_sum){count, count * size};
}

static bool add_class(const struct other_class *class, struct heap_state *state) {
    struct heap_size *size = array_push(&state->sizes);
    if (!size) return false;
    *size = (struct heap_size){.size = class->size,
                               .used = sum_of(class->used, class->size),
                               .cached = sum_of(class->cached, class->size),
                               .free = sum_of(class->free, class->size),
                               .moving = sum_of(class->moving, class->size),
                               .page_bytes = class->page_bytes};
    return true;
}

bool survey_other(const struct core_image *core, const struct stopped_image *live,
                  const struct other_heap *other, struct heap_state *state) {
    state->unknown_caches = other->unknown_caches;
    state->busy_threads = other->busy_threads;
    for (size_t i = 0; i < other->classes.count; i++)
        if (!add_class(&other->classes.items[i], state)) return false;
    for (size_t i = 0; i < other->free_pages.items.count; i++) {
        const struct span *pages = &other->free_pages.items.items[i];
        const uint64_t bytes = pages->end - pages->start;
        if (bytes > state->largest_free_bytes) state->largest_free_bytes = bytes;
        state->empty_bytes += bytes;
    }
    state->empty_resident_bytes = other_heap_there(core, live, &other->free_pages);
    state->free_bytes += state->empty_bytes;
    state->free_resident_bytes += state->empty_resident_bytes;
    return true;
}
