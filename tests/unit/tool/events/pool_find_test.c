// SPDX-License-Identifier: Apache-2.0
// Made-up logs whose pools are known: each kind, what just fails to be one, and what is left out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/events/event.h"
#include "tool/events/frame_writer.h"
#include "tool/events/pool_find.h"

enum { SLOTS = 3, WORDS = 4096, EVENTS = 20000, CELLS = 64, STACKS = 32, SHIFT = 5, MOST = 2000 };

// Cell 1 to 31 are the stacks 0 to 30 in slot 0, cell 33 and so on the same in slot 1.
enum { OTHER_SLOT = 32 };

static struct event events[EVENTS];
static size_t event_count;
static uint64_t site_of_stack[STACKS], followed_limit;
static struct pool_candidates found;
static char path[] = "/tmp/pool_find_test.XXXXXX";

static int begin(void **state) {
    (void)state;
    event_count = 0;
    followed_limit = POOL_FOLLOWED_MOST;
    for (uint64_t i = 0; i < STACKS; i++) site_of_stack[i] = 100 + i;
    return 0;
}

static uint64_t address_of(unsigned block) {
    return 0x7f0000000000 + ((uint64_t)block << 14);
}

// Each event is a millisecond later than the one before, so that threads are in that order.
static void add(uint32_t slot, struct event event) {
    assert_true(event_count < EVENTS);
    event.slot = slot;
    event.ms = event_count;
    events[event_count++] = event;
}

static void allocate_in(uint32_t slot, uint32_t cell, unsigned block, uint64_t size) {
    add(slot, (struct event){.flags = CAIRN_EVENT_ALLOC,
                             .cell = cell + slot * OTHER_SLOT,
                             .address = address_of(block),
                             .size = size});
}

static void release_in(uint32_t slot, unsigned block) {
    add(slot, (struct event){.flags = CAIRN_EVENT_FREE, .address = address_of(block)});
}

static void allocate(uint32_t cell, unsigned block, uint64_t size) {
    allocate_in(0, cell, block, size);
}

static void release(unsigned block) {
    release_in(0, block);
}

static void write_slot(struct frame_writer *writer, uint32_t slot) {
    static uint64_t words[WORDS];
    struct cairn_events_chunk chunk = {.slot = slot, .thread = slot + 1};
    for (size_t at = 0; at < event_count;) {
        size_t count = 0;
        uint64_t ms = 0;
        memset(words, 0, sizeof words);
        for (; at < event_count && count + 8 < WORDS; at++) {
            const struct event *event = &events[at];
            if (event->slot != slot) continue;
            if (!count) chunk.start_ms = ms = event->ms;
            if (event->ms > ms)
                words[count++] = event->ms << CAIRN_EVENT_ADDRESS_SHIFT | CAIRN_EVENT_TIME;
            ms = event->ms;
            words[count++] = event->address << CAIRN_EVENT_ADDRESS_SHIFT | event->flags;
            if (event_kind(event) == CAIRN_EVENT_ALLOC)
                words[count++] = event->size << 32 | event->cell;
            if (event->flags & CAIRN_EVENT_ALIGNED) words[count++] = event->alignment;
            if (event->flags & CAIRN_EVENT_MOVED) words[count++] = event->taken;
        }
        assert_true(frame_writer_add(writer, &chunk, words, WORDS));
        chunk.number++;
    }
}

static void find(void) {
    const struct cairn_event_file header = {.magic = CAIRN_EVENT_FILE_MAGIC,
                                            .version = CAIRN_EVENT_FILE_VERSION,
                                            .header_bytes = CAIRN_EVENT_FILE_BYTES,
                                            .granule_shift = SHIFT,
                                            .recording = "x.cairn"};
    uint32_t stack_of_cell[CELLS] = {0};
    const struct pool_search search = {.log = path,
                                       .stack_of_cell = stack_of_cell,
                                       .cell_count = CELLS,
                                       .stack_count = STACKS,
                                       .site_of_stack = site_of_stack,
                                       .followed_limit = followed_limit};
    struct error error;
    strcpy(strchr(path, '.'), ".XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    struct frame_writer *writer = frame_writer_open(path, &header, &error);
    assert_non_null(writer);
    for (uint32_t slot = 0; slot < SLOTS; slot++) write_slot(writer, slot);
    assert_true(frame_writer_close(writer, NULL, &error));
    for (uint32_t cell = 1; cell < CELLS; cell++)
        if (cell % OTHER_SLOT) stack_of_cell[cell] = cell % OTHER_SLOT;
    assert_true(pool_candidates_find(&search, &found, &error));
    unlink(path);
}

static int end(void **state) {
    (void)state;
    pool_candidates_free(&found);
    return 0;
}

// The candidate that has this stack (cell - 1); NULL: none has.
static const struct pool_candidate *of_cell(uint32_t cell) {
    for (size_t i = 0; i < found.count; i++)
        for (size_t j = 0; j < found.list[i].member_count; j++)
            if (found.members[found.list[i].first_member + j].stack == cell - 1)
                return &found.list[i];
    return NULL;
}

static enum pool_kind kind_of(uint32_t cell) {
    const struct pool_candidate *candidate = of_cell(cell);
    return candidate ? candidate->kind : POOL_NONE;
}

// --- buffers

static void a_block_that_is_gone_before_the_next_one_is_a_buffer(void **state) {
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        allocate(1, 1, 100 + i);
        release(1);
    }
    find();
    const struct pool_candidate *buffer = of_cell(1);
    assert_int_equal(found.count, 1);
    assert_int_equal(buffer->kind, POOL_BUFFER);
    assert_int_equal(buffer->blocks, 100);
    assert_int_equal(buffer->calls_gone, 200);
    assert_int_equal(buffer->bytes_gone, 100 * 100 + 99 * 100 / 2);
    assert_int_equal(buffer->kept_bytes, 199);
    assert_int_equal(buffer->chunks, 0);
    assert_int_equal(found.calls, 200);
    assert_int_equal(found.calls_gone, 200);
}

// Sizes are all different, so that no slab is found in its place.
static void use_after(unsigned others) {
    for (unsigned i = 0; i < 20; i++) {
        allocate(1, 1, 100 + i);
        for (unsigned j = 0; j < others; j++) allocate(2, 1000 + MOST * i + j, 5000);
        release(1);
    }
}

static void a_buffer_is_gone_within_64_allocations(void **state) {
    (void)state;
    use_after(POOL_SOON);
    find();
    assert_int_equal(kind_of(1), POOL_BUFFER);
    pool_candidates_free(&found);
    event_count = 0;
    use_after(POOL_SOON + 1);
    find();
    assert_int_equal(kind_of(1), POOL_LIFO);
    assert_int_equal(kind_of(2), POOL_NONE);  // too large
}

static void two_at_a_time_are_no_buffer(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        allocate(1, 1, 100 + i);
        if (i == 7) {
            allocate(1, 2, 50);
            release(2);
        }
        release(1);
    }
    find();
    assert_int_equal(kind_of(1), POOL_LIFO);
}

static void another_threads_free_makes_no_buffer(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        allocate(1, 1, 100 + i);
        release_in(i == 7, 1);
    }
    find();
    assert_int_equal(kind_of(1), POOL_NONE);
}

static void threads_have_a_buffer_each(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++)
        for (uint32_t slot = 0; slot < 2; slot++) {
            allocate_in(slot, 1, 1 + slot, 40);
            if (slot) release_in(0, 1);
            if (slot) release_in(1, 2);
        }
    find();
    assert_int_equal(kind_of(1), POOL_BUFFER);
    assert_int_equal(of_cell(1)->pool_count, 2);
    assert_int_equal(of_cell(1)->calls_gone, 80);
    assert_false(of_cell(1)->is_shared);
    assert_int_equal(of_cell(1)->member_count, 1);
}

// --- arenas

// `documents` of 10 blocks of each of two stacks; `is_split`: something is allocated in between.
static void load_documents(unsigned documents, bool is_split) {
    for (unsigned i = 0; i < documents; i++) {
        for (unsigned j = 0; j < 10; j++) {
            allocate(1, j, 30 + j);
            allocate(2, 100 + j, 300);
        }
        for (unsigned j = 0; j < 10; j++) release(j);
        if (is_split) allocate(9, 1000 + i, 9000);
        for (unsigned j = 0; j < 10; j++) release(100 + j);
    }
}

static void blocks_that_die_together_share_an_arena(void **state) {
    (void)state;
    load_documents(50, false);
    find();
    const struct pool_candidate *arena = of_cell(1);
    assert_int_equal(found.count, 1);
    assert_int_equal(arena->kind, POOL_ARENA);
    assert_ptr_equal(arena, of_cell(2));
    assert_int_equal(arena->member_count, 2);
    assert_int_equal(arena->generations, 50);
    assert_int_equal(arena->blocks, 1000);
    assert_int_equal(arena->chunks, 1);
    assert_int_equal(arena->calls_gone, 2000 - 1);
    assert_int_equal(arena->bytes_gone, 50 * (345 + 3000) - (int)POOL_CHUNK_BYTES);
    assert_int_equal(arena->kept_bytes, POOL_CHUNK_BYTES);
    assert_int_equal(arena->live_bytes, 3 * 32 + 7 * 48 + 10 * 304);
}

static void frees_in_two_rows_are_two_arenas(void **state) {
    (void)state;
    load_documents(50, true);
    find();
    assert_int_equal(kind_of(1), POOL_ARENA);
    assert_int_equal(kind_of(2), POOL_ARENA);
    assert_ptr_not_equal(of_cell(1), of_cell(2));
}

static void an_arena_takes_as_many_chunks_as_its_largest_generation(void **state) {
    (void)state;
    for (unsigned count = 1; count <= 100; count += 99)
        for (unsigned i = 0; i < 3; i++) {
            for (unsigned j = 0; j < count; j++) allocate(1, j, 4000 + j % 2);
            for (unsigned j = 0; j < count; j++) release(j);
        }
    find();
    // 8 blocks of 4,000 or 4,016 bytes go into a chunk
    assert_int_equal(kind_of(1), POOL_ARENA);
    assert_int_equal(of_cell(1)->chunks, 13);
    assert_int_equal(of_cell(1)->calls_gone, 2 * 303 - 13);
}

// One block of each generation is there all the time: the next generation begins before it dies.
static void generations_that_overlap_are_no_arena(void **state) {
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        for (unsigned j = 0; j < 10; j++) allocate(1, 10 * (i % 2) + j, 16 * j + i + 1);
        for (unsigned j = 0; i && j < 10; j++) release(10 * ((i + 1) % 2) + j);
    }
    find();
    assert_int_equal(kind_of(1), POOL_NONE);
}

static void three_blocks_a_generation_are_too_few(void **state) {
    (void)state;
    for (unsigned count = 3; count < 5; count++)
        for (unsigned i = 0; i < 50; i++) {
            for (unsigned j = 0; j < count; j++) allocate(count, j, 10 + 7 * j + i);
            for (unsigned j = 0; j < count; j++) release(j);
        }
    find();
    assert_int_equal(kind_of(3), POOL_NONE);
    assert_int_equal(kind_of(4), POOL_ARENA);
}

static void blocks_that_are_never_freed_have_an_arena(void **state) {
    (void)state;
    site_of_stack[0] = site_of_stack[1] = 7;
    for (unsigned i = 0; i < 200; i++) allocate(1 + i % 2, i, 100 + i);
    find();
    const struct pool_candidate *arena = of_cell(1);
    assert_int_equal(arena->kind, POOL_ARENA);
    assert_ptr_equal(arena, of_cell(2));  // at the same place of the program
    assert_int_equal(arena->generations, 0);
    assert_int_equal(arena->pool_count, 1);
    assert_int_equal(arena->chunks, 2);
    assert_int_equal(arena->calls_gone, 200 - 2);
}

static void threads_have_an_arena_each(void **state) {
    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned j = 0; j < 8; j++) allocate_in(i % 2, 1, 100 * (i % 2) + j, 20 + j);
        if (i % 2)
            for (unsigned j = 0; j < 8; j++)
                for (uint32_t slot = 0; slot < 2; slot++) release_in(slot, 100 * slot + j);
    }
    find();
    assert_int_equal(kind_of(1), POOL_ARENA);
    assert_int_equal(of_cell(1)->pool_count, 2);
    assert_int_equal(of_cell(1)->chunks, 2);
    assert_int_equal(of_cell(1)->generations, 30);
    assert_false(of_cell(1)->is_shared);
}

static void blocks_handed_over_have_an_arena_in_common(void **state) {
    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned j = 0; j < 8; j++) allocate_in(0, 1, j, 20 + j + i);
        for (unsigned j = 0; j < 8; j++) release_in(1, j);
    }
    find();
    assert_int_equal(kind_of(1), POOL_ARENA);
    assert_int_equal(of_cell(1)->pool_count, 1);
    assert_true(of_cell(1)->is_shared);
}

// --- last in, first out; slabs

static void depths(bool is_lifo) {
    unsigned live = 0;
    allocate(1, live++, 1);
    for (unsigned i = 0; i < 400; i++) {
        bool is_up = i % 8 < 4;
        if (is_up)
            allocate(1, live++, 40 + i);
        else
            release(--live);
        if (!is_lifo && i == 202) {
            release(live - 2);
            allocate(1, live - 2, 17);
        }
    }
}

static void what_was_allocated_last_and_is_freed_first_is_lifo(void **state) {
    (void)state;
    depths(true);
    find();
    assert_int_equal(kind_of(1), POOL_LIFO);
    assert_int_equal(of_cell(1)->chunks, 1);
    assert_int_equal(of_cell(1)->calls_gone, 401 - 1);
    pool_candidates_free(&found);
    event_count = 0;
    depths(false);
    find();
    assert_int_equal(kind_of(1), POOL_NONE);
}

// Of `count` blocks that live at a time the oldest is replaced; every `other`-th has another size.
static void replace_oldest(unsigned count, unsigned rounds, unsigned other) {
    for (unsigned i = 0; i < rounds; i++) {
        if (i >= count) release(i % count);
        allocate(1, i % count, other && i % other == 0 ? 200 + i % 1000 : 48);
    }
}

static void blocks_of_one_size_have_a_slab(void **state) {
    (void)state;
    replace_oldest(1000, 6000, 4);
    find();
    const struct pool_candidate *slab = of_cell(1);
    assert_int_equal(slab->kind, POOL_SLAB);
    assert_int_equal(slab->block_bytes, 48);
    assert_int_equal(slab->blocks, 4500);
    assert_int_equal(slab->live_bytes, 750 * 48);
    assert_int_equal(slab->chunks, 2);  // of 682 blocks
    assert_int_equal(slab->calls_gone, 4500 + 3750 - 2);
    assert_int_equal(slab->bytes_gone, 4500 * 48 - 2 * (int)POOL_CHUNK_BYTES);
}

static void half_of_the_blocks_must_have_the_slabs_size(void **state) {
    (void)state;
    for (unsigned i = 0; i < 900; i++) {
        if (i >= 100) release(i % 100);
        allocate(1, i % 100, i % 3 ? 200 + i : 48);
    }
    find();
    assert_int_equal(kind_of(1), POOL_NONE);
}

static void stacks_of_one_place_and_size_share_a_slab(void **state) {
    (void)state;
    site_of_stack[0] = site_of_stack[1] = site_of_stack[2] = 7;
    for (unsigned i = 0; i < 600; i++) {
        uint32_t cell = 1 + i % 3;
        if (i >= 90) release(i % 90);
        allocate(cell, i % 90, cell == 3 ? 64 : 48);
    }
    find();
    assert_int_equal(kind_of(1), POOL_SLAB);
    assert_ptr_equal(of_cell(1), of_cell(2));
    assert_ptr_not_equal(of_cell(1), of_cell(3));
    assert_int_equal(of_cell(1)->chunks, 1);
    assert_int_equal(of_cell(1)->pool_count, 1);
}

// --- what is left out

static void stacks_of_realloc_are_left_out(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        allocate(1, 1, 40);
        add(0, (struct event){.flags = CAIRN_EVENT_TAKE, .address = address_of(1)});
        add(0, (struct event){.flags = CAIRN_EVENT_ALLOC | CAIRN_EVENT_MOVED,
                              .cell = 2,
                              .address = address_of(2),
                              .taken = address_of(1),
                              .size = 80});
        release(2);
        allocate(3, 3, 80);
        release(3);
    }
    find();
    assert_int_equal(found.resized_stacks, 2);
    assert_int_equal(kind_of(1), POOL_NONE);
    assert_int_equal(kind_of(2), POOL_NONE);
    assert_int_equal(kind_of(3), POOL_BUFFER);
    assert_int_equal(found.calls, 20 * 6);
}

// The stacks with most blocks go, whichever comes when there is no room; of all others nothing is
// lost.
static void what_is_beyond_the_limit_is_left_out_and_said(void **state) {
    (void)state;
    followed_limit = 50;
    for (unsigned i = 0; i < 80; i++) {
        allocate(1, i, 10 + i);
        allocate(2, 1000, 16);
        release(1000);
        if (i < 10) allocate(3, 2000 + i, 100 + i);
    }
    for (unsigned i = 0; i < 80; i++) release(i);
    find();
    assert_int_equal(found.followed_blocks, 50);
    assert_int_equal(found.unfollowed_blocks, 80);
    assert_int_equal(found.unfollowed_stacks, 1);
    assert_int_equal(found.calls, 80 + 160 + 10 + 80);
    assert_int_equal(kind_of(1), POOL_NONE);
    assert_int_equal(kind_of(2), POOL_BUFFER);
    assert_int_equal(of_cell(2)->calls_gone, 160);
    assert_int_equal(kind_of(3), POOL_ARENA);
    assert_int_equal(of_cell(3)->blocks, 10);
}

// Ten stacks with as many blocks each: not all of them have to go.
static void no_more_is_left_out_than_has_to_be(void **state) {
    (void)state;
    followed_limit = 400;
    for (unsigned i = 0; i < 500; i++) allocate(1 + i % 10, i, 10 + i);
    find();
    assert_int_equal(found.followed_blocks, 400);
    assert_int_equal(found.unfollowed_stacks, 3);
    assert_int_equal(found.unfollowed_blocks, 150);
    unsigned arenas = 0;
    for (uint32_t cell = 1; cell <= 10; cell++)
        arenas += kind_of(cell) == POOL_ARENA && of_cell(cell)->blocks == 50;
    assert_int_equal(arenas, 7);
}

// A chunk has to spare more than 8 calls.
static void few_blocks_are_not_worth_a_chunk(void **state) {
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        if (i < 8) allocate(1, i, 100 + i);
        allocate(2, 1000 + i, 100 + i);
    }
    find();
    assert_int_equal(kind_of(1), POOL_NONE);
    assert_int_equal(kind_of(2), POOL_ARENA);
}

static void large_and_aligned_blocks_stay_with_malloc(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        allocate(1, 1, i % 2 ? POOL_BLOCK_MOST : POOL_BLOCK_MOST + 1);
        release(1);
        add(0, (struct event){.flags = CAIRN_EVENT_ALLOC | CAIRN_EVENT_ALIGNED,
                              .cell = 2,
                              .address = address_of(2),
                              .alignment = 64,
                              .size = 80});
        release(2);
    }
    find();
    assert_int_equal(of_cell(1)->calls_gone, 20);
    assert_int_equal(kind_of(2), POOL_NONE);
    assert_int_equal(found.calls, 80);
}

// A block in the place of one that was never freed: the log has lost its free.
static void a_free_that_is_missing_is_no_call(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        allocate(1, 1, 40 + i);
        if (i != 10) release(1);
    }
    find();
    assert_int_equal(kind_of(1), POOL_BUFFER);
    assert_int_equal(of_cell(1)->calls_gone, 39);
}

static void an_empty_log_has_none(void **state) {
    (void)state;
    find();
    assert_int_equal(found.count, 0);
    assert_int_equal(found.calls, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_block_that_is_gone_before_the_next_one_is_a_buffer),
        TEST(a_buffer_is_gone_within_64_allocations),
        TEST(two_at_a_time_are_no_buffer),
        TEST(another_threads_free_makes_no_buffer),
        TEST(threads_have_a_buffer_each),
        TEST(blocks_that_die_together_share_an_arena),
        TEST(frees_in_two_rows_are_two_arenas),
        TEST(an_arena_takes_as_many_chunks_as_its_largest_generation),
        TEST(generations_that_overlap_are_no_arena),
        TEST(three_blocks_a_generation_are_too_few),
        TEST(blocks_that_are_never_freed_have_an_arena),
        TEST(threads_have_an_arena_each),
        TEST(blocks_handed_over_have_an_arena_in_common),
        TEST(what_was_allocated_last_and_is_freed_first_is_lifo),
        TEST(blocks_of_one_size_have_a_slab),
        TEST(half_of_the_blocks_must_have_the_slabs_size),
        TEST(stacks_of_one_place_and_size_share_a_slab),
        TEST(stacks_of_realloc_are_left_out),
        TEST(what_is_beyond_the_limit_is_left_out_and_said),
        TEST(few_blocks_are_not_worth_a_chunk),
        TEST(no_more_is_left_out_than_has_to_be),
        TEST(large_and_aligned_blocks_stay_with_malloc),
        TEST(a_free_that_is_missing_is_no_call),
        TEST(an_empty_log_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
