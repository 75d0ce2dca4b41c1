// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/live_block.h"

#include <elf.h>

#include "format/live_map.h"

static uint64_t top_count(const struct cairn_header *header) {
    bool is_arm = header->machine == EM_AARCH64;
    return UINT64_C(1) << ((is_arm ? LIVE_ADDRESS_BITS_AARCH64 : LIVE_ADDRESS_BITS_X86_64) -
                           LIVE_MID_SHIFT);
}

// The word for an address in a table of pointers to tables; 0: there is none.
static uint64_t word_at(const struct memory_reader *memory, uint64_t table, uint64_t index) {
    uint64_t word = 0;
    return table && memory_read_word(memory, table + index * sizeof word, &word) ? word : 0;
}

bool live_block_cell(const struct memory_reader *memory, const struct cairn_header *header,
                     uint64_t address, uint32_t *cell) {
    const uint64_t odd_bytes = 8, half_bytes = 16;
    bool is_wide = header->slot_bytes == sizeof(uint64_t);
    bool is_odd = is_wide && address % half_bytes == odd_bytes;
    uint64_t tops = top_count(header), top = address >> LIVE_MID_SHIFT, slot = 0;
    if (top >= tops || !header->live_map) return false;
    uint64_t mid = word_at(memory, header->live_map, top + (is_odd ? tops : 0));
    uint64_t origin = word_at(memory, mid, (address >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT);
    uint64_t granule = address >> (is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT);
    size_t bytes = is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    if (!origin || !memory_read(memory, origin + granule * bytes, &slot, bytes)) return false;
    uint64_t half = (slot >> LIVE_HALF_SHIFT & 1) * half_bytes;
    bool begins_there = is_wide ? address % half_bytes == (is_odd ? odd_bytes : 0)
                                : (granule << LIVE_NARROW_SHIFT) + half == address;
    *cell = is_wide ? (uint32_t)slot : (uint32_t)slot >> LIVE_ID_SHIFT;
    return *cell && begins_there;
}
