// SPDX-License-Identifier: Apache-2.0
// A segment of mimalloc made by hand: a page of four blocks, of which one is free, one was given
// back by another thread and one is on its way; then what contradicts itself.
#include "tool/mimalloc/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tool/damaged_heap.h"

enum {
    SLICE = 64 << 10,
    SLICES = 512,
    HEADER_WORDS = 33,
    SLICE_WORDS = 10,
    BLOCK = 2048,
    BLOCKS = 4
};
enum { MAY_DECOMMIT = 4, PENDING = 6, LAST_PENDING = PENDING + SLICES / 64 - 1 };
enum { USED = 26, COOKIE = 27, ALL_SLICES = 28, OWN_SLICES = 29, ENTRIES = 31, THREAD };
enum { FREE = 2, COUNTS = 3, LOCAL = 4, THREADS = 5, HEAP_WORD = 6 };  // of a slice
#define SEGMENT UINT64_C(0x20000000000)
#define HEAP UINT64_C(0x7f0000001000)
enum { HEAP_LIST = 2840 };

#define WAITING (SEGMENT + SLICES * (uint64_t)SLICE)

static struct {
    uint64_t words[2 * SLICE / sizeof(uint64_t)];  // the header's slice and the page
    uint64_t waiting[HEADER_WORDS];                // of a segment that has no page
    uint64_t heap[512];
} * made;

static bool read_made(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    const struct {
        uint64_t start, bytes;
        const void *from;
    } parts[] = {{SEGMENT, sizeof made->words, made->words},
                 {WAITING, sizeof made->waiting, made->waiting},
                 {HEAP, sizeof made->heap, made->heap}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const uint64_t inside = address - parts[i].start;
        if (address < parts[i].start || inside > parts[i].bytes || size > parts[i].bytes - inside)
            continue;
        memcpy(bytes, (const uint8_t *)parts[i].from + inside, size);
        return true;
    }
    return false;
}

static uint64_t block(unsigned number) {
    return SEGMENT + SLICE + (uint64_t)number * BLOCK;
}

static uint64_t *slice(unsigned number) {
    return made->words + HEADER_WORDS + (size_t)number * SLICE_WORDS;
}

static int setup(void **state) {
    (void)state;
    made = calloc(1, sizeof *made);
    made->words[USED] = 1;
    made->words[COOKIE] = UINT64_C(0x1234567) ^ SEGMENT;
    made->words[ALL_SLICES] = made->words[ENTRIES] = SLICES;
    made->words[OWN_SLICES] = 1;
    slice(0)[0] = slice(1)[0] = 1;
    slice(1)[1] = (uint64_t)BLOCKS << 16 | (uint64_t)(SLICE / BLOCK) << 32;
    slice(1)[FREE] = block(2);
    slice(1)[COUNTS] = (BLOCKS - 1) | (uint64_t)BLOCK << 32;
    slice(1)[THREADS] = block(1) | 2;
    slice(1)[HEAP_WORD] = HEAP;
    slice(2)[0] = SLICES - 2;
    made->words[THREAD] = made->heap[HEAP_LIST / sizeof(uint64_t) + 1] = 0x7b0000000740;
    made->heap[HEAP_LIST / sizeof(uint64_t)] = block(3);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(made);
    return 0;
}

static enum mimalloc_finding read_all(struct glibc_heap *heap) {
    static const struct memory_segment segment = {.start = SEGMENT - SLICE,
                                                  .end = WAITING + SLICES * (uint64_t)SLICE,
                                                  .bytes = SLICE + 2 * SLICES * (uint64_t)SLICE,
                                                  .is_writable = true};
    const struct memory_view view = {
        .reader = {.read = read_made}, .segments = &segment, .segment_count = 1};
    *heap = (struct glibc_heap){0};
    return mimalloc_heap_add(&view, heap);
}

static void test_blocks_are_told_apart(void **state) {
    (void)state;
    static const enum chunk_kind kinds[BLOCKS] = {CHUNK_USED, CHUNK_BINNED, CHUNK_BINNED,
                                                  CHUNK_CACHED};
    struct glibc_heap heap;
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_int_equal(heap.chunks.count, BLOCKS);
    assert_int_equal(heap.broken_count, 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(heap.chunks.items[i].address == block(i));
        assert_int_equal(heap.chunks.items[i].size, BLOCK);
        assert_int_equal(heap.chunks.items[i].kind, kinds[i]);
    }
    assert_int_equal(heap.other.page_bytes, SLICE);
    assert_int_equal(heap.other.free_page_bytes, (SLICES - 2) * SLICE);
    assert_true(spans_have(&heap.other.memory, SEGMENT));
    glibc_heap_free(&heap);
}

static void test_what_would_go_back(void **state) {
    (void)state;
    const uint64_t pending = SEGMENT + (uint64_t)(SLICES - 1) * SLICE;
    struct glibc_heap heap;
    made->words[LAST_PENDING] = UINT64_C(1) << 63;
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_int_equal(heap.other.classes.count, 1);
    const struct other_class *class = &heap.other.classes.items[0];
    assert_int_equal(class->size, BLOCK);
    assert_int_equal(class->page_bytes, SLICE);
    assert_int_equal(class->used + class->cached + class->free, BLOCKS);
    assert_int_equal(class->used, 1);
    assert_true(spans_have(&heap.other.free_pages, pending));
    assert_int_equal(heap.other.emptied.items.count, 0);
    assert_int_equal(heap.other.asked.items.count, 0);
    glibc_heap_free(&heap);
    // its last block goes to the list of the heap: nothing of the segment is in use
    made->words[(block(3) - SEGMENT) / sizeof(uint64_t)] = block(0);
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_true(spans_have(&heap.other.emptied, block(0)));
    assert_true(spans_have(&heap.other.asked, SEGMENT));
    glibc_heap_free(&heap);
}

static void test_what_waits_goes_with_an_emptied_page(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->words[MAY_DECOMMIT] = 1;
    made->words[LAST_PENDING] = UINT64_C(1) << 63;
    made->words[USED] = 2;
    memcpy(slice(2), slice(1), SLICE_WORDS * sizeof(uint64_t));
    slice(2)[FREE] = slice(2)[THREADS] = 0;
    slice(2)[1] = 0;
    slice(2)[COUNTS] = (uint64_t)BLOCK << 32;
    slice(3)[0] = SLICES - 3;
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_int_equal(heap.other.asked.items.count, 1);
    assert_true(heap.other.asked.items.items[0].start == SEGMENT + (uint64_t)(SLICES - 1) * SLICE);
    glibc_heap_free(&heap);
}

static void test_a_segment_that_waits_to_be_used_is_free(void **state) {
    (void)state;
    struct glibc_heap heap;
    memcpy(made->waiting, made->words, sizeof made->waiting);
    made->waiting[USED] = made->waiting[THREAD] = 0;
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_false(spans_have(&heap.other.memory, WAITING));  // its cookie is another address'
    glibc_heap_free(&heap);
    made->waiting[COOKIE] = UINT64_C(0x1234567) ^ WAITING;
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_true(spans_have(&heap.other.free_pages, WAITING));
    assert_true(spans_have(&heap.other.asked, WAITING));
    glibc_heap_free(&heap);
}

static void check_none(void) {
    struct glibc_heap heap;
    assert_int_equal(read_all(&heap), MIMALLOC_NONE);
    assert_int_equal(heap.chunks.count, 0);
    assert_null(heap.other.name);
}

static void test_counts_that_disagree_are_none(void **state) {
    (void)state;
    slice(1)[COUNTS]--;
    check_none();
}

static void test_lists_stay_in_their_page(void **state) {
    (void)state;
    slice(1)[FREE] = block(2) + 8;
    check_none();
    slice(1)[FREE] = block(BLOCKS);
    check_none();
    slice(1)[FREE] = SEGMENT;
    check_none();
}

static void test_a_list_that_loops_ends(void **state) {
    (void)state;
    made->words[(block(2) - SEGMENT) / sizeof(uint64_t)] = block(2);
    check_none();
}

// With padding behind blocks the heap has a word more in front of its list, and sizes are others.
static void test_a_build_with_padding_is_none(void **state) {
    (void)state;
    uint64_t *list = &made->heap[HEAP_LIST / sizeof(uint64_t)];
    memmove(list + 1, list, 2 * sizeof *list);
    *list = 0;
    check_none();
    made->words[THREAD] = 0;  // whose segments have no thread any more is not asked
    struct glibc_heap heap;
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    glibc_heap_free(&heap);
}

static void test_a_loop_of_the_heaps_list_ends(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->words[(block(3) - SEGMENT) / sizeof(uint64_t)] = block(3);
    assert_int_equal(read_all(&heap), MIMALLOC_FOUND);
    assert_int_equal(heap.broken_count, 1);
    glibc_heap_free(&heap);
}

static void test_slices_that_go_nowhere_end(void **state) {
    (void)state;
    struct glibc_heap heap;
    slice(2)[0] = 0;
    assert_int_equal(read_all(&heap), MIMALLOC_NONE);
    slice(2)[0] = SLICES;
    assert_int_equal(read_all(&heap), MIMALLOC_NONE);
}

// A word of the header, of the slices or of the page.
static void damage(uint64_t *chance) {
    uint64_t *word = &made->words[random_below(chance, HEADER_WORDS + 4 * SLICE_WORDS)];
    if (random_below(chance, 3) == 0)
        word = &made->words[(block(random_below(chance, BLOCKS)) - SEGMENT) / sizeof *word];
    const uint64_t place = block(random_below(chance, BLOCKS));
    *word = damaged_word(*word, chance, &place, 1);
}

static void read_damaged(struct glibc_heap *heap) {
    read_all(heap);
}

static void test_damage_ends(void **state) {
    damaged_heap_ends(
        state, &(struct damaged_heap){setup, teardown, damage, read_damaged, .rounds = 2000});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_ends),
        TEST(test_what_would_go_back),
        TEST(test_what_waits_goes_with_an_emptied_page),
        TEST(test_a_segment_that_waits_to_be_used_is_free),
        TEST(test_blocks_are_told_apart),
        TEST(test_counts_that_disagree_are_none),
        TEST(test_lists_stay_in_their_page),
        TEST(test_a_list_that_loops_ends),
        TEST(test_a_build_with_padding_is_none),
        TEST(test_a_loop_of_the_heaps_list_ends),
        TEST(test_slices_that_go_nowhere_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
