// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/births.h"

#include <elf.h>

#include "format/live_map.h"
#include "tool/base/clock.h"

enum { BIRTH_BYTES = 8, BIRTH_MS = 4, ODD = 8 };  // a birth's milliseconds are its second half
static const uint64_t ms_ns = 1000000;

struct core_births core_births_of(const struct core_image *core,
                                  const struct cairn_header *header) {
    const bool is_arm = header->machine == EM_AARCH64;
    const uint64_t start_ms = header->start_clock_ns / ms_ns;
    uint64_t now_ms = core->taken_ns ? core->taken_ns / ms_ns : start_ms + header->control.clock_ms;
    return (struct core_births){
        .core = core,
        .live_map = header->live_map,
        .top_count = 1u << ((is_arm ? LIVE_ADDRESS_BITS_AARCH64 : LIVE_ADDRESS_BITS_X86_64) -
                            LIVE_MID_SHIFT),
        .now_ms = (uint32_t)now_ms,
        .are_known = header->has_births && header->live_map,
        .is_wide = header->slot_bytes == sizeof(uint64_t)};
}

// Where the births of the 4 MiB around a block lie; 0: not known.
static uint64_t births_at(const struct core_births *births, uint64_t address) {
    const uint64_t start = address >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT;
    const unsigned shift = births->is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
    const uint64_t slot_bytes = births->is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    uint64_t top = (address >> LIVE_MID_SHIFT) % births->top_count, mid, origin;
    if (births->is_wide && address & ODD) top += births->top_count;
    if (!core_read(births->core, births->live_map + top * sizeof mid, &mid, sizeof mid)) return 0;
    mid += address % ((uint64_t)1 << LIVE_MID_SHIFT) >> LIVE_LEAF_SHIFT << 3;
    if (!core_read(births->core, mid, &origin, sizeof origin) || !origin) return 0;
    return origin + ((start >> shift) + ((uint64_t)1 << (LIVE_LEAF_SHIFT - shift))) * slot_bytes;
}

bool core_births_age(struct core_births *births, uint64_t address, uint64_t *age_ms) {
    const unsigned shift = births->is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
    // of blocks at odd multiples of 8 the births lie elsewhere
    const uint64_t leaf = address >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT | (address & ODD);
    const uint64_t inside = address % ((uint64_t)1 << LIVE_LEAF_SHIFT);
    uint32_t born_ms;
    if (!births->are_known) return false;
    if (!births->at || births->leaf != leaf) births->at = births_at(births, address);
    births->leaf = leaf;
    const uint64_t at = births->at + (inside >> shift) * BIRTH_BYTES + BIRTH_MS;
    if (!births->at || !core_read(births->core, at, &born_ms, sizeof born_ms)) return false;
    int32_t age = (int32_t)(births->now_ms - born_ms);
    *age_ms = age > 0 ? (uint64_t)age : 0;  // clocks that are looked at now and then differ
    return true;
}
