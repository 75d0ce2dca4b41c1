// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/births.h"

#include "runtime/live/live.h"

static struct birth **tops[LIVE_TOP_COUNT];  // (atomic) each LIVE_MID_COUNT leaves

static unsigned granule_shift(void) {
    return live.is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
}

// Memory in its place, unless another thread was faster.
static COLD void *place_fill(void *place, uint64_t bytes) {
    void **slot = place, *there = NULL, *made = sys_map(bytes);
    if (!made) return NULL;
    if (__atomic_compare_exchange_n(slot, &there, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    sys_unmap(made, bytes);
    return there;
}

struct birth *births_at(uintptr_t address) {
    const uintptr_t leaf_mask = ((uintptr_t)1 << LIVE_LEAF_SHIFT) - 1;
    struct birth ***top = &tops[(address >> LIVE_MID_SHIFT) % LIVE_TOP_COUNT];
    struct birth **mid = __atomic_load_n(top, __ATOMIC_ACQUIRE);
    if (unlikely(!mid)) mid = place_fill(top, LIVE_MID_COUNT * sizeof *mid);
    if (unlikely(!mid)) return NULL;
    struct birth **place = &mid[(address >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT];
    struct birth *leaf = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    uint64_t leaf_bytes = sizeof *leaf << (LIVE_LEAF_SHIFT - granule_shift());
    if (unlikely(!leaf)) leaf = place_fill(place, leaf_bytes);
    return leaf ? &leaf[(address & leaf_mask) >> granule_shift()] : NULL;
}
