// SPDX-License-Identifier: Apache-2.0
// Chunks from the middle of an arena: whatever is in the blocks, the chain is the true one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/glibc/resync.h"

#define BASE UINT64_C(0x555500000000)
enum { ARENA = 1 << 20, PIECE = 80 << 10, CHUNKS_MAX = ARENA / 32, USED_BEFORE = 1 };

static uint8_t arena[ARENA];
static uint64_t starts[CHUNKS_MAX];
static bool are_used[CHUNKS_MAX];
static size_t count;
static uint64_t state = 42;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void put(uint64_t at, uint64_t word) {
    memcpy(arena + at, &word, sizeof word);
}

enum contents { ZEROS, NOISE, LIKE_CHUNKS };

// What is in blocks may look like chunks: a size with flags now and then.
static void fill(uint64_t at, uint64_t size, enum contents contents) {
    for (uint64_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = 0;
        if (contents == NOISE) word = next_random();
        if (contents == LIKE_CHUNKS && next_random() % 8 == 0)
            word = (next_random() % 64 + 2) * 16 | USED_BEFORE;
        put(at + i, word);
    }
}

static void make(enum contents contents, uint64_t largest) {
    uint64_t at = 0;
    bool was_used = true;
    count = 0;
    while (at + largest + 4096 < ARENA) {
        uint64_t size = 32 + next_random() % (largest / 16) * 16;
        bool is_used = next_random() % 4 || !was_used;  // free ones are never neighbours
        put(at + 8, size | (was_used ? USED_BEFORE : 0));
        fill(at + 16, size - 16, contents);
        if (!is_used) put(at + size, size);
        starts[count] = at;
        are_used[count++] = is_used;
        at += size;
        // the size of a free chunk lies in the next one's first word, whose block it is not
        if (is_used) put(at, contents == ZEROS ? 0 : next_random());
        was_used = is_used;
    }
    put(at + 8, (ARENA - at) | (was_used ? USED_BEFORE : 0));
    fill(at + 16, ARENA - at - 16, ZEROS);
    starts[count] = at;
}

static bool read_arena(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    if (address < BASE || address - BASE > ARENA || size > ARENA - (address - BASE)) return false;
    memcpy(bytes, arena + (address - BASE), size);
    return true;
}

static const struct memory_reader memory = {.read = read_arena};

static size_t first_behind(uint64_t address) {
    size_t i = 0;
    while (i < count && BASE + starts[i] < address) i++;
    return i;
}

static struct resync piece_at(uint64_t start) {
    return (struct resync){.memory = &memory,
                           .start = BASE + start,
                           .end = BASE + start + PIECE,
                           .range_start = BASE,
                           .range_end = BASE + ARENA,
                           .is_main = true};
}

// From behind the run-up of a piece on all chunks are the true ones.
static void check_piece(uint64_t start) {
    const uint64_t run_up = 16 << 10;
    const struct resync resync = piece_at(start);
    struct resync_chunk chunk;
    struct resync_found found;
    assert_true(resync_find(&resync, &found) && found.is_sure);
    uint64_t at = found.first;
    while (at < resync.start + run_up) {
        assert_true(resync_read(&resync, at, &chunk));
        at += chunk.size;
    }
    for (size_t i = first_behind(resync.start + run_up); at < resync.end; i++) {
        assert_int_equal(at, BASE + starts[i]);
        assert_true(resync_read(&resync, at, &chunk));
        assert_int_equal(chunk.is_last, i == count);
        if (i < count) assert_int_equal(chunk.is_used, are_used[i]);
        at += chunk.size;
    }
    assert_int_equal(at, found.behind);
}

static void check_all(enum contents contents, uint64_t largest) {
    for (int round = 0; round < 10; round++) {
        make(contents, largest);
        for (uint64_t start = 0; start + PIECE <= ARENA; start += 64 << 10) check_piece(start);
        check_piece(ARENA - PIECE);
    }
}

static void test_zeros(void **unused) {
    (void)unused;
    check_all(ZEROS, 2000);
}

static void test_noise(void **unused) {
    (void)unused;
    check_all(NOISE, 5000);
}

static void test_like_chunks(void **unused) {
    (void)unused;
    check_all(LIKE_CHUNKS, 1000);
}

// In the middle of one block there is nothing to find, whatever is in it.
static void test_inside_of_a_block(void **unused) {
    (void)unused;
    struct resync_found found;
    for (int contents = ZEROS; contents <= LIKE_CHUNKS; contents++) {
        const uint64_t size = ARENA - 4096;
        memset(arena, 0, sizeof arena);
        put(8, size | USED_BEFORE);
        fill(16, size - 16, (enum contents)contents);
        put(size + 8, (ARENA - size) | USED_BEFORE);
        const struct resync resync = piece_at(256 << 10);
        // what looks like a chain leads into the block again, or it would be one
        if (resync_find(&resync, &found)) assert_int_equal(contents, LIKE_CHUNKS);
    }
}

// A copy ends with its piece: what is behind is not known, but where the last chunk ended was.
static void test_copy(void **unused) {
    (void)unused;
    struct resync_found found, again;
    make(NOISE, 5000);
    struct resync resync = piece_at(128 << 10);
    assert_true(resync_find(&resync, &found));
    memset(arena + (resync.end - BASE), 0, ARENA - (resync.end - BASE));
    assert_false(resync_find(&resync, &again));
    resync.is_copy = true;
    assert_true(resync_find(&resync, &again) && !again.is_sure);
    assert_int_equal(again.first, found.first);
    resync.behind = found.behind;
    assert_true(resync_find(&resync, &again) && again.is_sure);
    assert_int_equal(again.behind, found.behind);
}

static void test_refuses(void **unused) {
    (void)unused;
    struct resync_chunk chunk;
    struct resync_found found;
    make(NOISE, 2000);
    struct resync resync = piece_at(0);
    assert_false(resync_read(&resync, BASE - 16, &chunk));
    assert_false(resync_read(&resync, BASE + ARENA, &chunk));
    resync.start += 8;
    assert_false(resync_find(&resync, &found));
    resync = piece_at(0);
    resync.end -= 8;
    assert_false(resync_find(&resync, &found));
    resync.end = resync.start;
    assert_false(resync_find(&resync, &found));
    resync.end = resync.start + RESYNC_BYTES_MAX + 16;
    assert_false(resync_find(&resync, &found));
    memset(arena, 0, sizeof arena);
    resync = piece_at(0);
    assert_false(resync_find(&resync, &found));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros),       cmocka_unit_test(test_noise),
        cmocka_unit_test(test_like_chunks), cmocka_unit_test(test_inside_of_a_block),
        cmocka_unit_test(test_copy),        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
