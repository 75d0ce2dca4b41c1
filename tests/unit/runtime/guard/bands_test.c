// SPDX-License-Identifier: Apache-2.0
// Bands: what a block needs, what is found changed and where, and blocks that are freed while
// another thread looks at them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/guard/bands.h"

enum { BAND = 32 };

// A block of `size` in memory with canaries of the test's own around the bands.
static uint8_t *make(size_t size, size_t alignment) {
    size_t whole, front;
    assert_true(bands_plan(size, alignment, &whole, &front));
    uint8_t *memory = aligned_alloc(alignment, (whole + alignment - 1) / alignment * alignment);
    assert_non_null(memory);
    assert_true(front >= BAND && front % alignment == 0);
    assert_int_equal(whole, front + size + BAND);
    assert_true(bands_put((uintptr_t)memory + front, size, alignment));
    return memory + front;
}

static uint64_t take(uint8_t *block) {
    return bands_take(bands_find((uintptr_t)block));
}

static void release(uint8_t *block, uint64_t word) {
    free(block - bands_block((uintptr_t)block, word).front_bytes);
}

static void test_what_fits(void **state) {
    (void)state;
    size_t whole, front;
    assert_false(bands_plan(SIZE_MAX, 16, &whole, &front));
    assert_false(bands_plan(SIZE_MAX - BAND, 16, &whole, &front));
    assert_false(bands_plan((size_t)1 << 48, 16, &whole, &front));
    assert_true(bands_plan(0, 16, &whole, &front));
    assert_int_equal(whole, 2 * BAND);
    assert_true(bands_plan(100, 4096, &whole, &front));
    assert_int_equal(front, 4096);
}

// Each changed byte of either band is found, alone, at its distance; the block's own are not.
static void test_every_byte(void **state) {
    (void)state;
    for (size_t size = 0; size < 70; size += 23) {
        uint8_t *block = make(size, 16);
        for (int64_t offset = -BAND; offset < (int64_t)size + BAND; offset++) {
            struct bands_block known = {(uintptr_t)block, size, BAND};
            struct cairn_overrun damage = {0};
            bool is_own = offset >= 0 && offset < (int64_t)size;
            block[offset] ^= 0x55;
            assert_int_equal(bands_compare(&known, &damage), !is_own);
            const struct cairn_overrun_side *side = offset < 0 ? &damage.before : &damage.behind;
            uint32_t distance = (uint32_t)(offset < 0 ? -offset : offset - (int64_t)size + 1);
            if (!is_own) {
                assert_int_equal(damage.before.changed_bytes + damage.behind.changed_bytes, 1);
                assert_int_equal(side->nearest, distance);
                assert_int_equal(side->farthest, distance);
                assert_int_equal(side->sample[0], block[offset]);
            }
            block[offset] ^= 0x55;
        }
        release(block, take(block));
    }
}

static void test_table(void **state) {
    (void)state;
    uint8_t *block = make(100, 64);
    struct bands_entry *entry = bands_find((uintptr_t)block);
    assert_non_null(entry);
    assert_null(bands_find((uintptr_t)block + 16));
    assert_null(bands_find((uintptr_t)block + 1));
    assert_null(bands_find((uintptr_t)block - 64));
    entry->cell = 17;
    uint64_t word = bands_take(entry);
    struct bands_block known = bands_block((uintptr_t)block, word);
    assert_int_equal(known.size, 100);
    assert_int_equal(known.front_bytes, 64);
    assert_int_equal(entry->cell, 17);
    assert_null(bands_find((uintptr_t)block));
    release(block, word);
}

struct seen {
    uint8_t *wanted;
    unsigned count, told_count;
    bool is_freeing;
    void *released;
};
static struct seen seen;

// While it is looked at, the block is freed: that is left to whoever looks.
static bool look(const struct bands_block *block, const struct bands_entry *entry, bool is_told,
                 void *context) {
    (void)entry, (void)context;
    if (block->address != (uintptr_t)seen.wanted) return false;
    seen.count++;
    seen.told_count += is_told;
    if (seen.is_freeing) assert_int_equal(take(seen.wanted), 0);
    return true;
}

static void note_release(void *memory) {
    seen.released = memory;
}

static void test_freed_while_looked_at(void **state) {
    (void)state;
    const struct bands_visitor visitor = {look, note_release, NULL};
    uint8_t *block = make(50, 16);
    seen = (struct seen){.wanted = block};
    bands_each(&visitor);
    bands_each(&visitor);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.told_count, 1);  // what the first look said
    assert_null(seen.released);
    seen.is_freeing = true;
    bands_each(&visitor);
    assert_ptr_equal(seen.released, block - BAND);
    assert_null(bands_find((uintptr_t)block));
    bands_each(&visitor);
    assert_int_equal(seen.count, 3);
    free(block - BAND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_freed_while_looked_at),
    };
    bands_open(BAND);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
