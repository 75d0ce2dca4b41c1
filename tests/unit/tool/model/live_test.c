// SPDX-License-Identifier: Apache-2.0
// Look by look at a recording that changes in between: values, growth, rates, survivors of a mark,
// new stacks and modules, what each label holds, and what is damaged or cut off while it is
// watched.
#include "tool/model/live.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tools/make_recording.h"

#define BASE 0x555555554000u
#define LIBRARY 0x7ffff7a00000u
#define SECOND 1000000000u
enum { CAPACITY = 1 << 20 };

static struct making making;
static struct live live;
static struct error error;
static char path[64];

static uint32_t add_stack(uint64_t outer, uint64_t inner) {
    const uint64_t addresses[] = {outer, inner};
    return making_stack(&making, 0, addresses, 2);
}

static void save(void) {
    making_write_sparse(&making, path, CAPACITY);
}

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "live_test.%d", (int)getpid());
    making_start(&making);
    making.header.state = CAIRN_STATE_RUNNING;
    making.header.end_ns = 0;
    making.header.start_clock_ns = SECOND;
    making_module(&making, "/bin/sample", BASE, 0x10000, BASE, 0x11);
    making_thread(&making, 4242, "sample");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    live_close(&live);
    unlink(path);
    return 0;
}

static void look(uint64_t second) {
    assert_true(live_look(&live, (1 + second) * SECOND, &error));
}

static void test_values_growth_and_rates(void **state) {
    (void)state;
    uint32_t first = add_stack(BASE + 1, BASE + 2);
    making_book(&making, first, 3, 300, 1, 100);
    save();
    assert_true(live_open(path, &live, &error));
    look(1);
    assert_int_equal(live.whole.stacks.count, 1);
    assert_int_equal(live.profile.exit_bytes, 200);
    assert_int_equal(live_value(&live, LIVE_BYTES, 0), 200);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 0), 0);
    assert_true(live_rate_total(&live).bytes == 0);
    assert_int_equal(live_now_ns(&live), SECOND);

    uint32_t second = add_stack(BASE + 1, BASE + 3);
    making_book(&making, first, 10, 1000, 2, 200);
    making_book(&making, second, 1, 50, 0, 0);
    save();
    look(3);
    assert_int_equal(live.whole.stacks.count, 2);
    assert_int_equal(live_value(&live, LIVE_BYTES, 0), 1000);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 0), 800);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 1), 50);
    assert_int_equal(live_value(&live, LIVE_RATE, 0), 500);  // 1000 in two seconds
    assert_int_equal(live_value(&live, LIVE_RATE, 1), 25);
    assert_true(live_rate_total(&live).calls == 5.5);
    assert_true(live_slope(&live) == 425);
    assert_int_equal(live.profile.exit_bytes, 1050);

    // rates are of the last looks alone
    for (uint64_t at = 4; at < 4 + LIVE_LOOKS; at++) look(at);
    assert_int_equal(live_value(&live, LIVE_RATE, 0), 0);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 0), 800);
    live_begin_growth(&live, 0);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 0), 0);
}

// The same stack is another cell after a mark; frees by another thread are of the cell they are of.
static void test_survivors_of_a_mark(void **state) {
    (void)state;
    uint32_t old = add_stack(BASE + 1, BASE + 2);
    making_thread(&making, 4243, "other");
    making_book(&making, old, 4, 400, 0, 0);
    save();
    assert_true(live_open(path, &live, &error));
    look(1);
    assert_int_equal(live.mark_generation, 0);
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "", SECOND);
    live_begin_growth(&live, making.header.totals.generation);
    uint32_t young = add_stack(BASE + 1, BASE + 2);
    making_book(&making, young, 3, 30, 1, 10);
    making_book(&making, making_foreign(&making, 1, old), 0, 0, 1, 100);
    making_book(&making, making_foreign(&making, 1, young), 0, 0, 1, 10);
    save();
    look(2);
    assert_int_equal(live.whole.stacks.count, 1);
    assert_int_equal(live_value(&live, LIVE_BYTES, 0), 310);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 0), -90);
    assert_int_equal(live.whole.more.items[0].survivor_bytes, 10);
    assert_int_equal(live.whole.more.items[0].survivor_blocks, 1);
}

// Code of a library that came after the first look is found in it.
static void test_new_modules(void **state) {
    (void)state;
    making_book(&making, add_stack(BASE + 1, BASE + 2), 1, 10, 0, 0);
    save();
    assert_true(live_open(path, &live, &error));
    look(1);
    making_module(&making, "/lib/late.so", LIBRARY, 0x10000, LIBRARY, 0x22);
    making_book(&making, add_stack(BASE + 1, LIBRARY + 9), 1, 20, 0, 0);
    save();
    look(2);
    assert_int_equal(live.whole.stacks.count, 2);
    uint32_t node = live.whole.stacks.items[1].node;
    const struct place *place =
        &live.profile.places.list.items[live.profile.tree.nodes.items[node].place];
    assert_string_equal(live.profile.modules.modules[place->module].path, "/lib/late.so");
    assert_int_equal(live.follow.recording.damage.bad_stacks, 0);
}

static void test_as_a_whole_profile(void **state) {
    (void)state;
    struct recording recording;
    struct profile profile;
    for (uint32_t i = 1; i < 200; i++)
        making_book(&making, add_stack(BASE + i % 7, BASE + i), i, 10ul * i, i / 2, 10ul * (i / 2));
    save();
    assert_true(live_open(path, &live, &error));
    look(1);
    assert_true(recording_open(path, &recording, &error));
    assert_true(profile_build(&recording, &profile, &error));
    assert_int_equal(live.whole.stacks.count, profile.stack_count);
    for (size_t i = 0; i < profile.stack_count; i++) {
        assert_int_equal(live.whole.stacks.items[i].id, profile.stacks[i].id);
        assert_int_equal(live.whole.stacks.items[i].exit_bytes, profile.stacks[i].exit_bytes);
        assert_int_equal(live.whole.stacks.items[i].exit_blocks, profile.stacks[i].exit_blocks);
        assert_int_equal(live.whole.stacks.items[i].allocations, profile.stacks[i].allocations);
    }
    assert_int_equal(live.profile.exit_bytes, profile.exit_bytes);
    profile_free(&profile);
    recording_close(&recording);
}

static void write_at(size_t offset, const void *bytes, size_t size) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0 && pwrite(file, bytes, size, (off_t)offset) == (ssize_t)size);
    close(file);
}

static void test_damage_is_told(void **state) {
    (void)state;
    making_book(&making, add_stack(BASE + 1, BASE + 2), 1, 10, 0, 0);
    save();
    assert_true(live_open(path, &live, &error));
    look(1);
    // a section that claims more than there are pages for
    struct cairn_header *header = &live.follow.recording.header;
    uint64_t huge = UINT64_MAX / 2;
    for (uint32_t i = 0; i < header->section_count; i++) {
        if (header->sections[i].kind != CAIRN_SECTION_CELLS) continue;
        size_t at = offsetof(struct cairn_header, sections) + i * sizeof(struct cairn_section);
        write_at(at + offsetof(struct cairn_section, capacity_bytes), &huge, sizeof huge);
        write_at(at + offsetof(struct cairn_section, used_bytes), &huge, sizeof huge);
    }
    bool is_ok = live_look(&live, 9ull * SECOND, &error);
    assert_true(is_ok ? damage_is_any(&live.follow.recording.damage) : *error.text != 0);
    // cut off within the header, and to nothing
    assert_int_equal(truncate(path, 100), 0);
    assert_false(live_look(&live, 9ull * SECOND, &error));
    assert_int_equal(truncate(path, 0), 0);
    assert_false(live_look(&live, 9ull * SECOND, &error));
}

// Any byte may change between two looks: what is read is another number, or damage, or an error.
static void test_any_damage(void **state) {
    (void)state;
    enum { ROUNDS = 600, CHANGES = 4, SMALL = 1 << 14 };
    uint64_t random = 88172645463325252u;
    int whole = 0, damaged = 0;
    making_thread(&making, 4243, "other");
    for (uint32_t i = 1; i < 60; i++)
        making_book(&making, add_stack(BASE + i % 5, BASE + i), i, 10ul * i, i / 2, 10ul * (i / 2));
    making_snapshot(&making, CAIRN_SNAPSHOT_MARK, "", SECOND);
    making_write_sparse(&making, path, SMALL);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 20 == 0) {
            live_close(&live);
            making_write_sparse(&making, path, SMALL);
            if (!live_open(path, &live, &error)) continue;
        }
        for (int i = 0; i < CHANGES; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            // mostly in the header's counts and sections, else anywhere
            uint64_t at = random % 3 ? random / 3 % 1200 : random / 3 % (12 * SMALL);
            uint8_t byte = (uint8_t)(random >> 40);
            if (at >= CAIRN_MAGIC_BYTES + 4) write_at(at, &byte, 1);
        }
        if (!live.follow.recording.header.version) continue;
        bool is_ok = live_look(&live, (uint64_t)(round + 2) * SECOND, &error);
        assert_true(is_ok || *error.text);
        bool is_damaged = !is_ok || damage_is_any(&live.follow.recording.damage);
        damaged += is_damaged;
        whole += !is_damaged;
        for (size_t i = 0; is_ok && i < live.whole.stacks.count; i++)
            for (int measure = 0; measure < LIVE_MEASURES; measure++)
                live_value(&live, (enum live_measure)measure, i);
    }
    assert_true(whole > ROUNDS / 20 && damaged > ROUNDS / 20);
}

static void test_what_is_none(void **state) {
    (void)state;
    making.header.is_compact = 1;
    save();
    assert_false(live_open("does_not_exist", &live, &error));
    write_at(0, "not a recording", 15);
    assert_false(live_open(path, &live, &error));
    assert_non_null(strstr(error.text, "not a cairn recording"));
}

static void test_measures_have_names(void **state) {
    (void)state;
    enum live_measure measure;
    for (int i = 0; i < LIVE_MEASURES; i++) {
        assert_true(live_measure_parse(live_measure_name((enum live_measure)i), &measure));
        assert_int_equal(measure, i);
    }
    assert_false(live_measure_parse("peak", &measure));
}

static int64_t held_by(const char *labels) {
    const struct live_rows *rows = live_shown(&live);
    for (size_t i = 0; i < live.part.sets.count; i++) {
        const struct live_set *set = &live.part.sets.items[i];
        const char *first = live_set_next(set, NULL);
        if (!strcmp(first ? first : "", labels)) return rows->stacks.items[i].exit_bytes;
    }
    return -1;
}

static void enter(uint32_t *cell, uint32_t stack, uint32_t scope) {
    const uint32_t codes[] = {CAIRN_CODE_REGION | scope};
    *cell = making_cell(&making, 0, stack, 2, codes, 1, 1);
}

// Labels within a region, one label in the place of another, and labels that come later.
static void test_labels(void **state) {
    (void)state;
    uint32_t stack = add_stack(BASE + 0x100, BASE + 0x200), in_seven, in_eight, in_nine;
    uint32_t seven = making_scope(&making, CAIRN_SCOPE_LABEL, 0, "tenant=7", 1);
    uint32_t region = making_scope(&making, CAIRN_SCOPE_REGION, seven, "load", 1);
    uint32_t eight = making_scope(&making, CAIRN_SCOPE_LABEL, region, "tenant=8", 1);
    enter(&in_seven, stack, region);
    enter(&in_eight, stack, eight);
    making_book(&making, stack, 1, 1000, 0, 0);
    making_book(&making, in_seven, 2, 200, 1, 100);
    making_book(&making, in_eight, 1, 30, 0, 0);
    save();
    assert_true(live_open(path, &live, &error));
    look(0);
    const struct live_set key = live_set_of("tenant"), of_seven = live_set_of("tenant=7");
    assert_true(live_show(&live, LIVE_BY_LABELS, &key, &error));
    assert_int_equal(live.part.sets.count, 3);
    assert_int_equal(held_by(""), 1000);
    assert_int_equal(held_by("tenant=7"), 100);
    assert_int_equal(held_by("tenant=8"), 30);
    assert_int_equal(live.profile.exit_bytes, 1130);
    uint32_t nine = making_scope(&making, CAIRN_SCOPE_LABEL, 0, "tenant=" CAIRN_LABEL_OTHER, 1);
    enter(&in_nine, stack, nine);
    making_book(&making, in_nine, 1, 5, 0, 0);
    making_book(&making, in_seven, 1, 400, 0, 0);
    save();
    look(2);
    assert_int_equal(held_by("tenant=" CAIRN_LABEL_OTHER), 5);
    assert_int_equal(held_by("tenant=7"), 500);
    for (size_t row = 0; row < live.part.sets.count; row++) {
        int64_t growth = live_value(&live, LIVE_GROWTH, row),
                rate = live_value(&live, LIVE_RATE, row);
        const char *first = live_set_next(&live.part.sets.items[row], NULL);
        bool is_seven = first && !strcmp(first, "tenant=7"), is_new = row == 3;
        assert_int_equal(growth, is_seven ? 400 : is_new ? 5 : 0);
        assert_int_equal(rate, is_seven ? 200 : is_new ? 2 : 0);  // in two seconds
    }
    assert_true(live_show(&live, LIVE_OF_LABELS, &of_seven, &error));
    assert_int_equal(live_shown(&live)->stacks.items[0].exit_bytes, 500);
    assert_int_equal(live_value(&live, LIVE_GROWTH, 0), 0);
    assert_true(live_show(&live, LIVE_WHOLE, &(struct live_set){0}, &error));
    assert_int_equal(live_shown(&live)->stacks.items[0].exit_bytes, 1535);
    char *first, *second;
    assert_true(live_part_next_key(&live.follow.recording, NULL, &first));
    assert_string_equal(first, "tenant");
    assert_true(live_part_next_key(&live.follow.recording, first, &second));
    assert_null(second);
    free(first);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_values_growth_and_rates), TEST(test_survivors_of_a_mark), TEST(test_new_modules),
        TEST(test_as_a_whole_profile),      TEST(test_damage_is_told),      TEST(test_what_is_none),
        TEST(test_measures_have_names),     TEST(test_any_damage),          TEST(test_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
