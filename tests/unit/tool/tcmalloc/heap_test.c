// SPDX-License-Identifier: Apache-2.0
// Tables of tcmalloc made by hand: a span of four blocks, of which one is in its list, one in a
// chain between threads and one in a thread's cache; a large block, and free pages; then what
// contradicts itself.
#include "tool/tcmalloc/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tool/damaged_heap.h"
#include "tool/tcmalloc/places.h"

enum {
    ROOT_WORDS = 1 << 17,
    LEAF_WORDS = 1 << 18,
    CLASSES = 40,
    CLASS = 3,
    BLOCK = 2048,
    BLOCKS = 4,
    STACK_WORDS = 32,
    LOCALS = 20  // the first of them
};
enum { SMALL, LARGE, KEPT, RETURNED, SPANS };
#define DATA UINT64_C(0x7f0000000000)
#define LEAF UINT64_C(0x7e0000000000)
#define TABLES UINT64_C(0x7d0000000000)
#define HEAP UINT64_C(0x7c0000000000)
#define STACK UINT64_C(0x7b0000000000)
#define PAGE TCMALLOC_PAGE_BYTES

static struct {
    struct {
        uint64_t before[7];
        struct tcmalloc_lists lists[TCMALLOC_CLASSES_MAX];
        struct {
            int32_t sizes[TCMALLOC_CLASSES_MAX];
            uint64_t pages[TCMALLOC_CLASSES_MAX];
            uint64_t count, later_count;
        } map;
        uint64_t root[ROOT_WORDS], caches;
    } data;
    uint64_t leaf[LEAF_WORDS];
    struct {
        struct tcmalloc_span spans[SPANS];
        struct tcmalloc_cache cache;
    } tables;
    uint64_t page[TCMALLOC_PAGE_BYTES / sizeof(uint64_t)];
    uint64_t stack[STACK_WORDS];
} * made;

static uint64_t registers[4];
static struct tcmalloc_thread thread;

static bool read_made(const void *context, uint64_t address, void *bytes, size_t size) {
    (void)context;
    const struct {
        uint64_t start, bytes;
        const void *from;
    } parts[] = {{DATA, sizeof made->data, &made->data},
                 {LEAF, sizeof made->leaf, made->leaf},
                 {TABLES, sizeof made->tables, &made->tables},
                 {HEAP, sizeof made->page, made->page},
                 {STACK, sizeof made->stack, made->stack}};
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
    return HEAP + (uint64_t)number * BLOCK;
}

static uint64_t span_at(unsigned number) {
    return TABLES + offsetof(typeof(made->tables), spans) + number * sizeof(struct tcmalloc_span);
}

// Pages of a span, behind those of the spans before.
static void make_span(unsigned number, uint64_t first, uint64_t length, unsigned flags) {
    const uint64_t page = (HEAP >> TCMALLOC_PAGE_SHIFT) + first;
    made->tables.spans[number] =
        (struct tcmalloc_span){.start = page, .length = length, .flags = (uint8_t)flags};
    made->leaf[page % LEAF_WORDS] = made->leaf[(page + length - 1) % LEAF_WORDS] = span_at(number);
}

static void make_lists(void) {
    for (unsigned i = 0; i < CLASSES; i++) {
        struct tcmalloc_lists *lists = &made->data.lists[i];
        const uint64_t at = DATA + offsetof(typeof(made->data), lists) + i * sizeof *lists;
        lists->size_class = i;
        lists->full.next = lists->full.previous = at + offsetof(struct tcmalloc_lists, full);
        lists->partial.next = lists->partial.previous =
            at + offsetof(struct tcmalloc_lists, partial);
        made->data.map.pages[i] = i ? 1 : 0;
        if (i)
            made->data.map.sizes[i - 1] =
                i < CLASS ? (int32_t)i * 8 : (int32_t)(i - CLASS + 1) * BLOCK;
        made->tables.cache.lists[i].size = i ? (uint32_t)made->data.map.sizes[i - 1] : 0;
    }
    for (unsigned i = CLASS + 3; i < CLASSES; i++) made->data.map.pages[i] = 32;
    made->data.map.sizes[CLASSES - 2] = 256 << 10;
    made->tables.cache.lists[CLASSES - 1].size = 256 << 10;
    made->data.map.count = CLASSES;
}

static int setup(void **state) {
    (void)state;
    made = calloc(1, sizeof *made);
    memset(registers, 0, sizeof registers);
    thread = (struct tcmalloc_thread){registers, sizeof registers / sizeof *registers, 0};
    make_lists();
    make_span(SMALL, 0, 1, TCMALLOC_IN_USE);
    make_span(LARGE, 1, 100, TCMALLOC_IN_USE);
    make_span(KEPT, 101, 7, TCMALLOC_KEPT);
    make_span(RETURNED, 108, 9, TCMALLOC_RETURNED);
    made->data.root[HEAP >> 31] = LEAF;
    struct tcmalloc_span *small = &made->tables.spans[SMALL];
    small->size_class = CLASS;
    small->objects = block(0);
    small->used = BLOCKS - 1;
    made->data.lists[CLASS].partial.next = span_at(SMALL);
    made->data.lists[CLASS].span_count = 1;
    made->data.lists[CLASS].used_slots = 1;
    made->data.lists[CLASS].slots[0].head = made->data.lists[CLASS].slots[0].tail = block(1);
    made->tables.cache.lists[CLASS].head = block(2);
    made->tables.cache.lists[CLASS].count = 1;
    made->data.caches = TABLES + offsetof(typeof(made->tables), cache);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(made);
    return 0;
}

static enum tcmalloc_finding read_all(struct glibc_heap *heap) {
    const struct memory_view view = {.reader = {.read = read_made}};
    struct spans data = {0};
    *heap = (struct glibc_heap){0};
    assert_true(spans_add(&data, DATA, DATA + sizeof made->data));
    spans_settle(&data);
    const struct tcmalloc_source source = {&view, &data, &thread, 1};
    enum tcmalloc_finding finding = tcmalloc_heap_add(&source, heap);
    spans_free(&data);
    return finding;
}

static void test_blocks_are_told_apart(void **state) {
    (void)state;
    static const enum chunk_kind kinds[] = {CHUNK_BINNED, CHUNK_CACHED, CHUNK_CACHED, CHUNK_USED};
    struct glibc_heap heap;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.broken_count, 0);
    assert_int_equal(heap.chunks.count, BLOCKS + 1);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(heap.chunks.items[i].address == block(i));
        assert_int_equal(heap.chunks.items[i].size, BLOCK);
        assert_int_equal(heap.chunks.items[i].kind, kinds[i]);
    }
    assert_true(heap.chunks.items[BLOCKS].address == HEAP + PAGE);
    assert_int_equal(heap.chunks.items[BLOCKS].size, 100 * PAGE);
    assert_int_equal(heap.other.unknown_caches, 0);
    assert_int_equal(heap.other.page_bytes, 101 * PAGE);
    assert_int_equal(heap.other.dirty_bytes, 7 * PAGE);
    assert_int_equal(heap.other.retained_bytes, 9 * PAGE);
    assert_true(spans_have(&heap.other.asked, HEAP + 101 * PAGE));
    assert_false(spans_have(&heap.other.asked, HEAP + 108 * PAGE));
    assert_int_equal(heap.other.classes.count, 2);
    assert_int_equal(heap.other.classes.items[0].cached, 2);
    glibc_heap_free(&heap);
}

static void test_a_cache_that_is_not_found_is_said(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->data.caches = 0;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.other.unknown_caches, 1);
    glibc_heap_free(&heap);
}

static void test_lists_that_lead_elsewhere_are_told(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->tables.cache.lists[CLASS].count = 2;  // it has one
    made->data.lists[CLASS].slots[0].head = block(1) + 8;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.broken_count, 2);
    glibc_heap_free(&heap);
}

// Makes the last two blocks a chain that a thread has taken off its list, which is empty then, and
// not yet put elsewhere; the thread's registers have its ends and what it works on.
static void make_moved_chain(void) {
    made->tables.cache.lists[CLASS].head = made->tables.cache.lists[CLASS].count = 0;
    made->tables.cache.others[0] = 2 * BLOCK;
    made->page[block(2) % PAGE / sizeof(uint64_t)] = block(3);
    registers[0] = block(2);
    registers[1] = block(3);
    registers[2] = DATA + offsetof(typeof(made->data), lists) + CLASS * sizeof *made->data.lists;
    registers[3] = made->data.caches;
}

static void check_kinds(const enum chunk_kind kinds[BLOCKS]) {
    struct glibc_heap heap;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    for (unsigned i = 0; i < BLOCKS; i++) assert_int_equal(heap.chunks.items[i].kind, kinds[i]);
    glibc_heap_free(&heap);
}

static void test_a_chain_that_a_thread_may_give_back_is_neither(void **state) {
    (void)state;
    make_moved_chain();
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_CACHED, CHUNK_MOVING, CHUNK_MOVING});
    made->tables.cache.others[0]--;  // and no size of a class is missing: nor is its list known
    made->tables.cache.lists[CLASS].head = block(1);
    made->tables.cache.lists[CLASS].count = 1;
    made->data.lists[CLASS].used_slots = 0;
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_CACHED, CHUNK_USED, CHUNK_USED});
}

// Nothing is missing, and the list is empty: they come, or they came at the call before, when the
// same locals had them, and the program has them by now; the thread waits for the lock.
static void test_a_chain_that_a_waiting_thread_has_in_its_locals_is_not_free(void **state) {
    (void)state;
    struct glibc_heap heap;
    make_moved_chain();
    made->tables.cache.others[0] = 0;
    made->data.lists[CLASS].used_slots = 0;
    made->data.lists[CLASS].lock = 2;
    made->stack[LOCALS] = registers[0];
    made->stack[LOCALS + 1] = registers[1];
    registers[0] = registers[1] = 0;
    thread.stack = STACK + (LOCALS - 2) * sizeof *made->stack;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    for (unsigned i = 2; i < BLOCKS; i++) {
        assert_int_equal(heap.chunks.items[i].kind, CHUNK_MOVING);
        assert_false(chunk_is_free(&heap.chunks.items[i]));
        assert_false(chunk_is_used(&heap.chunks.items[i]));
    }
    assert_int_equal(heap.other.moving_blocks, 2);
    assert_int_equal(heap.other.busy_threads, 1);
    assert_int_equal(heap.other.classes.items[0].moving, 2);
    assert_int_equal(heap.other.classes.items[0].used, 1);
    assert_int_equal(heap.other.emptied.items.count, 0);
    glibc_heap_free(&heap);
}

// A list of the program's own may look so, but for what the thread has at hand.
static void test_a_list_of_the_program_is_not_free(void **state) {
    (void)state;
    const enum chunk_kind kinds[] = {CHUNK_BINNED, CHUNK_CACHED, CHUNK_USED, CHUNK_USED};
    for (unsigned i = 0; i < sizeof registers / sizeof *registers; i++) {
        make_moved_chain();
        registers[i] = 0;
        check_kinds(kinds);
    }
}

static void test_one_of_two_chains_is_not_guessed(void **state) {
    (void)state;
    make_moved_chain();
    made->tables.spans[SMALL].objects = 0;
    made->tables.spans[SMALL].used = BLOCKS;
    made->data.lists[CLASS].used_slots = 0;
    made->data.lists[CLASS].slots[0].tail = 0;  // it was emptied long ago
    made->page[block(0) % PAGE / sizeof(uint64_t)] = block(1);
    made->page[block(1) % PAGE / sizeof(uint64_t)] = 0;
    uint64_t both[] = {block(0), block(1), block(2), block(3), registers[2], registers[3]};
    thread = (struct tcmalloc_thread){both, sizeof both / sizeof *both, 0};
    check_kinds((enum chunk_kind[]){CHUNK_MOVING, CHUNK_MOVING, CHUNK_MOVING, CHUNK_MOVING});
}

// The list has a block less than it counts, and the thread has the one that it took.
static void test_a_list_that_a_block_was_just_taken_of_is_free(void **state) {
    (void)state;
    made->tables.cache.lists[CLASS].count = 2;
    made->page[block(3) % PAGE / sizeof(uint64_t)] = block(2);
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_CACHED, CHUNK_USED, CHUNK_USED});
    registers[3] = made->data.caches;
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_CACHED, CHUNK_MOVING, CHUNK_USED});
    registers[0] = block(3);
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_CACHED, CHUNK_CACHED, CHUNK_USED});
    made->tables.cache.lists[CLASS].count = 3;
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_CACHED, CHUNK_MOVING, CHUNK_USED});
}

// The thread has put its block in front of the list, which leads by accident to as many as it
// counts, and is about to have it lead to the list as it was.
static void test_a_list_whose_first_block_leads_where_it_did_is_neither(void **state) {
    (void)state;
    made->tables.spans[SMALL].objects = 0;
    made->tables.spans[SMALL].used = BLOCKS;
    made->data.lists[CLASS].used_slots = 0;
    made->page[block(0) % PAGE / sizeof(uint64_t)] = block(1);
    made->page[block(2) % PAGE / sizeof(uint64_t)] = block(3);
    made->tables.cache.lists[CLASS].head = registers[0] = block(2);
    made->tables.cache.lists[CLASS].count = 2;
    registers[1] = block(0);
    registers[2] = made->data.caches;
    check_kinds((enum chunk_kind[]){CHUNK_MOVING, CHUNK_MOVING, CHUNK_MOVING, CHUNK_MOVING});
    registers[1] = block(3);  // that is where it leads: it is settled
    check_kinds((enum chunk_kind[]){CHUNK_USED, CHUNK_USED, CHUNK_CACHED, CHUNK_CACHED});
}

// It was just made, and its blocks are being put into its list, or it is given back.
static void test_a_span_without_a_block_outside_is_free(void **state) {
    (void)state;
    made->tables.spans[SMALL].used = 0;
    made->data.lists[CLASS].used_slots = 0;
    made->tables.cache.lists[CLASS].head = made->tables.cache.lists[CLASS].count = 0;
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_BINNED, CHUNK_BINNED, CHUNK_BINNED});
}

// The lock's holder counts a chain first and writes it then: what was there before may be in use.
static void test_a_chain_that_is_being_put_is_not_believed(void **state) {
    (void)state;
    made->data.lists[CLASS].lock = 1;
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_MOVING, CHUNK_CACHED, CHUNK_USED});
    make_moved_chain();
    check_kinds((enum chunk_kind[]){CHUNK_BINNED, CHUNK_MOVING, CHUNK_MOVING, CHUNK_MOVING});
}

// The list is shorter than the count says: the rest is on its way, and the span is read.
static void test_a_span_of_which_blocks_are_taken_is_read(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->tables.spans[SMALL].used--;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.chunks.count, BLOCKS + 1);
    assert_int_equal(heap.broken_count, 1);
    glibc_heap_free(&heap);
}

// They have a word between sizes and their count, and link caches two words earlier.
static void test_later_releases_are_read(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->data.map.later_count = made->data.map.count;
    made->data.map.count = 1;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.chunks.count, BLOCKS + 1);
    glibc_heap_free(&heap);
    made->data.map.later_count = 0;
    assert_int_equal(read_all(&heap), TCMALLOC_NONE);
    glibc_heap_free(&heap);
}

// A thread that puts a block into its list has its address there before the block leads to the next
// one: it still leads where it did when it was free, to a block in use.
static void test_what_a_block_led_to_before_is_not_free(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->page[block(2) % PAGE / sizeof(uint64_t)] = block(3);
    for (unsigned count = 0; count <= 1; count++) {
        made->tables.cache.lists[CLASS].count = count;
        assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
        assert_int_equal(heap.chunks.items[3].kind, CHUNK_USED);
        assert_int_equal(heap.broken_count, 1);
        glibc_heap_free(&heap);
    }
}

static void test_loops_end(void **state) {
    (void)state;
    struct glibc_heap heap;
    made->page[block(2) % PAGE / sizeof(uint64_t)] = block(2);
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.broken_count, 1);
    glibc_heap_free(&heap);
    made->page[0] = block(0);
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    assert_int_equal(heap.chunks.count, BLOCKS + 1);
    assert_int_equal(heap.chunks.items[0].kind, CHUNK_USED);  // nothing is known to be free
    assert_true(heap.broken_count > 0);
    glibc_heap_free(&heap);
    made->tables.cache.others[4] = made->data.caches;
    assert_int_equal(read_all(&heap), TCMALLOC_FOUND);
    glibc_heap_free(&heap);
}

static void check_none(void) {
    struct glibc_heap heap;
    assert_int_equal(read_all(&heap), TCMALLOC_NONE);
    assert_int_equal(heap.chunks.count, 0);
    assert_null(heap.other.name);
}

static void test_other_options_are_refused(void **state) {
    (void)state;
    made->data.map.sizes[CLASSES - 2]--;  // another largest size
    check_none();
    made->data.map.sizes[CLASSES - 2]++;
    made->data.map.pages[CLASS] = 2;  // pages of another size
    check_none();
    made->data.map.pages[CLASS] = 1;
    made->data.lists[CLASSES / 2].size_class++;
    check_none();
    made->data.lists[CLASSES / 2].size_class--;
    made->data.root[HEAP >> 31] = LEAF + 8;
    check_none();
}

static void test_the_variant_for_debugging_is_refused(void **state) {
    (void)state;
    made->page[(block(3) % PAGE + 16) / sizeof(uint64_t)] = 0xdeadbeef;
    make_span(LARGE, 1, 100, TCMALLOC_KEPT);
    check_none();
}

static void damage(uint64_t *chance) {
    const struct {
        void *start;
        size_t bytes;
    } parts[] = {{made->data.lists, sizeof made->data.lists},
                 {&made->data.map, sizeof made->data.map},
                 {&made->data.root[HEAP >> 31], sizeof(uint64_t)},
                 {&made->leaf[(HEAP >> TCMALLOC_PAGE_SHIFT) % LEAF_WORDS], 128 * sizeof(uint64_t)},
                 {&made->tables, sizeof made->tables},
                 {made->page, sizeof made->page}};
    const size_t which = random_below(chance, sizeof parts / sizeof *parts);
    uint64_t *word =
        (uint64_t *)parts[which].start + random_below(chance, parts[which].bytes / sizeof *word);
    const uint64_t places[] = {block(random_below(chance, BLOCKS)),
                               span_at(random_below(chance, SPANS))};
    *word = damaged_word(*word, chance, places, sizeof places / sizeof *places);
}

static void read_damaged(struct glibc_heap *heap) {
    read_all(heap);
}

static void test_damage_ends(void **state) {
    damaged_heap_ends(state,
                      &(struct damaged_heap){setup, teardown, damage, read_damaged, .rounds = 200});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_ends),
        TEST(test_blocks_are_told_apart),
        TEST(test_a_cache_that_is_not_found_is_said),
        TEST(test_lists_that_lead_elsewhere_are_told),
        TEST(test_a_chain_that_a_thread_may_give_back_is_neither),
        TEST(test_a_chain_that_a_waiting_thread_has_in_its_locals_is_not_free),
        TEST(test_a_list_of_the_program_is_not_free),
        TEST(test_one_of_two_chains_is_not_guessed),
        TEST(test_a_list_that_a_block_was_just_taken_of_is_free),
        TEST(test_a_list_whose_first_block_leads_where_it_did_is_neither),
        TEST(test_a_span_without_a_block_outside_is_free),
        TEST(test_a_chain_that_is_being_put_is_not_believed),
        TEST(test_a_span_of_which_blocks_are_taken_is_read),
        TEST(test_later_releases_are_read),
        TEST(test_what_a_block_led_to_before_is_not_free),
        TEST(test_loops_end),
        TEST(test_other_options_are_refused),
        TEST(test_the_variant_for_debugging_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
