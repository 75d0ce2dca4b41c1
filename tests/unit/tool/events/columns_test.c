// SPDX-License-Identifier: Apache-2.0
// Events of any kind as columns and back, each as it was; and how many bytes those of a heap take
// whose blocks go in random order, as compression makes no more of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tool/events/columns.h"

enum { EVENTS = 5000, REGIONS = 5, PLACES = 3000 };

static uint64_t random_state;
static struct event events[EVENTS];
static struct columns columns;
static struct columns_reader reader;
static uint8_t planes[CAIRN_COLUMNS * CAIRN_EVENT_PLANES * CAIRN_EVENT_COLUMN_MOST];

static uint32_t random_below(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

static uint64_t random_word(void) {
    return (uint64_t)random_below(1u << 31) << 33 ^ (uint64_t)random_below(1u << 31) << 11;
}

static size_t write_all(size_t count) {
    size_t used = 0;
    columns_begin(&columns, 3);
    for (size_t i = 0; i < count; i++) assert_true(columns_add(&columns, &events[i]));
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++) {
            memcpy(planes + used, columns.planes[i][j].bytes, columns.planes[i][j].count);
            used += columns.planes[i][j].count;
        }
    return used;
}

static void check_all(size_t count) {
    struct cairn_event_frame frame = {.event_count = columns.event_count, .start_ms = 3};
    for (int i = 0; i < CAIRN_COLUMNS; i++)
        for (uint32_t j = 0; j < CAIRN_EVENT_PLANES; j++)
            frame.planes[i][j].plain_bytes = (uint32_t)columns.planes[i][j].count;
    columns_read(&reader, &frame, planes, false);
    for (size_t i = 0; i < count; i++) {
        struct event got;
        assert_int_equal(columns_next(&reader, &got), 1);
        assert_int_equal(got.flags, events[i].flags);
        assert_int_equal(got.address, events[i].address);
        assert_int_equal(got.size, events[i].size);
        assert_int_equal(got.cell, events[i].cell);
        assert_int_equal(got.turn, events[i].turn);
        assert_int_equal(got.taken, events[i].taken);
        assert_int_equal(got.alignment, events[i].alignment);
        assert_int_equal(got.ms, events[i].ms);
    }
    struct event got;
    assert_int_equal(columns_next(&reader, &got), 0);
}

static uint64_t random_address(void) {
    uint64_t region = (uint64_t)random_below(REGIONS) << 26;
    uint64_t odd = random_below(50) ? 0 : random_below(16);
    return random_below(100) ? 0x7f0000000000 + region + ((uint64_t)random_below(PLACES) << 4) + odd
                             : random_word() >> 16;
}

static void test_any_events(void **state) {
    (void)state;
    const uint32_t kinds[] = {
        CAIRN_EVENT_ALLOC,
        CAIRN_EVENT_ALLOC | CAIRN_EVENT_TURN,
        CAIRN_EVENT_ALLOC | CAIRN_EVENT_MOVED | CAIRN_EVENT_TURN,
        CAIRN_EVENT_ALLOC | CAIRN_EVENT_ALIGNED | CAIRN_EVENT_CLEARED,
        CAIRN_EVENT_FREE,
        CAIRN_EVENT_FREE | CAIRN_EVENT_TURN,
        CAIRN_EVENT_TAKE,
        CAIRN_EVENT_GONE,
        CAIRN_EVENT_BACK,
        CAIRN_EVENT_MAP | CAIRN_EVENT_TURN,
        CAIRN_EVENT_UNMAP,
        CAIRN_EVENT_TOUCHED,
    };
    random_state = 1;
    uint64_t ms = 3;
    for (size_t i = 0; i < EVENTS; i++) {
        uint32_t flags = kinds[random_below(sizeof kinds / sizeof *kinds)];
        uint32_t kind = flags & CAIRN_EVENT_KIND_MASK;
        bool has_size = kind == CAIRN_EVENT_ALLOC || kind == CAIRN_EVENT_MAP ||
                        kind == CAIRN_EVENT_UNMAP || kind == CAIRN_EVENT_TOUCHED;
        bool has_cell = has_size && kind != CAIRN_EVENT_UNMAP;
        ms += random_below(20) == 0;
        events[i] = (struct event){.flags = flags, .address = random_address(), .ms = ms};
        if (has_size) events[i].size = random_below(9) ? random_below(600) : random_word() >> 8;
        if (has_cell) events[i].cell = random_below(40);
        if (flags & CAIRN_EVENT_TURN) events[i].turn = random_below(2) ? i : random_word();
        if (flags & CAIRN_EVENT_ALIGNED) events[i].alignment = random_word();
        if (flags & CAIRN_EVENT_MOVED) events[i].taken = random_word();
    }
    write_all(EVENTS);
    check_all(EVENTS);
}

// Threads with an arena each free each other's blocks: what is allocated next is what was freed
// lately, by whomever, so that its address takes a byte.
static void test_random_order_takes_few_bytes(void **state) {
    (void)state;
    static uint64_t live[PLACES];
    random_state = 2;
    for (size_t i = 0; i < PLACES; i++)
        live[i] = 0x7f0000000000 + ((uint64_t)random_below(4) << 26) + i * 400 / 16 * 16;
    for (size_t i = 0; i < EVENTS; i += 2) {
        uint32_t place = random_below(PLACES);
        events[i] = (struct event){.flags = CAIRN_EVENT_FREE | CAIRN_EVENT_TURN,
                                   .address = live[place],
                                   .turn = 20000 + random_below(4000),
                                   .ms = 3};
        events[i + 1] =
            (struct event){.flags = CAIRN_EVENT_ALLOC,
                           .address = events[i > 60 ? i - 2 * random_below(30) : i].address,
                           .size = 16 + random_below(700),
                           .cell = 5,
                           .ms = 3};
        live[place] = events[i + 1].address;
    }
    size_t bytes = write_all(EVENTS);
    check_all(EVENTS);
    assert_in_range(bytes, EVENTS, EVENTS * 6);  // 5.4 before they are compressed
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_events),
        cmocka_unit_test(test_random_order_takes_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
