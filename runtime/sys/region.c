// SPDX-License-Identifier: Apache-2.0
#include "runtime/sys/region.h"

#include "runtime/sys/sys.h"
#include "runtime/sys/veil.h"

// A thread that claims is taken for one that is gone once so many chunks more are wanted.
enum { CLAIM_BEHIND_CHUNKS = 8 };

static bool region_fill(struct region *region) {
    __atomic_store_n(&region->is_full, 1, __ATOMIC_RELAXED);
    return false;
}

// A page at first, then as much as there is: most processes of a build never need more than that
// page of a dozen sections. A large region grows by a sixteenth, since each claim stops all threads
// that map memory.
static uint64_t next_chunk_bytes(const struct region *region, uint64_t claimed_bytes) {
    const uint64_t share = 16, most_chunks = 16;
    uint64_t least = sys_page_bytes(), bytes = claimed_bytes < least ? least : claimed_bytes;
    uint64_t chunks = bytes / share / region->chunk_bytes;
    if (chunks > 1) return (chunks < most_chunks ? chunks : most_chunks) * region->chunk_bytes;
    return bytes < region->chunk_bytes ? bytes : region->chunk_bytes;
}

// Claims no more than what one taker needs, while another thread is claiming a chunk: that one will
// be some time, since it waits for the kernel, and hundreds may come meanwhile. It lets core dumps
// show these pages too.
static bool claim_piece(struct region *region, uint64_t from_bytes, uint64_t end_bytes) {
    uint64_t from = from_bytes / sys_page_bytes() * sys_page_bytes();
    uint64_t to = sys_page_up(end_bytes);
    if (to > region->capacity_bytes) to = region->capacity_bytes;
    return (to >= end_bytes && veil_lift(region->base + to) &&
            sys_claim_some(region->base + from, to - from)) ||
           region_fill(region);
}

// True if the caller is to claim what comes next: nobody else does, or who does is so far behind
// that it may never be done, as a signal handler that jumps out leaves it. Each that takes over
// moves the bound to twice as far, so that few do.
static bool claim_begin(struct region *region, uint64_t end_bytes) {
    uint64_t behind = __atomic_load_n(&region->behind_bytes, __ATOMIC_RELAXED);
    uint64_t next = 2 * end_bytes + CLAIM_BEHIND_CHUNKS * region->chunk_bytes;
    return end_bytes > behind &&
           __atomic_compare_exchange_n(&region->behind_bytes, &behind, next, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void claim_end(struct region *region) {
    __atomic_store_n(&region->behind_bytes, 0, __ATOMIC_RELEASE);
}

// From where on the chunk after `claimed_bytes` is claimed: of a large region from the middle of
// its last chunk on, so that others go on meanwhile.
static uint64_t ahead_of(const struct region *region, uint64_t claimed_bytes) {
    const uint64_t least_bytes = 256u << 10;
    if (claimed_bytes < least_bytes) return claimed_bytes;
    return claimed_bytes - next_chunk_bytes(region, claimed_bytes) / 2;
}

// A claim that nobody needs yet may fail: it is tried again once it is needed.
static bool claim_chunk(struct region *region, uint64_t end_bytes) {
    uint64_t from = __atomic_load_n(&region->claimed_bytes, __ATOMIC_ACQUIRE), known = from;
    if (end_bytes <= __atomic_load_n(&region->ahead_bytes, __ATOMIC_RELAXED)) return true;
    bool is_needed = end_bytes > from;
    uint64_t chunk = next_chunk_bytes(region, from);
    uint64_t to = ((is_needed ? end_bytes : from + 1) + chunk - 1) / chunk * chunk;
    if (to > region->capacity_bytes) to = region->capacity_bytes;
    bool is_ok = to >= end_bytes && veil_lift(region->base + to) &&
                 (to <= from || sys_claim(region->base + from, to - from));
    if (!is_ok && is_needed) return region_fill(region);
    while (is_ok && known < to &&
           !__atomic_compare_exchange_n(&region->claimed_bytes, &known, to, false, __ATOMIC_RELEASE,
                                        __ATOMIC_ACQUIRE)) {
    }
    if (is_ok && known < to) sys_count_own((int64_t)(to - known));
    uint64_t ahead = is_ok && to > from ? ahead_of(region, to) : from;
    __atomic_store_n(&region->ahead_bytes, ahead, __ATOMIC_RELAXED);
    return true;
}

static bool is_claimed(const struct region *region, uint64_t end_bytes) {
    return end_bytes <= __atomic_load_n(&region->claimed_bytes, __ATOMIC_ACQUIRE);
}

static COLD bool region_claim_slow(struct region *region, uint64_t from_bytes, uint64_t end_bytes) {
    if (!claim_begin(region, end_bytes))
        return is_claimed(region, end_bytes) || claim_piece(region, from_bytes, end_bytes);
    bool is_ok = claim_chunk(region, end_bytes);
    claim_end(region);
    return is_ok;
}

static bool claim_from(struct region *region, uint64_t from_bytes, uint64_t end_bytes) {
    bool is_there = end_bytes <= __atomic_load_n(&region->ahead_bytes, __ATOMIC_ACQUIRE);
    return likely(is_there) || region_claim_slow(region, from_bytes, end_bytes);
}

bool region_claim(struct region *region, uint64_t end_bytes) {
    uint64_t from = __atomic_load_n(&region->claimed_bytes, __ATOMIC_ACQUIRE);
    return claim_from(region, from, end_bytes);
}

void *region_take(struct region *region, uint64_t bytes) {
    if (unlikely(__atomic_load_n(&region->is_full, __ATOMIC_RELAXED))) return 0;
    uint64_t at = __atomic_fetch_add(region->used_bytes, bytes, __ATOMIC_RELAXED);
    if (unlikely(at > region->capacity_bytes || bytes > region->capacity_bytes - at)) {
        region_fill(region);
        return 0;
    }
    return claim_from(region, at, at + bytes) ? region->base + at : 0;
}

bool region_reach(struct region *region, uint64_t end_bytes) {
    uint64_t used = region->base ? __atomic_load_n(region->used_bytes, __ATOMIC_RELAXED) : 0;
    if (end_bytes <= used) return true;
    if (end_bytes > region->capacity_bytes || !claim_from(region, used, end_bytes)) return false;
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
    if (veil_lift(region->base + keep)) return;
    capacity = veil_readable_bytes(region->base, keep);
    __atomic_store_n(&region->capacity_bytes, capacity, __ATOMIC_RELEASE);
}
