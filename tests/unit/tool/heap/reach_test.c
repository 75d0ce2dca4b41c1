// SPDX-License-Identifier: Apache-2.0
// A small process made by hand: data, a stack, a heap of known blocks. Which block an address lies
// in, what is reachable from where, and who refers to whom; spans and notes that go with it.
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/heap/image.h"
#include "tool/heap/paths.h"
#include "tool/heap/references.h"

enum { WORDS = 512, WORD = 8, BLOCKS = 6 };  // a page each
enum { DATA = 0x10000, STACK = 0x20000, HEAP = 0x30000, FAR = 0x30000000 };
enum { A, B, C, D, FREE, E };  // blocks, of 3 words each, but the last one, which is far away

static uint64_t data[WORDS], stack[WORDS], heap_words[WORDS], far_words[WORDS];
static uint8_t bytes[4 * sizeof data];
static struct core_image core;
static struct core_reach reach;
static struct error error;
static struct core_file module = {DATA, DATA + sizeof data, sizeof data, NULL};  // if it has a path

static uint64_t address_of(int block) {
    return block == E ? FAR + 2 * WORD : HEAP + 2 * WORD + (uint64_t)block * 4 * WORD;
}

static struct memory_segment segment(uint64_t start, size_t number) {
    return (struct memory_segment){.start = start,
                                   .end = start + sizeof data,
                                   .offset = number * sizeof data,
                                   .bytes = sizeof data,
                                   .is_writable = true};
}

// The words of the process as they are now, and its blocks.
static void look(bool are_all_glibc) {
    static struct memory_segment segments[4];
    static struct core_thread thread;
    struct glibc_heap heap = {0};
    const struct spans others = {0};
    memcpy(bytes, data, sizeof data);
    memcpy(bytes + sizeof data, stack, sizeof data);
    memcpy(bytes + 2 * sizeof data, heap_words, sizeof data);
    memcpy(bytes + 3 * sizeof data, far_words, sizeof data);
    segments[0] = segment(DATA, 0);
    segments[1] = segment(STACK, 1);
    segments[2] = segment(HEAP, 2);
    segments[3] = segment(FAR, 3);
    core = (struct core_image){.source = {.descriptor = -1, .bytes = bytes, .size = sizeof bytes},
                               .map = bytes,
                               .first_stack = STACK + sizeof stack - WORD,
                               .machine = EM_X86_64};
    core.segments.items = segments;
    core.segments.count = 4;
    thread = (struct core_thread){.tid = 1, .register_count = 27, .stack = STACK + 40 * WORD};
    thread.registers[5] = data[WORDS - 1];  // what a test leaves there is in rbx
    core.threads.items = &thread;
    core.threads.count = 1;
    core.files.items = &module;
    core.files.count = module.path ? 1 : 0;
    for (int i = 0; i < BLOCKS; i++) {
        struct glibc_chunk *chunk = array_push(&heap.chunks);
        assert_non_null(chunk);
        *chunk =
            (struct glibc_chunk){address_of(i), 3 * WORD, i == FREE ? CHUNK_BINNED : CHUNK_USED};
    }
    struct glibc_range *range = array_push(&heap.ranges);
    assert_non_null(range);
    *range = (struct glibc_range){HEAP, HEAP + sizeof data, HEAP + sizeof data, 0, true, HEAP};
    range = array_push(&heap.ranges);
    assert_non_null(range);
    *range = (struct glibc_range){FAR, FAR + sizeof data, FAR + sizeof data, 0, false, FAR};
    assert_true(core_reach_open(&core, &heap, are_all_glibc, &others, &reach, &error));
    assert_true(core_reach_mark(&reach, &error));
}

static uint64_t *words_of(int block) {
    return block == E ? &far_words[2] : &heap_words[2 + block * 4];
}

static int setup(void **state) {
    (void)state;
    memset(data, 0, sizeof data);
    memset(stack, 0, sizeof stack);
    memset(heap_words, 0, sizeof heap_words);
    memset(far_words, 0, sizeof far_words);
    module.path = NULL;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    core_reach_close(&reach);
    return 0;
}

static void check(int block, enum core_reached wanted) {
    assert_int_equal(core_reach_of(&reach, address_of(block)), wanted);
}

static void check_same(const struct core_reference *one, const struct core_reference *other) {
    assert_int_equal(one->at, other->at);
    assert_int_equal(one->to, other->to);
    assert_int_equal(one->block, other->block);
    assert_ptr_equal(one->thread, other->thread);
    assert_int_equal(one->register_number, other->register_number);
}

// Start, inside, last byte; the header of the next block, free blocks, gaps and what is outside.
static void test_addresses(void **state) {
    (void)state;
    for (int are_all_glibc = 0; are_all_glibc < 2; are_all_glibc++) {
        uint64_t place, first;
        look(are_all_glibc);
        for (int i = 0; i < BLOCKS; i++) {
            assert_int_equal(block_map_find(&reach.map, address_of(i), &first), i != FREE);
            assert_int_equal(block_map_address(&reach.map, first), address_of(i));
            if (i == FREE) continue;
            assert_true(block_map_find(&reach.map, address_of(i) + 3 * WORD - 1, &place));
            assert_int_equal(place, first);
            assert_false(block_map_find(&reach.map, address_of(i) + 3 * WORD, &place));
            assert_true(block_map_end(&reach.map, first) >= address_of(i) + 3 * WORD);
        }
        assert_false(block_map_find(&reach.map, HEAP, &place));
        assert_false(block_map_find(&reach.map, address_of(FREE) + 6 * WORD, &place));
        assert_false(block_map_find(&reach.map, FAR - WORD, &place));
        assert_false(block_map_find(&reach.map, UINT64_MAX, &place));
        if (!are_all_glibc) core_reach_close(&reach);
    }
}

static void test_nothing(void **state) {
    (void)state;
    look(true);
    for (int i = 0; i < BLOCKS; i++) check(i, i == FREE ? CORE_NO_BLOCK : CORE_UNREFERENCED);
}

// From data into A, from there inside of E, from there to B; C refers to D, and both to themselves.
static void test_chain(void **state) {
    (void)state;
    data[3] = address_of(A);
    words_of(A)[2] = address_of(E) + 5;
    words_of(E)[0] = address_of(B) + 2 * WORD;
    words_of(C)[1] = address_of(D);
    words_of(C)[2] = address_of(C);
    words_of(D)[0] = address_of(D);
    look(true);
    check(A, CORE_REACHABLE);
    check(E, CORE_REACHABLE);
    check(B, CORE_REACHABLE);
    check(C, CORE_UNREFERENCED);
    check(D, CORE_LEAKED);
    struct core_references path;
    assert_true(core_find_path(&reach, address_of(B), &path));
    assert_int_equal(path.items.count, 3);
    assert_int_equal(path.items.items[0].at, DATA + 3 * WORD);
    assert_int_equal(path.items.items[1].block, address_of(A));
    assert_int_equal(path.items.items[2].block, address_of(E));
    core_references_free(&path);
    assert_true(core_find_path(&reach, address_of(D), &path));
    assert_int_equal(path.items.count, 0);
}

// A ring is leaked, and nothing of it is unreferenced; a free block keeps nothing.
static void test_ring(void **state) {
    (void)state;
    words_of(A)[0] = address_of(B);
    words_of(B)[0] = address_of(A);
    data[0] = address_of(FREE);
    words_of(FREE)[0] = address_of(C);
    look(true);
    check(A, CORE_LEAKED);
    check(B, CORE_LEAKED);
    check(C, CORE_UNREFERENCED);
    struct core_references found;
    assert_true(core_find_incoming(&reach, address_of(A) + 1, &found));
    assert_int_equal(found.items.count, 1);
    assert_int_equal(found.items.items[0].block, address_of(B));
    core_references_free(&found);
    assert_true(core_find_outgoing(&reach, address_of(A), 3 * WORD, &found));
    assert_int_equal(found.items.count, 1);
    assert_int_equal(found.items.items[0].to, address_of(B));
    core_references_free(&found);
}

// A register, the stack from its pointer on; below that words are stale. Words that are not
// aligned, and the header before a block, are none.
static void test_roots(void **state) {
    (void)state;
    data[WORDS - 1] = 0;
    stack[41] = address_of(A);
    stack[5] = address_of(B);
    memcpy((char *)&data[10] + 1, &(uint64_t){address_of(C)}, WORD);
    data[12] = address_of(D) - WORD;
    look(true);
    check(A, CORE_REACHABLE);
    check(B, CORE_UNREFERENCED);
    check(C, CORE_UNREFERENCED);
    check(D, CORE_UNREFERENCED);
    struct core_references path;
    core_reach_close(&reach);
    data[WORDS - 1] = address_of(D);
    look(true);
    check(D, CORE_REACHABLE);
    assert_true(core_find_path(&reach, address_of(D), &path));
    assert_int_equal(path.items.count, 1);
    assert_int_equal(path.items.items[0].register_number, 5);
    assert_ptr_equal(path.items.items[0].thread, core.threads.items);
    assert_string_equal(core_register_name(EM_X86_64, 5), "rbx");
    core_references_free(&path);
}

// A file whose second page has the data of now.
static void write_module(const char *path, const char *beginning) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(beginning, file) >= 0 && !fseek(file, (long)sizeof data, SEEK_SET));
    assert_int_equal(fwrite(data, sizeof data, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

// A number in a page that is as in its module's file refers to nothing; a page that was written to
// is a root, and so is one of a file that is no module, is another one or is not there.
static void test_unwritten(void **state) {
    (void)state;
    char path[] = "/tmp/cairn-reach-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0 && !close(descriptor));
    data[3] = address_of(A);
    write_module(path, ELFMAG);
    module.path = path;
    look(true);
    check(A, CORE_UNREFERENCED);
    core_reach_close(&reach);
    data[4]++;
    look(true);
    check(A, CORE_REACHABLE);
    core_reach_close(&reach);
    write_module(path, "data");
    look(true);
    check(A, CORE_REACHABLE);
    core_reach_close(&reach);
    assert_int_equal(unlink(path), 0);
    look(true);
    check(A, CORE_REACHABLE);
    module.path = NULL;
}

// What is found for all blocks at once is what is found for one, and nothing need be marked for it.
static void test_ways(void **state) {
    (void)state;
    struct core_ways ways;
    struct core_references one, path;
    data[3] = address_of(A);
    data[WORDS - 1] = address_of(C);
    words_of(A)[2] = address_of(E) + 5;
    words_of(E)[0] = address_of(B) + 2 * WORD;
    look(true);
    assert_true(core_ways_open(&reach, &ways, &error));
    core_ways_close(&ways);
    for (uint64_t place = 0; place < reach.map.place_count; place++)
        reach.map.words[place / PLACES_PER_WORD] &=
            ~((uint64_t)PLACE_MARKED << place % PLACES_PER_WORD * PLACE_BITS);
    reach.is_marked = false;
    assert_true(core_ways_open(&reach, &ways, &error));
    assert_true(reach.is_marked);
    for (int i = 0; i < BLOCKS; i++) {
        if (i == FREE) continue;
        check(i, i == D ? CORE_UNREFERENCED : CORE_REACHABLE);
        assert_true(core_find_path(&reach, address_of(i), &one));
        assert_true(core_ways_to(&ways, address_of(i), &path));
        assert_int_equal(path.items.count, i == A || i == C ? 1 : i == E ? 2 : i == B ? 3 : 0);
        assert_int_equal(path.items.count, one.items.count);
        for (size_t k = 0; k < path.items.count; k++)
            check_same(&path.items.items[k], &one.items.items[k]);
        core_references_free(&one);
        core_references_free(&path);
    }
    assert_true(core_ways_to(&ways, address_of(C), &path));
    assert_ptr_equal(path.items.items[0].thread, core.threads.items);
    core_references_free(&path);
    core_ways_close(&ways);
}

// A with two words to B, and itself; C with one; what is reachable does not count.
static void test_leaks(void **state) {
    (void)state;
    struct core_leaks leaks;
    struct core_references found, all;
    size_t count;
    words_of(A)[0] = address_of(B);
    words_of(A)[1] = address_of(A);
    words_of(A)[2] = address_of(B) + WORD;
    words_of(C)[1] = address_of(B);
    words_of(C)[2] = address_of(D);
    data[0] = address_of(D);
    look(true);
    assert_true(core_leaks_open(&reach, &leaks));
    assert_int_equal(leaks.pairs.count, 3);
    assert_true(core_leaks_to(&leaks, address_of(B), SIZE_MAX, &found, &count));
    assert_true(core_find_incoming(&reach, address_of(B), &all));
    assert_int_equal(count, 3);
    assert_int_equal(found.items.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(found.items.items[i].at, all.items.items[i].at);
        assert_int_equal(found.items.items[i].block, address_of(i < 2 ? A : C));
    }
    core_references_free(&all);
    core_references_free(&found);
    assert_true(core_leaks_to(&leaks, address_of(B), 2, &found, &count));
    assert_true(count == 3 && found.items.count == 2);
    core_references_free(&found);
    assert_true(core_leaks_to(&leaks, address_of(A), 2, &found, &count));
    assert_true(count == 0 && found.items.count == 0);
    core_leaks_close(&leaks);
}

// A block of 70 GiB between small ones: a few words of the map, and its last byte is as near as its
// first.
static void test_large(void **state) {
    (void)state;
    const uint64_t large = 70ull << 30, at = FAR + 8 * WORD, behind = at + large + WORD;
    const struct glibc_chunk chunks[] = {{HEAP + 2 * WORD, 3 * WORD, CHUNK_USED},
                                         {FAR + 2 * WORD, 3 * WORD, CHUNK_USED},
                                         {at, large - WORD, CHUNK_USED},
                                         {behind - WORD, 3 * WORD, CHUNK_USED},
                                         {behind + 3 * WORD, 3 * WORD, CHUNK_BINNED}};
    struct block_map map;
    uint64_t place, first;
    look(true);
    assert_true(block_map_build(&map, chunks, 5, true, &error));
    assert_true(map.place_count <= 4 * PLACES_PER_WORD);
    for (int i = 0; i < 4; i++) {
        uint64_t start = chunks[i].address, last = start + chunks[i].size - 1;
        assert_true(block_map_find(&map, start, &first));
        assert_int_equal(block_map_address(&map, first), start);
        assert_true(block_map_find(&map, last, &place));
        assert_int_equal(place, first);
        assert_false(block_map_find(&map, last + 1, &place));
        assert_in_range(block_map_end(&map, first), last + 1, last + 1 + WORD);
    }
    assert_true(block_map_find(&map, at + large / 2, &place));
    assert_int_equal(block_map_address(&map, place), at);
    assert_false(block_map_find(&map, behind + 3 * WORD, &place));
    block_map_free(&map);
}

static void test_spans(void **state) {
    (void)state;
    struct spans spans = {0};
    struct span gap;
    uint64_t at = 0;
    look(true);
    assert_true(spans_add(&spans, 50, 60) && spans_add(&spans, 10, 20));
    assert_true(spans_add(&spans, 15, 30) && spans_add(&spans, 40, 40));
    spans_settle(&spans);
    assert_int_equal(spans.items.count, 2);
    assert_true(spans_gap(&spans, &at, 55, &gap));
    assert_true(gap.start == 0 && gap.end == 10);
    assert_true(spans_gap(&spans, &at, 55, &gap));
    assert_true(gap.start == 30 && gap.end == 50);
    assert_false(spans_gap(&spans, &at, 55, &gap));
    spans_free(&spans);
}

// Notes that say they are longer than what is there.
static void test_notes(void **state) {
    (void)state;
    uint32_t notes[] = {4, 4, 7, 0x554e47, 42, 4, 100, 1, 0, 0};
    struct core_note note;
    size_t at = 0;
    look(true);
    assert_true(core_next_note((const uint8_t *)notes, sizeof notes, &at, &note));
    assert_true(note.type == 7 && note.size == 4 && *note.bytes == 42);
    assert_false(core_next_note((const uint8_t *)notes, sizeof notes, &at, &note));
    at = sizeof notes - 1;
    assert_false(core_next_note((const uint8_t *)notes, sizeof notes, &at, &note));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roots, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unwritten, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large, setup, teardown),
        cmocka_unit_test_setup_teardown(test_spans, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
