// SPDX-License-Identifier: Apache-2.0
// Snapshots in memory that is laid out as a process does it; the process is played by the test.
#include "tool/watch/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CAPACITY = CAIRN_SNAPSHOT_LIMIT * sizeof(struct cairn_snapshot) };
static const uint64_t mapped = CAIRN_HEADER_BYTES + CAPACITY;
static struct cairn_header *header;
static struct error error;

static int open_memory(void **state) {
    (void)state;
    header = aligned_alloc(_Alignof(struct cairn_header), mapped);
    if (!header) return -1;
    memset(header, 0, mapped);
    header->section_count = 1;
    header->sections[0] = (struct cairn_section){.kind = CAIRN_SECTION_SNAPSHOTS,
                                                 .entry_bytes = sizeof(struct cairn_snapshot),
                                                 .offset = CAIRN_HEADER_BYTES,
                                                 .capacity_bytes = CAPACITY};
    header->pace.every_bytes = 64;
    header->pace.step_permille = 50;
    return 0;
}

static int close_memory(void **state) {
    (void)state;
    free(header);
    return 0;
}

static struct cairn_snapshot *snapshots(void) {
    return (struct cairn_snapshot *)((uint8_t *)header + CAIRN_HEADER_BYTES);
}

static uint64_t snapshot_count(void) {
    return header->sections[0].used_bytes / sizeof(struct cairn_snapshot);
}

static void test_asks(void **state) {
    (void)state;
    header->totals.live_bytes = 77;
    header->totals.epoch = 5;
    assert_true(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "first", &error));
    assert_true(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_MARK,
                                      "a label that is longer than there is room for labels",
                                      &error));
    assert_int_equal(snapshot_count(), 2);
    assert_int_equal(snapshots()[0].epoch, 6);
    assert_int_equal(snapshots()[0].generation, 0);
    assert_int_equal(snapshots()[0].live_bytes, 77);
    assert_string_equal(snapshots()[0].label, "first");
    assert_int_equal(snapshots()[1].epoch, 7);
    assert_int_equal(snapshots()[1].generation, 1);
    assert_int_equal(strlen(snapshots()[1].label), CAIRN_LABEL_BYTES - 1);
    assert_int_equal(header->totals.epoch, 7);
    assert_int_equal(header->totals.snapshot_epoch, 7);
    assert_int_equal(header->totals.generation, 1);
    assert_int_equal(header->pace.lock, 0);
}

// Those that nobody asked for make room, every second of them; those that were asked for stay.
static void test_thins(void **state) {
    (void)state;
    for (uint32_t i = 0; i < CAIRN_SNAPSHOT_LIMIT; i++)
        snapshots()[i] = (struct cairn_snapshot){
            .epoch = i + 1, .reason = i % 4 ? CAIRN_SNAPSHOT_CHURN : CAIRN_SNAPSHOT_ASKED};
    header->sections[0].used_bytes = CAPACITY;
    header->totals.epoch = CAIRN_SNAPSHOT_LIMIT;
    assert_true(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    assert_int_equal(snapshot_count(), 64 + 96 + 1);
    uint32_t asked = 0;
    for (uint64_t i = 0; i < snapshot_count(); i++) {
        asked += snapshots()[i].reason == CAIRN_SNAPSHOT_ASKED;
        assert_true(!i || snapshots()[i].epoch > snapshots()[i - 1].epoch);
    }
    assert_int_equal(asked, 65);
    assert_int_equal(header->pace.every_bytes, 128);
    assert_int_equal(header->pace.step_permille, 100);
    assert_int_equal(header->pace.thin_count, 2);
}

static void test_is_full(void **state) {
    (void)state;
    for (uint32_t i = 0; i < CAIRN_SNAPSHOT_LIMIT; i++)
        assert_true(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    assert_false(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    assert_string_equal(error.text,
                        "has no room for another snapshot: it remembers 256 that were asked for");
    assert_int_equal(header->pace.refused, 1);
    assert_int_equal(snapshot_count(), CAIRN_SNAPSHOT_LIMIT);
    assert_int_equal(header->totals.epoch, CAIRN_SNAPSHOT_LIMIT);
}

static void test_refuses_damage(void **state) {
    (void)state;
    const uint64_t lies[] = {0, CAIRN_HEADER_BYTES + 4, mapped, UINT64_MAX - 64};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        header->sections[0].offset = lies[i];
        assert_false(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    }
    header->sections[0].offset = CAIRN_HEADER_BYTES;
    header->section_count = UINT32_MAX;
    assert_true(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    header->sections[0].entry_bytes = 64;
    assert_false(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    header->section_count = 0;
    assert_false(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
}

// The process was stopped while it took a snapshot; one that the tool itself left in the middle is
// no hindrance.
static void test_somebody_else_takes_one(void **state) {
    (void)state;
    header->pace.lock = 4242;
    assert_false(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    header->pace.lock = CAIRN_PACE_TOOL;
    header->pace.thin_count = 3;
    assert_true(control_take_snapshot(header, mapped, CAIRN_SNAPSHOT_ASKED, "", &error));
    assert_int_equal(header->pace.thin_count, 4);
}

#define ON_MEMORY(test) cmocka_unit_test_setup_teardown(test, open_memory, close_memory)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_MEMORY(test_asks),
        ON_MEMORY(test_thins),
        ON_MEMORY(test_is_full),
        ON_MEMORY(test_refuses_damage),
        ON_MEMORY(test_somebody_else_takes_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
