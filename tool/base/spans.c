// SPDX-License-Identifier: Apache-2.0
#include "tool/base/spans.h"

#include "tool/base/search.h"

bool spans_add(struct spans *spans, uint64_t start, uint64_t end) {
    if (start >= end) return true;
    struct span *slot = array_push(&spans->items);
    if (slot) *slot = (struct span){start, end};
    return slot != NULL;
}

static int compare_starts(const void *a, const void *b) {
    const struct span *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

void spans_settle(struct spans *spans) {
    struct span *items = spans->items.items;
    size_t kept = 0;
    if (spans->items.count) qsort(items, spans->items.count, sizeof *items, compare_starts);
    for (size_t i = 0; i < spans->items.count; i++) {
        if (!kept || items[i].start > items[kept - 1].end)
            items[kept++] = items[i];
        else if (items[i].end > items[kept - 1].end)
            items[kept - 1].end = items[i].end;
    }
    spans->items.count = kept;
}

void spans_free(struct spans *spans) {
    array_free(&spans->items);
}

// The first that ends behind the address.
static size_t find(const struct spans *spans, uint64_t address) {
    size_t low;
    search_first(low, spans->items.count, spans->items.items[low].end > address);
    return low;
}

bool spans_have(const struct spans *spans, uint64_t address) {
    size_t next = find(spans, address);
    return next < spans->items.count && spans->items.items[next].start <= address;
}

bool spans_gap(const struct spans *spans, uint64_t *at, uint64_t end, struct span *gap) {
    const struct span *items = spans->items.items;
    size_t next = find(spans, *at);
    if (next < spans->items.count && items[next].start <= *at) *at = items[next++].end;
    if (*at >= end) return false;
    bool is_cut = next < spans->items.count && items[next].start < end;
    *gap = (struct span){*at, is_cut ? items[next].start : end};
    *at = gap->end;
    return true;
}
