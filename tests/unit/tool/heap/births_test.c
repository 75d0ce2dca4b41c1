// SPDX-License-Identifier: Apache-2.0
// How old blocks are, by births behind the slots of a live map that the test lays out by hand:
// narrow and wide slots, blocks at odd multiples of 8, clocks that disagree or have passed 2^32,
// and what is not known.
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/live_map.h"
#include "tool/heap/births.h"

enum { MAP = 0x10000, MS = 1000000, LEAF_MOST = 1 << 22, BIRTH_BYTES = 8 };
#define BLOCK UINT64_C(0x123456789040)

// Tops, one mid and one leaf, one behind the other.
static uint8_t *memory;
static uint64_t mid_at, leaf_at, memory_bytes;
static struct memory_segment segment;
static struct core_image core;
static struct cairn_header header;

static void put(uint64_t address, uint64_t value, size_t size) {
    assert_true(address >= MAP && address + size <= MAP + memory_bytes);
    memcpy(memory + address - MAP, &value, size);
}

static unsigned shift(bool is_wide) {
    return is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
}

static uint64_t slot_bytes(bool is_wide) {
    return is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
}

static void lay_out(uint64_t block, bool is_wide) {
    const uint64_t tops = 1u << (LIVE_ADDRESS_BITS_X86_64 - LIVE_MID_SHIFT);
    const uint64_t start = block >> LIVE_LEAF_SHIFT << LIVE_LEAF_SHIFT;
    const uint64_t top = (block >> LIVE_MID_SHIFT) + (is_wide && block & 8 ? tops : 0);
    mid_at = MAP + 2 * tops * sizeof(uint64_t);
    leaf_at = mid_at + LIVE_MID_COUNT * sizeof(uint64_t);
    memory_bytes = leaf_at - MAP + LEAF_MOST;
    memory = calloc(1, memory_bytes);
    assert_non_null(memory);
    segment = (struct memory_segment){MAP, MAP + memory_bytes, 0, memory_bytes, true, false};
    core = (struct core_image){.source = {.descriptor = -1, .bytes = memory, .size = memory_bytes},
                               .map = memory,
                               .machine = EM_X86_64};
    core.segments.items = &segment;
    core.segments.count = 1;
    header = (struct cairn_header){.live_map = MAP,
                                   .machine = EM_X86_64,
                                   .has_births = 1,
                                   .slot_bytes = (uint32_t)slot_bytes(is_wide)};
    put(MAP + top * sizeof(uint64_t), mid_at, sizeof(uint64_t));
    put(mid_at + (block >> LIVE_LEAF_SHIFT) % LIVE_MID_COUNT * sizeof(uint64_t),
        leaf_at - (start >> shift(is_wide)) * slot_bytes(is_wide), sizeof(uint64_t));
}

static void be_born(uint64_t block, bool is_wide, uint32_t ms) {
    const uint64_t slots = UINT64_C(1) << (LIVE_LEAF_SHIFT - shift(is_wide));
    const uint64_t index = block % (UINT64_C(1) << LIVE_LEAF_SHIFT) >> shift(is_wide);
    put(leaf_at + slots * slot_bytes(is_wide) + index * BIRTH_BYTES + 4, ms, sizeof ms);
}

static int teardown(void **state) {
    (void)state;
    free(memory);
    memory = NULL;
    return 0;
}

static void test_ages(void **state) {
    const bool are_wide[] = {false, true};
    uint64_t age;
    for (size_t i = 0; i < 2; i++) {
        for (uint64_t odd = 0; odd <= (are_wide[i] ? 8 : 0); odd += 8) {
            const uint64_t other = BLOCK + 0x100 + odd;
            lay_out(BLOCK + odd, are_wide[i]);
            be_born(BLOCK + odd, are_wide[i], 5000);
            be_born(other, are_wide[i], 7500);
            core.taken_ns = UINT64_C(8000) * MS;
            struct core_births births = core_births_of(&core, &header);
            assert_true(core_births_age(&births, BLOCK + odd, &age));
            assert_int_equal(age, 3000);
            assert_true(core_births_age(&births, other, &age));
            assert_int_equal(age, 500);
            assert_false(core_births_age(&births, BLOCK + odd + (UINT64_C(1) << 23), &age));
            assert_true(core_births_age(&births, BLOCK + odd, &age));
            assert_int_equal(age, 3000);
            teardown(state);
        }
    }
}

static void test_clocks(void **state) {
    uint64_t age;
    (void)state;
    lay_out(BLOCK, false);
    be_born(BLOCK, false, 5000);
    header.start_clock_ns = UINT64_C(4000) * MS;  // of a core: by the tool's clock
    header.control.clock_ms = 2500;
    struct core_births births = core_births_of(&core, &header);
    assert_true(core_births_age(&births, BLOCK, &age));
    assert_int_equal(age, 1500);
    header.control.clock_ms = 990;  // it stood still
    births = core_births_of(&core, &header);
    assert_true(core_births_age(&births, BLOCK, &age));
    assert_int_equal(age, 0);
    be_born(BLOCK, false, UINT32_MAX - 99);
    core.taken_ns = ((UINT64_C(1) << 32) + 900) * MS;
    births = core_births_of(&core, &header);
    assert_true(core_births_age(&births, BLOCK, &age));
    assert_int_equal(age, 1000);
}

static void test_not_known(void **state) {
    uint64_t age;
    (void)state;
    lay_out(BLOCK, false);
    header.has_births = 0;
    struct core_births births = core_births_of(&core, &header);
    assert_false(core_births_age(&births, BLOCK, &age));
    header.has_births = 1;
    header.live_map = 0x10;  // not there
    births = core_births_of(&core, &header);
    assert_false(core_births_age(&births, BLOCK, &age));
    header.live_map = MAP;
    segment.bytes = memory_bytes = mid_at - MAP + sizeof(uint64_t);  // cut off
    births = core_births_of(&core, &header);
    assert_false(core_births_age(&births, BLOCK, &age));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ages),
        cmocka_unit_test_teardown(test_clocks, teardown),
        cmocka_unit_test_teardown(test_not_known, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
