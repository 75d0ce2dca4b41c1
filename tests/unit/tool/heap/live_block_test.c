// SPDX-License-Identifier: Apache-2.0
// One block of a live map, narrow and wide: found where it begins and nowhere else; a map that
// leads nowhere has none.
#include "tool/heap/live_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/live_map.h"

enum { CELL = 77 };
static const uint64_t block = UINT64_C(0x55dd14de20a0);

static uint64_t tops[2 * LIVE_TOP_COUNT], mid[LIVE_MID_COUNT];
static uint64_t slots[1 << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT)];  // room for narrow ones, too

// This program's own memory, as far as it belongs to the map.
static bool read_own(const void *context, uint64_t address, void *bytes, size_t size) {
    const struct {
        const void *start;
        size_t size;
    } parts[] = {{tops, sizeof tops}, {mid, sizeof mid}, {slots, sizeof slots}};
    (void)context;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t start = (uintptr_t)parts[i].start;
        if (address < start || address + size > start + parts[i].size) continue;
        memcpy(bytes, (const void *)(uintptr_t)address, size);
        return true;
    }
    return false;
}

static const struct memory_reader memory = {.read = read_own};

// A map that has the leaf of `block`, with slots of so many bytes.
static struct cairn_header map_of(uint32_t slot_bytes, bool is_odd) {
    const uint64_t leaf = block >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT;
    const uint32_t shift = slot_bytes == sizeof(uint32_t) ? LIVE_NARROW_SHIFT : LIVE_WIDE_SHIFT;
    memset(tops, 0, sizeof tops);
    memset(mid, 0, sizeof mid);
    memset(slots, 0, sizeof slots);
    tops[(block >> LIVE_MID_SHIFT) + (is_odd ? LIVE_TOP_COUNT : 0)] = (uintptr_t)mid;
    mid[(block >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT] =
        (uintptr_t)slots - (leaf >> shift) * slot_bytes;
    return (struct cairn_header){.live_map = (uintptr_t)tops, .slot_bytes = slot_bytes};
}

static bool finds(const struct cairn_header *header, uint64_t address) {
    uint32_t cell = 0;
    return live_block_cell(&memory, header, address, &cell) && cell == CELL;
}

static void test_narrow(void **state) {
    (void)state;
    const struct cairn_header header = map_of(sizeof(uint32_t), false);
    uint32_t *narrow = (uint32_t *)slots;
    uint64_t granule = block % (1 << LIVE_LEAF_SHIFT) >> LIVE_NARROW_SHIFT;
    narrow[granule] = CELL << LIVE_ID_SHIFT | 5;
    assert_true(finds(&header, block));
    assert_false(finds(&header, block + 16));
    assert_false(finds(&header, block + 32));
    narrow[granule] |= 1 << LIVE_HALF_SHIFT;
    assert_false(finds(&header, block));
    assert_true(finds(&header, block + 16));
}

static void test_wide(void **state) {
    (void)state;
    struct cairn_header header = map_of(sizeof(uint64_t), false);
    uint64_t granule = block % (1 << LIVE_LEAF_SHIFT) >> LIVE_WIDE_SHIFT;
    slots[granule] = UINT64_C(100) << 32 | CELL;
    assert_true(finds(&header, block));
    assert_false(finds(&header, block + 8));
    assert_false(finds(&header, block + 16));
    header = map_of(sizeof(uint64_t), true);
    slots[granule] = UINT64_C(100) << 32 | CELL;
    assert_true(finds(&header, block + 8));
    assert_false(finds(&header, block));
}

static void test_nothing_there(void **state) {
    (void)state;
    struct cairn_header header = map_of(sizeof(uint32_t), false);
    assert_false(finds(&header, block));
    assert_false(finds(&header, UINT64_MAX));
    assert_false(finds(&header, 0));
    mid[(block >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT] = 8;
    assert_false(finds(&header, block));
    header.live_map = 0;
    assert_false(finds(&header, block));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_narrow), cmocka_unit_test(test_wide),
                                       cmocka_unit_test(test_nothing_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
