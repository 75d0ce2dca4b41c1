// SPDX-License-Identifier: Apache-2.0
#include "tool/glibc/other_heap.h"

#include <string.h>

#include "tool/base/search.h"

struct other_class *other_heap_class(struct other_heap *other, uint64_t size) {
    size_t low;
    search_first(low, other->classes.count, other->classes.items[low].size >= size);
    if (low < other->classes.count && other->classes.items[low].size == size)
        return &other->classes.items[low];
    const struct other_class *last = array_push(&other->classes);
    if (!last) return NULL;
    struct other_class *place = &other->classes.items[low];
    memmove(place + 1, place, (other->classes.count - 1 - low) * sizeof *place);
    *place = (struct other_class){.size = size};
    return place;
}

void other_heap_settle(struct other_heap *other) {
    spans_settle(&other->memory);
    spans_settle(&other->free_pages);
    spans_settle(&other->emptied);
    spans_settle(&other->asked);
}

void other_heap_free(struct other_heap *other) {
    array_free(&other->classes);
    spans_free(&other->memory);
    spans_free(&other->free_pages);
    spans_free(&other->emptied);
    spans_free(&other->asked);
}
