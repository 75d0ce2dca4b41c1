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

// A stack that was interned, outermost frame first, and its cell in either thread.
struct known {
    uint32_t count;
    uintptr_t *frames;
    uint32_t cell[SLOTS];
    struct known *next;
};

// What a thread's walks leave behind: the last stack and how much of it is as before.
struct walked {
    struct frame frames[CAIRN_DEPTH_MAX];
    uint32_t count, keep;
};

static struct known *known[BUCKETS];
static uintptr_t pool[POOL];
static struct stack_thread threads[SLOTS];
static struct walked walked[SLOTS];
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
    memset(walked, 0, sizeof walked);
    stacks.seed = (struct stack_hash){0x1234567812345678, 0x9876543298765432};
    for (uint16_t slot = 0; slot < SLOTS; slot++) {
        struct stack_hash *parts = sys_reserve(CAIRN_DEPTH_MAX * sizeof *parts);
        assert_true(parts && stack_thread_init(&threads[slot], slot, parts));
    }
}

// The next stack of a program: keeps some outer frames of the last one, or begins anew; recursion
// repeats a frame many times; now and then it was cut. Not all that is kept may be told.
static void stack_pick(uint64_t *seed, struct walked *stack) {
    uint32_t keep = random_chance(seed, 90) ? (uint32_t)random_below(seed, stack->count + 1) : 0;
    uint32_t fresh = 1 + (uint32_t)random_below(seed, 12);
    if (random_chance(seed, 1)) fresh = 1 + (uint32_t)random_below(seed, DEPTH_MAX);
    if (keep + fresh > DEPTH_MAX) keep = 0;
    bool is_recursion = random_chance(seed, 10);
    uintptr_t same = pool[random_below(seed, POOL)];
    stack->count = keep + fresh;
    stack->keep = random_chance(seed, 10) ? (uint32_t)random_below(seed, keep + 1) : keep;
    for (uint32_t i = keep; i < stack->count; i++)
        stack->frames[i].pc = is_recursion ? same : pool[random_below(seed, POOL)];
    if (keep == 0 && random_chance(seed, 20))
        stack->frames[0].pc = CAIRN_CUT_NO_CFI + random_below(seed, 5);
}

static struct known *known_find(const struct frame *frames, uint32_t count) {
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++) sum = (sum ^ frames[i].pc) * 0x100000001b3u;
    struct known **at = &known[(sum ^ sum >> 32) % BUCKETS];
    for (struct known *one = *at; one; one = one->next) {
        uint32_t same = 0;
        while (same < count && one->count == count && one->frames[same] == frames[same].pc) same++;
        if (one->count == count && same == count) return one;
    }
    struct known *fresh = calloc(1, sizeof *fresh);
    fresh->frames = malloc(count * sizeof *fresh->frames);
    fresh->count = count;
    for (uint32_t i = 0; i < count; i++) fresh->frames[i] = frames[i].pc;
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
        uintptr_t frame = one->frames[i];
        assert_int_equal(decoded[i].value, frame);
        assert_int_equal(decoded[i].is_cut, frame < CAIRN_CUT_LIMIT);
        assert_int_equal(decoded[i].module, 0);
    }
}

// Interns what was walked; the same stack must get the same cell, another one never.
static uint32_t intern(uint32_t slot) {
    struct stack_thread *thread = &threads[slot];
    const struct walked *stack = &walked[slot];
    struct known *one = known_find(stack->frames, stack->count);
    uint32_t new_cells = thread->next_cell;
    enum stack_outcome outcome = STACK_LOST;
    uint32_t id = stack_intern(thread, stack->frames, stack->count, stack->keep, &outcome);
    assert_int_equal(outcome, one->cell[slot] ? STACK_KNOWN : STACK_NEW);
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

static uint32_t intern_next(uint32_t slot, uint64_t *seed) {
    stack_pick(seed, &walked[slot]);
    return intern(slot);
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

static void start(uint64_t *seed, uint64_t cell_limit, uint64_t word_limit) {
    sys_set_budget(UINT64_MAX);
    recording_start(cell_limit, word_limit);
    threads_start();
    pool_fill(seed);
}

static void test_random_stacks_are_read_back(void **state) {
    (void)state;
    uint64_t seed = 1;
    start(&seed, 1 << 20, 1 << 24);
    for (int i = 0; i < STACKS; i++) {
        uint32_t slot = (uint32_t)random_below(&seed, SLOTS);
        intern_next(slot, &seed);
        if (!random_chance(&seed, 30)) continue;
        walked[slot].keep = walked[slot].count;  // the same once more
        intern(slot);
    }
    check_all();
    known_free();
}

// An older stack comes back after others; a jump out of an event forgets the last one.
static void test_old_stacks_and_recovery(void **state) {
    (void)state;
    uint64_t seed = 2;
    start(&seed, 1 << 20, 1 << 24);
    for (int i = 0; i < 300; i++) intern_next(0, &seed);
    for (int i = 0; i < BUCKETS; i++) {
        for (struct known *one = known[i]; one; one = one->next) {
            struct walked *stack = &walked[0];
            stack->keep = 0;
            stack->count = one->count;
            for (uint32_t k = 0; k < one->count; k++) stack->frames[k].pc = one->frames[k];
            if (random_chance(&seed, 20)) stack_thread_recover(&threads[0]);
            intern(0);
        }
    }
    check_all();
    known_free();
}

// After a recovery, what the walk kept is not known to the interner any more.
static void test_recovery_outweighs_keep(void **state) {
    (void)state;
    uint64_t seed = 7;
    start(&seed, 1 << 20, 1 << 24);
    for (int i = 0; i < 2000; i++) {
        stack_pick(&seed, &walked[0]);
        if (random_chance(&seed, 30)) {
            memset(threads[0].parts, 0xaa, DEPTH_MAX * sizeof *threads[0].parts);
            stack_thread_recover(&threads[0]);
        }
        intern(0);
    }
    check_all();
    known_free();
}

static void test_deepest_stack(void **state) {
    (void)state;
    uint64_t seed = 8;
    start(&seed, 1 << 12, 1 << 20);
    for (uint32_t i = 0; i < CAIRN_DEPTH_MAX; i++)
        walked[0].frames[i].pc = 0x7f1234560000 + i % 3 * ((uintptr_t)1 << 40);
    walked[0].count = CAIRN_DEPTH_MAX;
    intern(0);
    walked[0].frames[CAIRN_DEPTH_MAX - 1].pc = 0x400100;
    walked[0].keep = CAIRN_DEPTH_MAX - 1;
    intern(0);
    check_all();
    known_free();
}

static void test_foreign_cells(void **state) {
    (void)state;
    uint64_t seed = 3;
    enum { COUNT = 2000 };
    static uint32_t own[COUNT], foreign[COUNT];
    start(&seed, 1 << 16, 1 << 22);
    for (int i = 0; i < COUNT; i++) {
        own[i] = intern_next(0, &seed);
        foreign[i] = stack_foreign(&threads[1], own[i]);
        intern_next(1, &seed);
        assert_int_equal(stack_foreign(&threads[1], own[i]), foreign[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        const uint32_t *record =
            (const uint32_t *)stacks.records.base + cells.items[foreign[i]].record;
        assert_int_equal(cell_owner(foreign[i]), 1);
        assert_int_equal(record[0], own[i]);
        assert_int_equal(record[1], CAIRN_RECORD_FOREIGN);
        for (int k = 0; k < i; k++) assert_int_equal(own[i] == own[k], foreign[i] == foreign[k]);
    }
    known_free();
}

// A pair of an allocating and a freeing stack is a cell of its own in each thread, which names
// both.
static void test_freed_cells(void **state) {
    (void)state;
    uint64_t seed = 5;
    enum { COUNT = 60 };
    static uint32_t made[COUNT], pairs[2][COUNT][COUNT];
    start(&seed, 1 << 16, 1 << 22);
    for (int i = 0; i < COUNT; i++) made[i] = intern_next(0, &seed);
    for (int thread = 0; thread < 2; thread++)
        for (int i = 0; i < COUNT; i++)
            for (int k = 0; k < COUNT; k++) {
                pairs[thread][i][k] = stack_freed(&threads[thread], made[i], made[k]);
                assert_int_equal(stack_freed(&threads[thread], made[i], made[k]),
                                 pairs[thread][i][k]);
                assert_int_not_equal(pairs[thread][i][k], stack_foreign(&threads[thread], made[i]));
            }
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++) {
            uint32_t id = pairs[1][i][k];
            const uint32_t *record = (const uint32_t *)stacks.records.base + cells.items[id].record;
            assert_int_equal(cell_owner(id), 1);
            assert_int_equal(record[0], made[i]);
            assert_int_equal(record[1], CAIRN_RECORD_FOREIGN | 1);
            assert_int_equal(record[2], made[k]);
            assert_int_not_equal(id, pairs[0][i][k]);
        }
    known_free();
}

// Beyond the bound there are no more pairs; those that are there stay.
static void test_most_freed_cells(void **state) {
    (void)state;
    uint64_t seed = 6;
    start(&seed, 1 << 16, 1 << 22);
    uint32_t one = intern_next(0, &seed), other = one;
    while (other == one) other = intern_next(0, &seed);
    stacks.freed_count = STACK_FREED_MOST - 1;
    uint32_t pair = stack_freed(&threads[0], one, other);
    assert_int_not_equal(pair, 0);
    assert_int_equal(stack_freed(&threads[0], other, one), 0);
    assert_int_equal(stack_freed(&threads[0], one, other), pair);
    assert_int_equal(stacks.freed_count, STACK_FREED_MOST);
    known_free();
}

static uint32_t intern_or_lose(uint64_t *seed, bool *is_lost) {
    enum stack_outcome outcome;
    stack_pick(seed, &walked[0]);
    uint32_t id =
        stack_intern(&threads[0], walked[0].frames, walked[0].count, walked[0].keep, &outcome);
    *is_lost = outcome == STACK_LOST;
    return id;
}

// Either section full: the stack is lost and said so; what was interned before stays.
static void test_full_sections(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        uint64_t seed = 4;
        int lost = 0, kept = 0;
        start(&seed, kind ? 1 << 16 : 1 << 10, kind ? 1 << 14 : 1 << 24);
        for (int i = 0; i < 4000; i++) {
            bool is_lost = false;
            uint32_t id = intern_or_lose(&seed, &is_lost);
            assert_int_equal(is_lost, id == CAIRN_CELL_OTHER);
            lost += is_lost;
            kept += !is_lost;
            assert_true(stack_foreign(&threads[0], 5) != CAIRN_CELL_NONE);
            if (is_lost) continue;
            assert_int_equal(read_stack(id, decoded, CAIRN_DEPTH_MAX + 1), walked[0].count);
            for (uint32_t k = 0; k < walked[0].count; k++)
                assert_int_equal(decoded[k].value, walked[0].frames[k].pc);
        }
        assert_true(lost > 300 && kept > 300);
    }
}

// A program goes on losing stacks for hours: that must not fill the recording with records that
// belong to no cell.
static void check_losing_costs_nothing(uint64_t *seed) {
    bool is_lost = false;
    while (!is_lost) intern_or_lose(seed, &is_lost);
    uint64_t used = recording_used[2], slack = 2 * sys_page_bytes();
    for (int i = 0; i < 20000; i++) intern_or_lose(seed, &is_lost);
    assert_true(recording_used[2] <= used + slack);
}

static void test_no_more_cells_costs_nothing(void **state) {
    (void)state;
    uint64_t seed = 6;
    start(&seed, 1 << 10, 1 << 24);
    check_losing_costs_nothing(&seed);
}

static void test_over_budget_costs_nothing(void **state) {
    (void)state;
    uint64_t seed = 6;
    start(&seed, 1 << 16, 1 << 24);
    sys_set_budget(0);
    check_losing_costs_nothing(&seed);
}

// After code was replaced, equal addresses are other frames: nothing of the last stack is kept.
static void test_a_new_module_generation(void **state) {
    (void)state;
    uint64_t seed = 5;
    bool is_lost;
    enum stack_outcome outcome;
    start(&seed, 1 << 12, 1 << 16);
    uint32_t before = intern_or_lose(&seed, &is_lost), count = walked[0].count;
    modules.generation++;
    walked[0].frames[count].pc = 0x400100;
    uint32_t after = stack_intern(&threads[0], walked[0].frames, count + 1, count, &outcome);
    const uint32_t *record = (const uint32_t *)stacks.records.base + cells.items[after].record;
    assert_true(before != after);
    assert_int_equal(record[0], CAIRN_CELL_NONE);
    assert_int_equal(CAIRN_RECORD_NEW(record[1]), count + 1);
}

// A stack of so many frames, of which the outer `keep` are those of the last one, and the inner
// `same` too, with others in between.
static const uint32_t *intern_changed(uint32_t keep, uint32_t count, uint32_t same) {
    static uintptr_t other = 0x500000;
    struct walked *stack = &walked[0];
    memmove(&stack->frames[count - same], &stack->frames[stack->count - same],
            same * sizeof *stack->frames);
    for (uint32_t i = keep; i < count - same; i++) stack->frames[i].pc = other += 16;
    stack->count = count;
    stack->keep = keep;
    return (const uint32_t *)stacks.records.base + cells.items[intern(0)].record;
}

// What is written of a stack that differs in few frames, and where one word is not enough.
static void test_short_records(void **state) {
    (void)state;
    uint64_t seed = 9;
    start(&seed, 1 << 12, 1 << 16);
    const uint32_t *first = intern_changed(0, 40, 0);
    assert_int_equal(first[0], CAIRN_CELL_NONE);
    // one call site, five from the inside: its frame alone, and the most of a tail
    const uint32_t *record = intern_changed(35, 40, 4), *next = intern_changed(37, 42, 1);
    assert_true(record[0] & CAIRN_RECORD_SHORT);
    assert_int_equal(CAIRN_SHORT_DROP(record[0]), 5);
    assert_int_equal(CAIRN_SHORT_NEW(record[0]), 2);
    assert_int_equal(CAIRN_SHORT_TAIL(record[0]), CAIRN_SHORT_TAIL_MOST);
    assert_int_equal(CAIRN_SHORT_BACK(record[0]), 1);
    assert_int_equal(next - record, 1 + 2);
    assert_int_equal(CAIRN_SHORT_NEW(next[0]), 4);
    assert_int_equal(CAIRN_SHORT_TAIL(next[0]), 1);
    // the most that go and come, and one more of either
    assert_true(intern_changed(27, 42, 0)[0] & CAIRN_RECORD_SHORT);
    assert_false(intern_changed(26, 41, 0)[0] & CAIRN_RECORD_SHORT);
    assert_false(intern_changed(40, 56, 0)[0] & CAIRN_RECORD_SHORT);
    // a region is the last code of a record, and no frame for others
    walked[0].frames[walked[0].count++].pc = FRAME_REGION + 1;
    enum stack_outcome outcome;
    for (int i = 0; i < 2; i++) {
        walked[0].frames[walked[0].count - 2].pc += 1;
        uint32_t id = stack_intern(&threads[0], walked[0].frames, walked[0].count,
                                   walked[0].count - 2, &outcome);
        record = (const uint32_t *)stacks.records.base + cells.items[id].record;
        assert_false(record[0] & CAIRN_RECORD_SHORT);
    }
    known_free();
}

// A cell too far back for one word.
static void test_a_stack_far_back(void **state) {
    (void)state;
    uint64_t seed = 10;
    start(&seed, 3 << 21, 1 << 16);
    struct stack_thread *thread = &threads[0];
    intern_changed(0, 10, 0);
    for (int i = 0; i < 2; i++) {
        thread->next_cell = thread->last_cell + CAIRN_SHORT_BACK_MOST + (uint32_t)i;
        thread->end_cell = thread->next_cell + 1;
        while (cells_take_blocks(0, 1) + CAIRN_CELL_BLOCK <= thread->next_cell) continue;
        const uint32_t *record = intern_changed(9, 10, 0);
        assert_int_equal((record[0] & CAIRN_RECORD_SHORT) != 0, i == 0);
        if (i == 0) assert_int_equal(CAIRN_SHORT_BACK(record[0]), CAIRN_SHORT_BACK_MOST);
    }
    known_free();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_stacks_are_read_back),
        cmocka_unit_test(test_old_stacks_and_recovery),
        cmocka_unit_test(test_recovery_outweighs_keep),
        cmocka_unit_test(test_deepest_stack),
        cmocka_unit_test(test_foreign_cells),
        cmocka_unit_test(test_freed_cells),
        cmocka_unit_test(test_most_freed_cells),
        cmocka_unit_test(test_full_sections),
        cmocka_unit_test(test_no_more_cells_costs_nothing),
        cmocka_unit_test(test_over_budget_costs_nothing),
        cmocka_unit_test(test_a_new_module_generation),
        cmocka_unit_test(test_short_records),
        cmocka_unit_test(test_a_stack_far_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
