// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/region.h"

#include "runtime/sys/sys.h"

static bool region_fill(struct region *region) {
    __atomic_store_n(&region->is_full, 1, __ATOMIC_RELAXED);
    return false;
}

// A page at first, then as much as there is: most processes of a build never need more than that
// page of a dozen sections.
static uint64_t next_chunk_bytes(const struct region *region, uint64_t claimed_bytes) {
    uint64_t least = sys_page_bytes(), bytes = claimed_bytes < least ? least : claimed_bytes;
    return bytes < region->chunk_bytes ? bytes : region->chunk_bytes;
}

static COLD bool region_claim_slow(struct region *region, uint64_t end_bytes) {
    uint64_t from = __atomic_load_n(&region->claimed_bytes, __ATOMIC_ACQUIRE);
    uint64_t chunk = next_chunk_bytes(region, from);
    uint64_t to = (end_bytes + chunk - 1) / chunk * chunk;
    if (to > region->capacity_bytes) to = region->capacity_bytes;
    if (to < end_bytes || !sys_claim(region->base + from, to - from)) return region_fill(region);
    sys_count_own((int64_t)(to - from));
    while (from < to && !__atomic_compare_exchange_n(&region->claimed_bytes, &from, to, false,
                                                     __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
    }
    return true;
}

bool region_claim(struct region *region, uint64_t end_bytes) {
    if (likely(end_bytes <= __atomic_load_n(&region->claimed_bytes, __ATOMIC_ACQUIRE))) return true;
    return region_claim_slow(region, end_bytes);
}

void *region_take(struct region *region, uint64_t bytes) {
    if (unlikely(__atomic_load_n(&region->is_full, __ATOMIC_RELAXED))) return 0;
    uint64_t at = __atomic_fetch_add(region->used_bytes, bytes, __ATOMIC_RELAXED);
    if (unlikely(at > region->capacity_bytes || bytes > region->capacity_bytes - at)) {
        region_fill(region);
        return 0;
    }
    return region_claim(region, at + bytes) ? region->base + at : 0;
}

bool region_reach(struct region *region, uint64_t end_bytes) {
    uint64_t used = region->base ? __atomic_load_n(region->used_bytes, __ATOMIC_RELAXED) : 0;
    if (end_bytes <= used) return true;
    if (end_bytes > region->capacity_bytes || !region_claim(region, end_bytes)) return false;
    while (used < end_bytes &&
           !__atomic_compare_exchange_n(region->used_bytes, &used, end_bytes, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return true;
}

void region_shrink(struct region *region, uint64_t headroom_bytes) {
    uint64_t keep = __atomic_load_n(&region->claimed_bytes, __ATOMIC_ACQUIRE) + headroom_bytes;
    uint64_t capacity = region->capacity_bytes;
    keep = sys_page_up(keep);
    if (keep >= capacity) return;
    __atomic_store_n(&region->capacity_bytes, keep, __ATOMIC_RELEASE);
    *region->space_bytes = keep;
    sys_release(region->base + keep, capacity - keep);
}
