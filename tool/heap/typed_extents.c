// SPDX-License-Identifier: Apache-2.0
// Keeps which bytes of a block are elements: those that the container says which refers to it. If
// there is none, all of the block may be, as far as its pointers lead where they can.
#include "tool/heap/typed_internal.h"

#include <string.h>

static uint64_t hash_of(uint32_t number) {
    return hash_mix(number, index_table_seed());
}

static struct typed_extent *find(const struct typed *typed, uint32_t number) {
    struct index_probe probe = index_probe_start(&typed->extent_index, hash_of(number));
    for (uint32_t i; index_probe_next(&typed->extent_index, &probe, &i);)
        if (typed->extents.items[i].number == number) return &typed->extents.items[i];
    return NULL;
}

bool typed_has_extent(const struct typed *typed, uint32_t number) {
    return typed->extents.count && find(typed, number);
}

static struct typed_extent *add(struct typed *typed, uint32_t number) {
    struct typed_extent *slot = array_push(&typed->extents);
    bool is_in = slot && index_table_insert(&typed->extent_index, hash_of(number),
                                            (uint32_t)(typed->extents.count - 1));
    typed->is_failed |= !is_in;
    return is_in ? slot : NULL;
}

static void set(struct typed *typed, const struct typed_extent *extent) {
    struct typed_extent *known = find(typed, extent->number);
    if (!known) known = add(typed, extent->number);
    if (known) *known = *extent;
}

void typed_note_extent(struct typed *typed, uint32_t number, const struct layout_extent *extent) {
    set(typed, &(struct typed_extent){number, extent->from, extent->to, extent->inner,
                                      extent->is_table, false});
}

void typed_note_single(struct typed *typed, uint32_t number, const struct type *type) {
    set(typed, &(struct typed_extent){.number = number, .to = type->bytes, .is_single = true});
}

bool typed_is_single(const struct typed *typed, uint32_t number) {
    const struct typed_extent *known = typed->extents.count ? find(typed, number) : NULL;
    return known && known->is_single;
}

void typed_forget_extent(struct typed *typed, uint32_t number) {
    struct typed_extent *known = typed->extents.count ? find(typed, number) : NULL;
    if (known) *known = (struct typed_extent){.number = number, .to = UINT64_MAX};
}

struct typed_elements typed_elements_of(const struct typed *typed, uint32_t number,
                                        const struct type *type, uint64_t size) {
    const struct typed_extent *known = typed->extents.count ? find(typed, number) : NULL;
    struct typed_elements elements = {.end = size,
                                      .each = typed_has_tail(type) ? size : type->bytes};
    if (!known || known->to == UINT64_MAX || known->to > size || known->from > known->to)
        return elements;
    elements.at = known->from;
    elements.end = known->to;
    elements.inner = known->inner;
    elements.is_known = true;
    elements.is_table =
        known->is_table && elements.each && known->to / elements.each <= size - known->to;
    return elements;
}

// Says whether a place of a table has an element: its bytes go the other way.
static bool is_full(const struct typed_elements *elements, const uint8_t *bytes, uint64_t at) {
    const uint8_t empty = 0x80;
    return !elements->is_table ||
           !(bytes[elements->end + (elements->end - at) / elements->each - 1] & empty);
}

bool typed_next_element(struct typed *typed, struct typed_elements *elements,
                        const struct type *type, const uint8_t *bytes, uint64_t *at) {
    while (elements->each && elements->at <= elements->end &&
           elements->each <= elements->end - elements->at) {
        *at = elements->at;
        elements->at += elements->each;
        if (!is_full(elements, bytes, *at)) continue;
        if (elements->is_known || !*at) return true;
        bool is_one = typed_is_element(typed, type, bytes + *at);
        elements->wrong = is_one ? 0 : elements->wrong + 1;
        if (elements->wrong == WRONG_ELEMENTS_MAX) return false;
        if (is_one) return true;
    }
    return false;
}
