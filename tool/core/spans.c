// SPDX-License-Identifier: Apache-2.0
#include "tool/core/spans.h"

#include "tool/base/search.h"

bool core_spans_add(struct core_spans *spans, uint64_t start, uint64_t end) {
    if (start >= end) return true;
    struct core_span *slot = array_push(&spans->items);
    if (slot) *slot = (struct core_span){start, end};
    return slot != NULL;
}

static int compare_starts(const void *a, const void *b) {
    const struct core_span *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

void core_spans_settle(struct core_spans *spans) {
    struct core_span *items = spans->items.items;
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

void core_spans_free(struct core_spans *spans) {
    array_free(&spans->items);
}

// The first that ends behind the address.
static size_t find(const struct core_spans *spans, uint64_t address) {
    size_t low;
    search_first(low, spans->items.count, spans->items.items[low].end > address);
    return low;
}

bool core_spans_gap(const struct core_spans *spans, uint64_t *at, uint64_t end,
                    struct core_span *gap) {
    const struct core_span *items = spans->items.items;
    size_t next = find(spans, *at);
    if (next < spans->items.count && items[next].start <= *at) *at = items[next++].end;
    if (*at >= end) return false;
    bool is_cut = next < spans->items.count && items[next].start < end;
    *gap = (struct core_span){*at, is_cut ? items[next].start : end};
    *at = gap->end;
    return true;
}
