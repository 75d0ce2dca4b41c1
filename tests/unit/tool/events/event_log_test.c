// SPDX-License-Identifier: Apache-2.0
// A log of made-up threads that hand blocks to each other, written as the tool writes it and read
// again: every event comes back as it was, each thread's in order, in an order in which no block is
// freed before it was allocated and no address given before it was freed. The same of logs that
// were cut or lack chunks, as far as there is something to say of them, and of those that begin in
// the middle of what the process does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/format.h"
#include "tool/events/event_log.h"
#include "tool/events/frame_writer.h"
#include "tool/events/live_blocks.h"

enum { SLOTS = 5, PLACES = 400, EVENTS = 15000, CHUNK_EVENTS = 150, WORDS = 1024, SHIFT = 5 };

// What the threads do, in the order in which they do it.
struct made {
    struct event event;
    uint32_t slot;
};
static struct made made[EVENTS];
static size_t made_count;

static char path[] = "/tmp/event_log_test.XXXXXX";
static uint64_t state_of_random;

static uint32_t random_below(uint32_t limit) {
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_random >> 33) % limit;
}

static struct {
    bool is_live;
    uint32_t turn, slot;
} places[PLACES];

static uint64_t address_of(uint32_t place) {
    return 0x7f0000000000 + ((uint64_t)place << SHIFT);
}

static void add(uint32_t slot, uint32_t place, struct event event) {
    event.address = address_of(place);
    if (places[place].slot != slot) {
        event.flags |= CAIRN_EVENT_TURN;
        event.turn = places[place].turn;
    }
    places[place].turn++;
    places[place].slot = slot;
    event.slot = slot;
    made[made_count++] = (struct made){event, slot};
}

static void allocate(uint32_t slot, uint32_t place, uint64_t ms, uint32_t flags, uint64_t taken) {
    struct event event = {.flags = CAIRN_EVENT_ALLOC | flags,
                          .cell = 1 + random_below(70000),
                          .size = random_below(10) ? random_below(300) : 5000000000u,
                          .taken = taken,
                          .ms = ms};
    if (flags & CAIRN_EVENT_ALIGNED) event.alignment = 64;
    places[place].is_live = true;
    add(slot, place, event);
}

static void step(uint64_t ms) {
    uint32_t slot = random_below(SLOTS), place = random_below(PLACES);
    const uint32_t flags[] = {0, 0, 0, CAIRN_EVENT_CLEARED, CAIRN_EVENT_ALIGNED};
    if (!places[place].is_live) {
        allocate(slot, place, ms, flags[random_below(5)], 0);
    } else if (random_below(8)) {
        places[place].is_live = false;
        add(slot, place, (struct event){.flags = CAIRN_EVENT_FREE, .ms = ms});
    } else {
        uint32_t other = random_below(PLACES);
        add(slot, place, (struct event){.flags = CAIRN_EVENT_TAKE, .ms = ms});
        places[place].is_live = false;
        if (places[other].is_live) {
            places[place].is_live = true;
            add(slot, place, (struct event){.flags = CAIRN_EVENT_BACK, .ms = ms});
        } else {
            allocate(slot, other, ms, CAIRN_EVENT_MOVED, address_of(place));
        }
    }
}

static size_t put_words(const struct event *event, uint64_t *words) {
    size_t count = 1;
    uint64_t flags = event->flags;
    bool is_alloc = event_kind(event) == CAIRN_EVENT_ALLOC;
    if (is_alloc) words[count++] = event->size << 32 | event->cell;
    if (flags & CAIRN_EVENT_TURN) words[count++] = event->turn;
    if (is_alloc && event->size > UINT32_MAX) {
        flags |= CAIRN_EVENT_LARGE;
        words[count++] = event->size;
    }
    if (flags & CAIRN_EVENT_ALIGNED) words[count++] = event->alignment;
    if (flags & CAIRN_EVENT_MOVED) words[count++] = event->taken;
    words[0] = event->address << CAIRN_EVENT_ADDRESS_SHIFT | flags;
    return count;
}

// The events of one slot as chunks; those with a number in `left_out` are not written.
static void write_slot(struct frame_writer *writer, uint32_t slot, uint64_t left_out) {
    static uint64_t words[WORDS];
    size_t count = 0, events = 0, at = 0;
    uint64_t ms = 0;
    struct cairn_events_chunk chunk = {.slot = slot, .thread = slot + 1};
    while (at < made_count) {
        memset(words, 0, sizeof words);
        for (count = events = 0; at < made_count && events < CHUNK_EVENTS; at++) {
            if (made[at].slot != slot) continue;
            if (!events++) chunk.start_ms = ms = made[at].event.ms;
            if (made[at].event.ms > ms)
                words[count++] = made[at].event.ms << CAIRN_EVENT_ADDRESS_SHIFT | CAIRN_EVENT_TIME;
            ms = made[at].event.ms;
            count += put_words(&made[at].event, words + count);
        }
        if (!(left_out >> chunk.number & 1 && chunk.number < 64))
            assert_true(frame_writer_add(writer, &chunk, words, WORDS));
        chunk.number++;
    }
}

static void write_log(uint64_t left_out) {
    const struct cairn_event_file header = {.magic = CAIRN_EVENT_FILE_MAGIC,
                                            .version = CAIRN_EVENT_FILE_VERSION,
                                            .header_bytes = CAIRN_EVENT_FILE_BYTES,
                                            .granule_shift = SHIFT,
                                            .recording = "x.cairn"};
    struct error error;
    struct frame_writer *writer = frame_writer_open(path, &header, &error);
    assert_non_null(writer);
    for (uint32_t slot = SLOTS; slot-- > 0;) write_slot(writer, slot, slot == 2 ? left_out : 0);
    assert_true(frame_writer_close(writer, NULL, &error));
}

static int make(void **state) {
    (void)state;
    int file = mkstemp(path);
    if (file < 0) return -1;
    close(file);
    state_of_random = 7;
    memset(places, 0, sizeof places);
    for (made_count = 0; made_count + 2 < EVENTS;) step(made_count / 100 * 4);
    return 0;
}

static int clean(void **state) {
    (void)state;
    return unlink(path);
}

static void assert_same(const struct event *got, const struct event *wanted) {
    assert_int_equal(got->flags, wanted->flags);
    assert_int_equal(got->cell, wanted->cell);
    assert_int_equal(got->size, wanted->size);
    assert_int_equal(got->address, wanted->address);
    assert_int_equal(got->alignment, wanted->alignment);
    assert_int_equal(got->taken, wanted->taken);
    assert_int_equal(got->ms, wanted->ms);
    if (wanted->flags & CAIRN_EVENT_TURN) assert_int_equal(got->turn, wanted->turn);
}

static void test_all_come_back_in_an_order_that_can_be(void **state) {
    (void)state;
    struct error error;
    struct event event;
    struct block_change change;
    struct live_blocks blocks = {.granule_shift = SHIFT};
    size_t at[SLOTS] = {0}, count = 0;
    write_log(0);
    assert_true(event_log_is_one(path));
    struct event_log *log = event_log_open(path, &error);
    assert_non_null(log);
    assert_false(event_log_is_partial(log));
    assert_int_equal(event_log_facts(log)->event_count, made_count);
    while (event_log_next(log, &event, &error) > 0) {
        size_t *next = &at[event.slot];
        assert_in_range(event.slot, 0, SLOTS - 1);
        while (made[*next].slot != event.slot) ++*next;
        assert_same(&event, &made[(*next)++].event);
        assert_true(event_kind(&event) != CAIRN_EVENT_ALLOC ||
                    !live_blocks_find(&blocks, event.address));
        assert_true(live_blocks_follow(&blocks, &event, &change));
        assert_false(change.is_unknown);
        count++;
    }
    assert_int_equal(count, made_count);
    assert_int_equal(event_log_forced(log), 0);
    size_t live = 0;
    for (size_t i = 0; i < PLACES; i++) live += places[i].is_live;
    assert_int_equal(blocks.count, live);
    event_log_rewind(log);
    assert_int_equal(event_log_next(log, &event, &error), 1);
    event_log_close(log);
    live_blocks_free(&blocks);
}

static uint64_t read_all(bool *is_partial, uint64_t *forced) {
    struct error error;
    struct event event;
    uint64_t count = 0;
    struct event_log *log = event_log_open(path, &error);
    assert_non_null(log);
    int got;
    while ((got = event_log_next(log, &event, &error)) > 0) count++;
    assert_int_equal(got, 0);
    assert_int_equal(count, event_log_facts(log)->event_count);
    *is_partial = event_log_is_partial(log);
    *forced = event_log_forced(log);
    event_log_close(log);
    return count;
}

// Where a chunk is missing, events that would wait for it go on all the same.
static void test_missing_chunks_hold_nobody_up(void **state) {
    (void)state;
    bool is_partial;
    uint64_t forced;
    write_log(1 << 1 | 1 << 4);
    assert_int_equal(read_all(&is_partial, &forced), made_count - 2 * CHUNK_EVENTS);
    assert_true(is_partial);
    assert_true(forced > 0);
}

static void test_cut_anywhere(void **state) {
    (void)state;
    struct stat status;
    bool is_partial;
    uint64_t forced, last = UINT64_MAX;
    write_log(0);
    assert_int_equal(stat(path, &status), 0);
    for (off_t bytes = status.st_size - 1; bytes > (off_t)CAIRN_EVENT_FILE_BYTES; bytes -= 997) {
        assert_int_equal(truncate(path, bytes), 0);
        uint64_t count = read_all(&is_partial, &forced);
        assert_true(count <= last);
        assert_true(is_partial);
        last = count;
    }
    assert_true(last < CHUNK_EVENTS * 2);
}

static void test_damage_is_said(void **state) {
    (void)state;
    struct error error;
    struct event event;
    write_log(0);
    FILE *file = fopen(path, "r+");
    fseek(file, CAIRN_EVENT_FILE_BYTES + sizeof(struct cairn_event_frame) + 5, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 0x10, file);
    fclose(file);
    struct event_log *log = event_log_open(path, &error);
    assert_non_null(log);
    int got;
    while ((got = event_log_next(log, &event, &error)) > 0) {
    }
    assert_int_equal(got, -1);
    assert_non_null(strstr(error.text, "damaged"));
    event_log_close(log);
}

// A chunk that no library of ours has written.
static void test_damaged_chunk_is_cut(void **state) {
    (void)state;
    const struct cairn_event_file header = {.magic = CAIRN_EVENT_FILE_MAGIC,
                                            .version = CAIRN_EVENT_FILE_VERSION,
                                            .header_bytes = CAIRN_EVENT_FILE_BYTES,
                                            .granule_shift = SHIFT};
    const struct cairn_events_chunk chunk = {.slot = 0};
    const uint64_t words[] = {0x1000ull << 16 | CAIRN_EVENT_ALLOC,
                              40ull << 32 | 7,
                              0x1000ull << 16 | CAIRN_EVENT_FREE,
                              UINT64_MAX,
                              5,
                              0};
    struct error error;
    bool is_partial;
    uint64_t forced;
    struct frame_writer *writer = frame_writer_open(path, &header, &error);
    assert_non_null(writer);
    frame_writer_add(writer, &chunk, words, sizeof words / sizeof *words);
    assert_false(frame_writer_close(writer, NULL, &error));
    assert_non_null(strstr(error.text, "damaged"));
    assert_int_equal(read_all(&is_partial, &forced), 2);
    assert_true(is_partial);
}

// --- logs that do not begin with the process

struct part {
    struct frame_writer *writer;
    size_t from;          // what was made before is not in the log
    uint64_t ring_bytes;  // 0: all is kept
    struct {
        struct cairn_events_chunk chunk;
        uint64_t words[WORDS];
        size_t count, events;
    } slots[SLOTS];
};

static void give(struct part *part, uint32_t slot) {
    if (part->slots[slot].events)
        assert_true(frame_writer_add(part->writer, &part->slots[slot].chunk,
                                     part->slots[slot].words, part->slots[slot].count));
    part->slots[slot].chunk.number++;
    part->slots[slot].count = part->slots[slot].events = 0;
}

// Chunks come when they are full, as from a process.
static void put(struct part *part, const struct made *one) {
    uint32_t slot = one->slot;
    uint64_t *words = part->slots[slot].words + part->slots[slot].count;
    size_t count = 0;
    if (!part->slots[slot].events++) part->slots[slot].chunk.start_ms = one->event.ms;
    words[count++] = one->event.ms << CAIRN_EVENT_ADDRESS_SHIFT | CAIRN_EVENT_TIME;
    count += put_words(&one->event, words + count);
    part->slots[slot].count += count;
    if (part->slots[slot].events == CHUNK_EVENTS) give(part, slot);
}

static void write_part(struct part *part) {
    const struct cairn_event_file header = {.magic = CAIRN_EVENT_FILE_MAGIC,
                                            .version = CAIRN_EVENT_FILE_VERSION,
                                            .header_bytes = CAIRN_EVENT_FILE_BYTES,
                                            .granule_shift = SHIFT,
                                            .flags = part->from ? CAIRN_EVENT_FILE_LATE : 0,
                                            .ring_bytes = part->ring_bytes};
    struct error error;
    part->writer = frame_writer_open(path, &header, &error);
    assert_non_null(part->writer);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        part->slots[slot].chunk = (struct cairn_events_chunk){.slot = slot, .thread = slot + 1};
        part->slots[slot].count = part->slots[slot].events = 0;
    }
    for (size_t i = part->from; i < made_count; i++) put(part, &made[i]);
}

static void end_part(struct part *part) {
    struct error error;
    for (uint32_t slot = 0; slot < SLOTS; slot++) give(part, slot);
    assert_true(frame_writer_close(part->writer, NULL, &error));
}

// Each thread's events come in the order in which they were made; and to the end, if there is one:
// then also those of each place. Returns how many there are.
static size_t check_part(bool has_end) {
    struct error error;
    struct event event;
    size_t last_of_slot[SLOTS] = {0}, last_of_place[PLACES] = {0}, count = 0;
    struct event_log *log = event_log_open(path, &error);
    assert_non_null(log);
    assert_true(event_log_is_partial(log));
    assert_true(event_log_is_late(event_log_facts(log)));
    assert_int_equal(event_log_facts(log)->missing_count, 0);
    int got;
    for (; (got = event_log_next(log, &event, &error)) > 0; count++) {
        size_t *last = &last_of_slot[event.slot], at = *last;
        size_t place = (event.address - address_of(0)) >> SHIFT;
        // the first one of a slot may be anywhere
        for (;; at++) {
            assert_true(at < made_count);
            const struct event *one = &made[at].event;
            if (made[at].slot == event.slot && one->ms == event.ms && one->cell == event.cell &&
                one->size == event.size && one->address == event.address &&
                one->flags == event.flags && one->turn == event.turn)
                break;
            assert_true(!*last || made[at].slot != event.slot);
        }
        assert_same(&event, &made[at].event);
        *last = at + 1;
        assert_true(!has_end || at >= last_of_place[place]);
        last_of_place[place] = at + 1;
    }
    assert_int_equal(got, 0);
    assert_int_equal(count, event_log_facts(log)->event_count);
    if (has_end) {
        assert_int_equal(event_log_forced(log), 0);
        size_t ends = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++) ends += last_of_slot[slot] == made_count;
        assert_int_equal(ends, 1);
    }
    event_log_close(log);
    return count;
}

static void test_begins_late(void **state) {
    (void)state;
    static struct part part;
    part = (struct part){.from = made_count / 3};
    write_part(&part);
    end_part(&part);
    assert_int_equal(check_part(true), made_count - part.from);
}

// What the tool found as the log began is read first, however late the tool had looked.
static void test_what_was_found_comes_first(void **state) {
    (void)state;
    enum { FOUND = 100 };
    static struct part part;
    static uint64_t words[2 * FOUND];
    struct error error;
    struct event event;
    part = (struct part){.from = made_count / 3};
    write_part(&part);
    for (size_t i = 0; i < FOUND; i++) {
        words[2 * i] = address_of(i % PLACES) << CAIRN_EVENT_ADDRESS_SHIFT | CAIRN_EVENT_ALLOC |
                       CAIRN_EVENT_THERE;
        words[2 * i + 1] = (uint64_t)1 << 32 | 1;
    }
    const struct cairn_events_chunk chunk = {.slot = CAIRN_SLOT_SHARED,
                                             .thread = UINT32_MAX,
                                             .start_ms = made[made_count - 1].event.ms + 1};
    assert_true(frame_writer_add(part.writer, &chunk, words, (size_t)2 * FOUND));
    end_part(&part);
    struct event_log *log = event_log_open(path, &error);
    assert_non_null(log);
    for (size_t i = 0; i < FOUND + 1; i++) {
        assert_int_equal(event_log_next(log, &event, &error), 1);
        assert_int_equal(event.slot == CAIRN_SLOT_SHARED, i < FOUND);
    }
    event_log_close(log);
}

static void test_keeps_the_last_part(void **state) {
    (void)state;
    static struct part part;
    struct stat status;
    for (uint64_t bytes = 15000; bytes <= 45000; bytes += 1333) {
        part = (struct part){.ring_bytes = bytes};
        write_part(&part);
        end_part(&part);
        assert_int_equal(stat(path, &status), 0);
        assert_in_range(status.st_size, bytes / 2, bytes + 2000);
        size_t count = check_part(true);
        assert_in_range(count, CHUNK_EVENTS * SLOTS, made_count / 2);
    }
}

// Whoever writes it may be gone at any time: what is there then is the last part.
static void test_ring_that_was_cut(void **state) {
    (void)state;
    static struct part part;
    struct error error;
    part = (struct part){.ring_bytes = 30000};
    write_part(&part);  // no end
    size_t count = check_part(false);
    assert_in_range(count, CHUNK_EVENTS * SLOTS, made_count / 2);
    struct event_log *log = event_log_open(path, &error);
    assert_non_null(log);
    assert_true(event_log_facts(log)->is_cut);
    event_log_close(log);
    end_part(&part);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_come_back_in_an_order_that_can_be),
        cmocka_unit_test(test_missing_chunks_hold_nobody_up),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_damage_is_said),
        cmocka_unit_test(test_damaged_chunk_is_cut),
        cmocka_unit_test(test_begins_late),
        cmocka_unit_test(test_what_was_found_comes_first),
        cmocka_unit_test(test_keeps_the_last_part),
        cmocka_unit_test(test_ring_that_was_cut),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
