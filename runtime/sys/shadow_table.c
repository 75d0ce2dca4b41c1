// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/shadow_table.h"

#include "runtime/sys/sys.h"

// Memory in its place, unless another thread was faster.
static COLD void *place_fill(void **place, uint64_t bytes) {
    void *there = NULL, *made = sys_map(bytes);
    if (!made) return NULL;
    if (__atomic_compare_exchange_n(place, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    sys_unmap(made, bytes);
    return there;
}

void *shadow_table_at(struct shadow_table *table, uintptr_t address, bool is_made) {
    const uintptr_t leaf_mask = ((uintptr_t)1 << LIVE_LEAF_SHIFT) - 1;
    void **top = (void **)&table->tops[(address >> LIVE_MID_SHIFT) % LIVE_TOP_COUNT];
    void **mid = __atomic_load_n(top, __ATOMIC_ACQUIRE);
    if (unlikely(!mid) && is_made) mid = place_fill(top, LIVE_MID_COUNT * sizeof *mid);
    if (unlikely(!mid)) return NULL;
    void **place = &mid[(address >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT];
    uint8_t *leaf = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    size_t leaf_bytes = table->entry_bytes << (LIVE_LEAF_SHIFT - table->granule_shift);
    if (unlikely(!leaf) && is_made) leaf = place_fill(place, leaf_bytes);
    return leaf ? leaf + ((address & leaf_mask) >> table->granule_shift) * table->entry_bytes
                : NULL;
}

void shadow_table_each(const struct shadow_table *table, shadow_table_visit *visit, void *context) {
    const size_t count = (size_t)1 << (LIVE_LEAF_SHIFT - table->granule_shift);
    for (uintptr_t top = 0; top < LIVE_TOP_COUNT; top++) {
        void **mid = __atomic_load_n(&table->tops[top], __ATOMIC_ACQUIRE);
        for (uintptr_t i = 0; mid && i < LIVE_MID_COUNT; i++) {
            void *leaf = __atomic_load_n(&mid[i], __ATOMIC_ACQUIRE);
            if (leaf) visit(context, leaf, count, top << LIVE_MID_SHIFT | i << LIVE_LEAF_SHIFT);
        }
    }
}
