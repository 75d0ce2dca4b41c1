// SPDX-License-Identifier: Apache-2.0
// A heap made up at random, of which the heads alone are kept: its chunks are those of the whole
// memory, the words that are kept are its own, and all others are zeros; also where it makes no
// sense from a chunk on, and where there is no room for all heads.
#include "tool/glibc/heads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/glibc/chunks.h"

enum {
    WORD = 8,
    PAGE = 4096,
    DATA_BYTES = 2 * PAGE,
    HEAP_BYTES = 256 * PAGE,
    ARENA_AT = 160,  // in data
    BINS = 14,       // words from there to the first bin
    NEXT = ARENA_BIN_WORDS + 2,
    UNSORTED = 1,  // the number of a bin
    CACHE_CHUNK = 0x290,
    LARGEST = 3000,
    READS = 20000,
    READ_MOST = 9000,
    TURNS = 30,
};
#define DATA UINT64_C(0x7f0000400000)
#define HEAP UINT64_C(0x550000800000)

static uint64_t data[DATA_BYTES / WORD], heap[HEAP_BYTES / WORD];
static struct memory_segment segments[] = {{HEAP, HEAP + HEAP_BYTES, 0, HEAP_BYTES, true, false},
                                           {DATA, DATA + DATA_BYTES, 0, DATA_BYTES, true, false}};
static struct heap_heads heads;
static bool are_heads;  // the heap's memory is known by them alone

static uint8_t *place_of(uint64_t address, uint64_t *left) {
    for (size_t i = 0; i < 2; i++) {
        *left = segments[i].end - address;
        if (address >= segments[i].start && address < segments[i].end)
            return (uint8_t *)(i ? data : heap) + (address - segments[i].start);
    }
    return NULL;
}

static size_t piece(const void *context, uint64_t address, void *scratch, size_t size,
                    const uint8_t **bytes) {
    uint64_t left, next;
    (void)context;
    *bytes = scratch;
    const size_t known = are_heads ? heap_heads_read(&heads, address, scratch, size, &next) : 0;
    if (known) return known;
    if (are_heads && next - address < size) size = next - address;
    *bytes = place_of(address, &left);
    return !*bytes ? 0 : left < size ? (size_t)left : size;
}

static bool read_all(const void *context, uint64_t address, void *out, size_t size) {
    for (size_t done = 0; done < size;) {
        const uint8_t *bytes;
        uint8_t *to = (uint8_t *)out + done;
        const size_t some = piece(context, address + done, to, size - done, &bytes);
        if (!some) return false;
        if (bytes != to) memcpy(to, bytes, some);
        done += some;
    }
    return true;
}

static const struct memory_view view = {{read_all, piece, NULL, NULL}, segments, 2, PAGE};

static uint64_t *word_at(uint64_t address) {
    uint64_t left;
    return (uint64_t *)(void *)place_of(address, &left);
}

// The first chunk is a thread's cache, with a list of two blocks.
static void fill_cache(uint64_t first, uint64_t second) {
    uint8_t *block = (uint8_t *)word_at(HEAP + CHUNK_HEADER_BYTES);
    const uint16_t count = 2;
    memset(block, 0, CACHE_CHUNK - CHUNK_HEADER_BYTES);
    memcpy(block + 3 * sizeof count, &count, sizeof count);
    memcpy(block + CHUNK_CACHE_BINS * sizeof count + 3 * sizeof first, &first, sizeof first);
    *word_at(first) = second ^ first >> 12;
    *word_at(second) = 0 ^ second >> 12;
}

static void make_arena(uint64_t top, uint64_t freed) {
    uint64_t *words = data + ARENA_AT + BINS;
    for (unsigned bin = 0; bin < ARENA_BINS; bin++)
        words[2 * bin] = words[2 * bin + 1] = DATA + (ARENA_AT + BINS + 2 * bin - 2) * WORD;
    words[-2] = top;
    words[2 * (UNSORTED - 1)] = words[2 * (UNSORTED - 1) + 1] = freed;
    word_at(freed)[2] = word_at(freed)[3] =
        DATA + (ARENA_AT + BINS + 2 * (UNSORTED - 1) - 2) * WORD;
    words[NEXT] = DATA + ARENA_AT * WORD;
    words[NEXT + 2] = 1;
    words[NEXT + 3] = HEAP_BYTES;
}

// Returns where the chunk with number 40 is.
static uint64_t make_heap(void) {
    uint64_t at = HEAP, bytes = CACHE_CHUNK, chunks[64], number = 0;
    for (size_t i = 0; i < HEAP_BYTES / WORD; i++)
        heap[i] = (uint64_t)rand() << 33 | (uint64_t)rand();
    while (at + bytes + 2 * PAGE < HEAP + HEAP_BYTES) {
        const bool is_behind_free = number == 31;
        word_at(at)[1] = bytes | !is_behind_free;
        if (number < 64) chunks[number] = at;
        number++;
        at += bytes;
        bytes = 32 + (uint64_t)rand() % LARGEST / 16 * 16;
        if (bytes == CACHE_CHUNK) bytes += 32;
    }
    word_at(at)[1] = (HEAP + HEAP_BYTES - at) | 1;
    fill_cache(chunks[10] + CHUNK_HEADER_BYTES, chunks[12] + CHUNK_HEADER_BYTES);
    make_arena(at, chunks[30]);
    return chunks[40];
}

static void take_heads(size_t room) {
    are_heads = false;
    heads = (struct heap_heads){.items = calloc(room, sizeof *heads.items), .capacity = room};
    assert_true(heap_heads_take(&heads, &view));
    assert_true(heap_heads_settle(&heads));
    are_heads = true;
}

static void free_heads(void) {
    free(heads.items);
    heap_heads_free(&heads);
}

static void read_heap(struct glibc_heap *found) {
    struct error error;
    assert_true(glibc_heap_read(&view, found, &error));
}

static void expect_same(const struct glibc_heap *left, const struct glibc_heap *right) {
    assert_int_equal(left->chunks.count, right->chunks.count);
    assert_memory_equal(left->chunks.items, right->chunks.items,
                        left->chunks.count * sizeof *left->chunks.items);
    assert_int_equal(left->broken_count, right->broken_count);
    assert_int_equal(left->top_bytes, right->top_bytes);
}

static size_t count_of(const struct glibc_heap *found, enum chunk_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < found->chunks.count; i++) count += found->chunks.items[i].kind == kind;
    return count;
}

static void test_same_chunks(void **state) {
    (void)state;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct glibc_heap whole, by_heads;
        srand(turn);
        const uint64_t some = make_heap();
        const bool is_broken = turn % 3 == 2;
        if (is_broken) word_at(some)[1] = 7;
        are_heads = false;
        read_heap(&whole);
        take_heads(HEAP_BYTES / CHUNK_LEAST_BYTES);
        read_heap(&by_heads);
        expect_same(&by_heads, &whole);
        assert_int_equal(by_heads.broken_count, is_broken);
        assert_int_equal(count_of(&by_heads, CHUNK_CACHED), 2);
        assert_int_equal(count_of(&by_heads, CHUNK_BINNED), 1);
        glibc_heap_free(&whole);
        glibc_heap_free(&by_heads);
        free_heads();
    }
}

static void test_any_part(void **state) {
    (void)state;
    static uint8_t kept[HEAP_BYTES], part[READ_MOST];
    uint64_t next;
    srand(1);
    make_heap();
    take_heads(HEAP_BYTES / CHUNK_LEAST_BYTES);
    const uint64_t end = heads.stretches.items[0].end;
    assert_int_equal(heap_heads_read(&heads, HEAP, kept, sizeof kept, &next), end - HEAP);
    for (uint64_t at = 0; at < end - HEAP; at += WORD) {
        uint64_t word;
        memcpy(&word, kept + at, sizeof word);
        assert_true(!word || word == heap[at / WORD]);
    }
    for (unsigned i = 0; i < READS; i++) {
        const uint64_t at = HEAP + (uint64_t)rand() % (end - HEAP);
        const size_t size = 1 + (size_t)rand() % (READ_MOST - 1);
        const size_t there = size < end - at ? size : (size_t)(end - at);
        assert_int_equal(heap_heads_read(&heads, at, part, size, &next), there);
        assert_memory_equal(part, kept + (at - HEAP), there);
    }
    assert_int_equal(heap_heads_read(&heads, HEAP - WORD, part, sizeof part, &next), 0);
    assert_int_equal(next, HEAP);
    assert_int_equal(heap_heads_read(&heads, end, part, sizeof part, &next), 0);
    assert_int_equal(next, UINT64_MAX);
    free_heads();
}

static void test_no_room(void **state) {
    (void)state;
    enum { ROOM = 100 };
    struct glibc_heap whole, part;
    srand(2);
    make_heap();
    are_heads = false;
    read_heap(&whole);
    take_heads(ROOM);
    assert_int_equal(heads.count, ROOM);
    memset(heap + (heads.stretches.items[0].end - HEAP) / WORD, 0, PAGE);
    read_heap(&part);
    assert_int_equal(part.broken_count, 1);
    assert_in_range(part.chunks.count, ROOM - 1, ROOM);
    assert_memory_equal(part.chunks.items, whole.chunks.items,
                        (ROOM - 1) * sizeof *part.chunks.items);
    glibc_heap_free(&whole);
    glibc_heap_free(&part);
    free_heads();
}

static void test_no_heap(void **state) {
    (void)state;
    memset(data, 0, sizeof data);
    are_heads = false;
    heads = (struct heap_heads){0};
    assert_false(heap_heads_take(&heads, &view));
    heap_heads_free(&heads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_chunks),
        cmocka_unit_test(test_any_part),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_no_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
