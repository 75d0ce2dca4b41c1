// SPDX-License-Identifier: Apache-2.0
// Stacks of many forms are interned by two threads and read back frame by frame.
#include "runtime/stack/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/stack/recording.h"

enum { STACKS = 12000, DEPTH_MAX = 3000, POOL = 400, WINDOWS = 20, SLOTS = 2, BUCKETS = 1 << 15 };

// A stack that was interned: frames innermost first, and its cell in either thread.
struct known {
    uint32_t count;
    uintptr_t *frames;
    uint32_t cell[SLOTS];
    struct known *next;
};

static struct known *known[BUCKETS];
static uintptr_t pool[POOL];
static struct stack_thread threads[SLOTS];
static struct read_frame decoded[CAIRN_DEPTH_MAX + 1];

static void pool_fill(uint64_t *seed) {
    for (int i = 0; i < POOL; i++) {
        uint64_t window = random_below(seed, WINDOWS);
        uint64_t base =
            window == 0 ? 0x400000 : 0x7f0000000000u + (window * 7 << CAIRN_WINDOW_BITS);
        pool[i] = base + CAIRN_CUT_LIMIT + random_below(seed, 1 << 24);
    }
}

static void threads_start(void) {
    memset(threads, 0, sizeof threads);
    stacks.depth_limit = CAIRN_DEPTH_MAX;
    stacks.seed_table = 0x1234567812345678;
    stacks.seed_check = 0x9876543298765432;
    for (uint16_t slot = 0; slot < SLOTS; slot++)
        assert_true(stack_thread_init(&threads[slot], slot));
}

// The next stack of a program: keeps some outer frames of the last one, or begins anew; recursion
// repeats a frame many times; now and then it was cut.
static uint32_t stack_pick(uint64_t *seed, uintptr_t *frames, const uintptr_t *last,
                           uint32_t last_count) {
    uint32_t keep = random_chance(seed, 90) ? (uint32_t)random_below(seed, last_count + 1) : 0;
    uint32_t fresh = 1 + (uint32_t)random_below(seed, 12);
    if (random_chance(seed, 1)) fresh = 1 + (uint32_t)random_below(seed, DEPTH_MAX);
    if (keep + fresh > DEPTH_MAX) keep = 0;
    uint32_t count = keep + fresh;
    memcpy(frames + fresh, last + last_count - keep, keep * sizeof *frames);
    bool is_recursion = random_chance(seed, 10);
    uintptr_t same = pool[random_below(seed, POOL)];
    for (uint32_t i = 0; i < fresh; i++)
        frames[i] = is_recursion ? same : pool[random_below(seed, POOL)];
    if (keep == 0 && random_chance(seed, 20))
        frames[count - 1] = CAIRN_CUT_NO_CFI + random_below(seed, 5);
    return count;
}

static struct known *known_find(const uintptr_t *frames, uint32_t count) {
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++) sum = (sum ^ frames[i]) * 0x100000001b3u;
    struct known **at = &known[(sum ^ sum >> 32) % BUCKETS];
    for (struct known *one = *at; one; one = one->next)
        if (one->count == count && memcmp(one->frames, frames, count * sizeof *frames) == 0)
            return one;
    struct known *fresh = calloc(1, sizeof *fresh);
    fresh->frames = malloc(count * sizeof *frames);
    fresh->count = count;
    memcpy(fresh->frames, frames, count * sizeof *frames);
    fresh->next = *at;
    *at = fresh;
    return fresh;
}

static void known_free(void) {
    for (int i = 0; i < BUCKETS; i++) {
        while (known[i]) {
            struct known *one = known[i];
            known[i] = one->next;
            free(one->frames);
            free(one);
        }
    }
}

static void check_decodes(const struct known *one, uint32_t id) {
    assert_int_equal(read_stack(id, decoded, CAIRN_DEPTH_MAX + 1), one->count);
    for (uint32_t i = 0; i < one->count; i++) {
        uintptr_t frame = one->frames[one->count - 1 - i];
        assert_int_equal(decoded[i].value, frame);
        assert_int_equal(decoded[i].is_cut, frame < CAIRN_CUT_LIMIT);
        assert_int_equal(decoded[i].module, 0);
    }
}

// Interns what is in the thread's buffer; the same stack must get the same cell, another one never.
static uint32_t intern(uint32_t slot, uint32_t count) {
    struct stack_thread *thread = &threads[slot];
    struct known *one = known_find(thread->frames, count);
    uint32_t new_cells = thread->next_cell;
    bool is_lost = true;
    uint32_t id = stack_intern(thread, count, &is_lost);
    assert_false(is_lost);
    assert_true(id > CAIRN_CELL_OTHER);
    assert_int_equal(cell_owner(id), slot);
    if (one->cell[slot]) {
        assert_int_equal(id, one->cell[slot]);
        assert_int_equal(thread->next_cell, new_cells);
    } else {
        check_decodes(one, id);
    }
    one->cell[slot] = id;
    return id;
}

static void check_all(void) {
    uint32_t owner_of_cell_count = 0;
    uint8_t *seen = calloc(recording_used[3] / sizeof(struct cairn_cell), 1);
    for (int i = 0; i < BUCKETS; i++) {
        for (const struct known *one = known[i]; one; one = one->next) {
            for (int slot = 0; slot < SLOTS; slot++) {
                if (!one->cell[slot]) continue;
                assert_false(seen[one->cell[slot]]);
                seen[one->cell[slot]] = 1;
                check_decodes(one, one->cell[slot]);
                owner_of_cell_count++;
            }
        }
    }
    assert_int_equal(owner_of_cell_count,
                     threads[0].table.entry_count + threads[1].table.entry_count);
    free(seen);
}

static uint32_t pick_into(struct stack_thread *thread, uint64_t *seed) {
    return stack_pick(seed, thread->frames, thread->last_frames, thread->last_count);
}

static void test_random_stacks_are_read_back(void **state) {
    (void)state;
    uint64_t seed = 1;
    recording_start(1 << 20, 1 << 24);
    threads_start();
    pool_fill(&seed);
    for (int i = 0; i < STACKS; i++) {
        uint32_t slot = (uint32_t)random_below(&seed, SLOTS);
        intern(slot, pick_into(&threads[slot], &seed));
        if (!random_chance(&seed, 30)) continue;
        struct stack_thread *thread = &threads[slot];  // the same once more
        memcpy(thread->frames, thread->last_frames, thread->last_count * sizeof(uintptr_t));
        intern(slot, thread->last_count);
    }
    check_all();
    known_free();
}

// An older stack comes back after others; a jump out of an event forgets the last one.
static void test_old_stacks_and_recovery(void **state) {
    (void)state;
    uint64_t seed = 2;
    recording_start(1 << 20, 1 << 24);
    threads_start();
    pool_fill(&seed);
    for (int i = 0; i < 300; i++) intern(0, pick_into(&threads[0], &seed));
    for (int i = 0; i < BUCKETS; i++) {
        for (struct known *one = known[i]; one; one = one->next) {
            memcpy(threads[0].frames, one->frames, one->count * sizeof(uintptr_t));
            if (random_chance(&seed, 20)) stack_thread_recover(&threads[0]);
            intern(0, one->count);
        }
    }
    check_all();
    known_free();
}

static void test_deepest_stack(void **state) {
    (void)state;
    recording_start(1 << 12, 1 << 20);
    threads_start();
    for (uint32_t i = 0; i < CAIRN_DEPTH_MAX; i++)
        threads[0].frames[i] = 0x7f1234560000 + i % 3 * ((uintptr_t)1 << 40);
    intern(0, CAIRN_DEPTH_MAX);
    for (uint32_t i = 0; i < CAIRN_DEPTH_MAX; i++) threads[0].frames[i] = threads[0].last_frames[i];
    threads[0].frames[0] = 0x400100;
    intern(0, CAIRN_DEPTH_MAX);
    check_all();
    known_free();
}

static void test_foreign_cells(void **state) {
    (void)state;
    uint64_t seed = 3;
    enum { COUNT = 2000 };
    static uint32_t own[COUNT], foreign[COUNT];
    recording_start(1 << 16, 1 << 22);
    threads_start();
    pool_fill(&seed);
    for (int i = 0; i < COUNT; i++) {
        own[i] = intern(0, pick_into(&threads[0], &seed));
        foreign[i] = stack_foreign(&threads[1], own[i]);
        intern(1, pick_into(&threads[1], &seed));
        assert_int_equal(stack_foreign(&threads[1], own[i]), foreign[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        const uint32_t *record =
            (const uint32_t *)stacks.records.base + cells.cold[foreign[i]].record;
        assert_int_equal(cell_owner(foreign[i]), 1);
        assert_int_equal(record[0], own[i]);
        assert_int_equal(record[1], CAIRN_RECORD_FOREIGN);
        for (int k = 0; k < i; k++) assert_int_equal(own[i] == own[k], foreign[i] == foreign[k]);
    }
    known_free();
}

// Either section full: the stack is lost, said so, and nothing else changes.
static void test_full_sections(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        uint64_t seed = 4;
        int lost = 0, kept = 0;
        recording_start(kind ? 1 << 16 : 1 << 10, kind ? 1 << 14 : 1 << 22);
        threads_start();
        pool_fill(&seed);
        for (int i = 0; i < 4000; i++) {
            bool is_lost = false;
            uint32_t count = pick_into(&threads[0], &seed);
            uint32_t id = stack_intern(&threads[0], count, &is_lost);
            assert_int_equal(is_lost, id == CAIRN_CELL_OTHER);
            lost += is_lost;
            kept += !is_lost;
            assert_true(stack_foreign(&threads[0], 5) != CAIRN_CELL_NONE);
        }
        assert_true(lost > 300 && kept > 300);
    }
}

// A program goes on losing stacks for hours: that must not fill the recording with records that
// belong to no cell.
static void test_lost_stacks_cost_nothing(void **state) {
    (void)state;
    uint64_t seed = 6;
    bool is_lost = false;
    recording_start(1 << 10, 1 << 22);
    threads_start();
    pool_fill(&seed);
    while (!is_lost) stack_intern(&threads[0], pick_into(&threads[0], &seed), &is_lost);
    uint64_t used = recording_used[2], slack = 2 * SYS_PAGE_BYTES;
    for (int i = 0; i < 20000; i++)
        stack_intern(&threads[0], pick_into(&threads[0], &seed), &is_lost);
    assert_true(recording_used[2] <= used + slack);
}

// After code was replaced, equal addresses are other frames: nothing of the last stack is kept.
static void test_a_new_module_generation(void **state) {
    (void)state;
    uint64_t seed = 5;
    bool is_lost;
    recording_start(1 << 12, 1 << 16);
    threads_start();
    pool_fill(&seed);
    uint32_t count = pick_into(&threads[0], &seed);
    uint32_t before = stack_intern(&threads[0], count, &is_lost);
    modules.generation++;
    memcpy(threads[0].frames, threads[0].last_frames, count * sizeof(uintptr_t));
    threads[0].frames[0] = 0x400100;
    uint32_t after = stack_intern(&threads[0], count, &is_lost);
    const uint32_t *record = (const uint32_t *)stacks.records.base + cells.cold[after].record;
    assert_true(before != after);
    assert_int_equal(record[0], CAIRN_CELL_NONE);
    assert_int_equal(CAIRN_RECORD_NEW(record[1]), count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_stacks_are_read_back),
        cmocka_unit_test(test_old_stacks_and_recovery),
        cmocka_unit_test(test_deepest_stack),
        cmocka_unit_test(test_foreign_cells),
        cmocka_unit_test(test_full_sections),
        cmocka_unit_test(test_lost_stacks_cost_nothing),
        cmocka_unit_test(test_a_new_module_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
