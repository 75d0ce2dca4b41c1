// SPDX-License-Identifier: Apache-2.0
// Hostile memory: whatever a Go program's tables and stacks say, nothing is read that is not there,
// and a stack ends. (That its frames are the true ones, tests/e2e/go_frames.py shows.)
#include "runtime/go/go.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/go/table.h"
#include "tests/unit/runtime/random.h"

enum { WORDS = 4096, ROUNDS = 3000, FUNCTIONS = 8, FUNCTION_BYTES = 64 };
static uint64_t seed = 1;
static struct memory_reader memory;

// A module in memory: the table's head, its parts, and the module's record, by words. Nothing can
// be read behind it.
enum { AT_NAMES = 16, AT_VALUES = 64, AT_FUNCTIONS = 96, AT_MODULE = 512, AT_TEXT = 1024 };
static uint64_t *words;

static void make_words(void) {
    const size_t bytes = WORDS * sizeof *words;
    char *place = sys_map(2 * bytes);
    assert_non_null(place);
    assert_int_equal(mprotect(place + bytes, bytes, PROT_NONE), 0);
    words = (uint64_t *)place;
}

static void make_table(void) {
    const uint64_t word = sizeof word, form = 0x08010000fffffff1u;
    uint64_t at = (uintptr_t)words, *module = words + AT_MODULE;
    memset(words, 0, WORDS * word);
    words[0] = form;
    words[1] = FUNCTIONS;
    words[4] = AT_NAMES * word;
    words[7] = AT_VALUES * word;
    words[8] = AT_FUNCTIONS * word;
    memcpy(words + AT_NAMES, "main.one\0runtime.goexit", sizeof "main.one\0runtime.goexit");
    // value 16 (from -1 by 17) for all of a function
    memcpy((char *)(words + AT_VALUES) + 1, "\x22\x40", 3);
    uint32_t *pairs = (uint32_t *)(words + AT_FUNCTIONS);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t record = (2 * FUNCTIONS + 2 + i * 12) * 4;
        pairs[2 * i] = i * FUNCTION_BYTES;
        pairs[2 * i + 1] = record;
        pairs[record / 4] = i * FUNCTION_BYTES;
        pairs[record / 4 + 1] = i == FUNCTIONS - 1 ? sizeof "main.one" : 0;
        pairs[record / 4 + 4] = 1;
    }
    pairs[2 * FUNCTIONS] = FUNCTIONS * FUNCTION_BYTES;
    module[0] = at;
    module[1] = at + words[4];
    module[10] = at + words[7];
    module[16] = at + words[8];
    module[20] = module[22] = at + AT_TEXT * word;
    module[21] = module[23] = module[20] + FUNCTIONS * FUNCTION_BYTES;
}

static struct object object_of_words(Elf64_Phdr *segment) {
    *segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = WORDS * sizeof *words};
    return (struct object){.start = (uintptr_t)words,
                           .end = (uintptr_t)(words + WORDS),
                           .bias = (uintptr_t)words,
                           .segments = segment,
                           .segment_count = 1};
}

static void test_table(void **state) {
    (void)state;
    Elf64_Phdr segment;
    struct go_table table;
    struct go_function function;
    uint32_t minor;
    make_table();
    struct object object = object_of_words(&segment);
    assert_int_equal(go_table_find(&memory, &object, &table, &minor), GO_TABLE_READ);
    assert_int_equal(minor, 0);
    assert_int_equal(table.function_count, FUNCTIONS);
    assert_true(go_table_look_up(&memory, &table, table.text + FUNCTION_BYTES + 3, &function));
    assert_int_equal(function.start, table.text + FUNCTION_BYTES);
    assert_int_equal(function.frame_bytes, 16);
    assert_string_equal(function.name, "main.one");
    assert_true(go_table_look_up(&memory, &table, table.text_end - 1, &function));
    assert_string_equal(function.name, "runtime.goexit");
    assert_false(go_table_look_up(&memory, &table, table.text - 1, &function));
    assert_false(go_table_look_up(&memory, &table, table.text_end, &function));
    words[0] = 0;
    assert_int_equal(go_table_find(&memory, &object, &table, &minor), GO_TABLE_ABSENT);
    words[0] = 0x08010000fffffffau;  // Go 1.16
    assert_int_equal(go_table_find(&memory, &object, &table, &minor), GO_TABLE_UNKNOWN);
    memcpy(words + 2048, "\xff Go buildinf:\x08\x02", 16);
    memcpy(words + 2052, "\x08go1.16.3", 9);
    assert_int_equal(go_table_find(&memory, &object, &table, &minor), GO_TABLE_UNKNOWN);
    assert_int_equal(minor, 16);
}

static void test_hostile_table(void **state) {
    (void)state;
    Elf64_Phdr segment;
    struct go_table table = {0};
    struct go_function function;
    uint32_t minor;
    make_table();
    struct object object = object_of_words(&segment);
    assert_int_equal(go_table_find(&memory, &object, &table, &minor), GO_TABLE_READ);
    for (int round = 0; round < ROUNDS; round++) {
        make_table();
        for (int i = 0; i < 20; i++) words[random_below(&seed, AT_TEXT)] = random_next(&seed);
        for (int i = 0; i < 20; i++)
            ((uint32_t *)words)[random_below(&seed, 2 * AT_TEXT)] =
                (uint32_t)random_below(&seed, WORDS * sizeof *words);
        uint64_t pc = table.text + random_below(&seed, FUNCTIONS * FUNCTION_BYTES);
        if (go_table_look_up(&memory, &table, pc, &function)) assert_true(function.start <= pc);
        struct go_table other;
        go_table_find(&memory, &object, &other, &minor);
    }
}

static struct managed_native walk(void *context, uintptr_t pc, uintptr_t stack,
                                  uintptr_t *frame_slot) {
    static struct frame outside[2];
    const struct go_table *table = context;
    (void)frame_slot;
    outside[0] = (struct frame){.stack = stack + 2 * sizeof stack,
                                .pc = table->text + 1 + random_below(&seed, FUNCTION_BYTES)};
    outside[1] = (struct frame){.stack = stack, .pc = pc};
    return (struct managed_native){outside, 2};
}

static void test_hostile_stack(void **state) {
    (void)state;
    enum { LIMIT = 64 };
    Elf64_Phdr segment;
    struct go_table table;
    uint32_t minor, deepest = 0;
    const struct managed_walker walker = {walk, &table};
    make_table();
    struct object object = object_of_words(&segment);
    assert_int_equal(go_table_find(&memory, &object, &table, &minor), GO_TABLE_READ);
    go_use(&table);
    struct go_thread *thread = go_thread_make(LIMIT);
    assert_non_null(thread);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t *stack = words + 2048;
        for (size_t i = 0; i < WORDS - 2048; i++)
            stack[i] = random_chance(&seed, 70)
                           ? table.text + 1 + random_below(&seed, FUNCTIONS * FUNCTION_BYTES)
                           : random_next(&seed);
        struct frame native[2] = {{.pc = 1},
                                  {.stack = (uintptr_t)(stack + random_below(&seed, WORDS - 2048)),
                                   .pc = table.text + 5}};
        struct managed_stack found =
            go_weave(thread, (struct managed_native){native, 2}, random_chance(&seed, 20), &walker);
        assert_in_range(found.count, 1, LIMIT);
        assert_true(found.keep <= found.count);
        if (found.count > deepest) deepest = found.count;
    }
    assert_true(deepest > 3);
}

int main(void) {
    make_words();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_hostile_table),
        cmocka_unit_test(test_hostile_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
