// SPDX-License-Identifier: Apache-2.0
// Hostile memory: whatever the words of V8 say, nothing is read that is not there, and a stack
// ends. (That its frames are the true ones, tests/e2e/js_frames.py shows.) And tables: positions,
// translations.
#include "runtime/js/js.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "format/format.h"
#include "runtime/js/bytecodes.h"
#include "runtime/js/engine.h"
#include "runtime/js/positions.h"
#include "runtime/js/translation.h"
#include "runtime/managed/codes.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/region.h"
#include "tests/unit/runtime/codes_place.h"
#include "tests/unit/runtime/random.h"

enum { LIMIT = 64, ROUNDS = 20, ARENA_WORDS = 4096, CODES_BYTES = 8 << 20, VERSION = 11 << 8 | 3 };
enum { TRUSTED_VERSION = 13 << 8 | 6 };
static uint64_t seed = 1;
static uint64_t *arena;

// Types that an object may claim to have.
enum { TYPE_COUNT = 9, MAPS = 16 };

// A word that leads to an object in the arena, near its end, to a map, nowhere, or is a number.
static uint64_t some_word(void) {
    const uint64_t kinds = 10, small = 300, word = sizeof(uint64_t);
    uint64_t inside = (uintptr_t)(arena + MAPS) + random_next(&seed) % (ARENA_WORDS - MAPS) * word;
    switch (random_next(&seed) % kinds) {
    case 0:
        return random_next(&seed);
    case 1:
        return (random_next(&seed) % small) << 32;
    case 2:
        return (uintptr_t)(arena + ARENA_WORDS) - random_next(&seed) % small;
    case 3:
        return random_next(&seed) % small;
    case 9:
        return random_next(&seed) << 32;
    case 4:
    case 5:
        return (uintptr_t)(arena + random_next(&seed) % TYPE_COUNT) + ENGINE_OBJECT_TAG;
    default:
        return inside + ENGINE_OBJECT_TAG;
    }
}

// As V8 11.3 has it, but for what another version has elsewhere without a constant that says so.
static void make_layout(uint16_t version) {
    const int32_t word = sizeof(uint64_t),
                  types[TYPE_COUNT] = {262, 261, 167, 191, 190, 175, 159, 245, 252};
    engine = (struct engine_layout){
        .smi_shift = 31,
        .frame_context = -word,
        .frame_function = -2 * word,
        .frame_bytecodes = -4 * word,
        .frame_offset = -5 * word,
        .map_type = 0,
        .function_shared = 3 * word,
        .shared_name = 2 * word,
        .shared_script = 4 * word,
        .script_source = word,
        .script_name = 2 * word,
        .script_line_ends = 7 * word,
        .bytecodes_data = 54,
        .array_length = word,
        .array_data = 2 * word,
        .string_length = 12,
        .string_one_byte = 2 * word,
        .string_two_byte = 2 * word,
        .string_first = 2 * word,
        .string_second = 3 * word,
        .string_parent = 2 * word,
        .string_offset = 3 * word,
        .string_actual = 2 * word,
        .string_resource = 2 * word,
        .first_non_string = 128,
        .string_form_mask = 7,
        .string_width_mask = 8,
        .one_byte = 8,
        .form_cons = 1,
        .form_external = 2,
        .form_sliced = 3,
        .form_thin = 5,
        .type_shared = types[0],
        .type_scope = types[1],
        .type_script = types[2],
        .type_bytecodes = types[3],
        .type_bytes = types[4],
        .type_array = types[5],
        .type_interpreter_data = types[6],
        .type_code = types[7],
        .type_stream = types[8],
        .stream_start = 2 * word,
        .kind_mask = 15,
        .kind_interpreted = 10,
        .kind_baseline = 11,
        .version = version,
        .bytecode_sizes = (uintptr_t)(arena + ARENA_WORDS / 2),
    };
    for (int i = 0; i < TYPE_COUNT; i++) arena[i] = (uint64_t)types[i];
    for (int i = TYPE_COUNT; i < MAPS; i++) arena[i] = random_next(&seed) % 128;
}

// Frames, outermost first, whose frame pointers lie in the arena.
static struct managed_native make_frames(struct frame frames[LIMIT]) {
    uint32_t count = 2 + (uint32_t)random_below(&seed, LIMIT - 2);
    uint64_t at = (uintptr_t)(arena + ARENA_WORDS) - random_below(&seed, 8) * sizeof at;
    for (uint32_t i = 0; i < count; i++) {
        bool is_guessed = random_chance(&seed, 70);
        uint64_t pc = (uintptr_t)(arena + random_below(&seed, ARENA_WORDS));
        frames[i] = (struct frame){.stack = at, .pc = pc};
        if (is_guessed) frames[i].rule = FRAME_RULE_GUESSED;
        at -= (2 + random_below(&seed, 40)) * sizeof at;
    }
    if (random_chance(&seed, 50)) frames[0] = (struct frame){.pc = CAIRN_CUT_GUESSED};
    return (struct managed_native){frames, count};
}

// Half of the frames lead to a function that is one, so that what follows is reached.
static void make_function(struct managed_native native) {
    const uint64_t function = 24, shared = 32;
    arena[function + 3] = (uintptr_t)(arena + shared) + ENGINE_OBJECT_TAG;
    arena[shared] = (uintptr_t)arena + ENGINE_OBJECT_TAG;
    for (uint32_t i = 1; i < native.count; i++) {
        uint64_t *outer = (uint64_t *)native.frames[i - 1].stack;
        if (outer < arena + 64 || outer > arena + ARENA_WORDS || random_chance(&seed, 50)) continue;
        outer[-3] = (uintptr_t)(arena + shared) + ENGINE_OBJECT_TAG;
        outer[-4] = (uintptr_t)(arena + function) + ENGINE_OBJECT_TAG;
    }
}

// Behind the words nothing can be read: what else the process has there is not V8's.
static uint64_t *make_arena(void) {
    const size_t bytes = ARENA_WORDS * sizeof *arena;
    char *place = sys_map(2 * bytes);
    assert_non_null(place);
    assert_int_equal(mprotect(place + bytes, bytes, PROT_NONE), 0);
    return (uint64_t *)place;
}

// What is read directly says the same as what is read by system calls alone.
static void check_twin(struct js_thread *thread, struct managed_native native) {
    struct managed_stack direct = js_weave(thread, native, false);
    struct managed_stack careful = js_weave(thread, native, true);
    assert_int_equal(direct.count, careful.count);
    for (uint32_t i = 0; i < direct.count; i++)
        assert_int_equal(direct.frames[i].pc, careful.frames[i].pc);
}

static void test_hostile_memory(void **state) {
    (void)state;
    struct frame frames[LIMIT];
    uint32_t named = 0;
    arena = make_arena();
    codes_make_place(CODES_BYTES);
    struct js_thread *thread = js_thread_make(LIMIT);
    assert_non_null(thread);
    js.can_be_read = true;
    for (size_t round = 0; round < ROUNDS; round++) {
        make_layout(round % 2 ? VERSION : TRUSTED_VERSION);
        for (size_t i = MAPS; i < ARENA_WORDS; i += round % 4 ? 1 + random_below(&seed, 16) : 1)
            arena[i] = some_word();
        struct managed_native native = make_frames(frames);
        make_function(native);
        for (int again = 0; again < 3; again++) {
            struct managed_stack stack = js_weave(thread, native, round % 5 == 0);
            assert_true(stack.count <= LIMIT && stack.keep <= stack.count);
            for (uint32_t i = 0; i < stack.count; i++)
                named += (stack.frames[i].pc & FRAME_PYTHON) != 0;
        }
        check_twin(thread, native);
    }
    assert_true(named > ROUNDS / 10);  // it comes so far
}

static void test_positions(void **state) {
    (void)state;
    // bytecode 0: position 10; bytecode 5, no statement: position 30; bytecode 300: position 7
    const uint8_t table[] = {2, (11 << 1) << 1, 11, (20 << 1) << 1, 0xce, 0x04, 0x5b};
    assert_int_equal(positions_find(table, 4, 0), 10);
    assert_int_equal(positions_find(table, 4, 4), 10);
    assert_int_equal(positions_find(table, 4, 5), 30);
    assert_int_equal(positions_find(table, 4, 1000), 30);
    assert_int_equal(positions_find(table, 0, 5), 0);
    assert_int_equal(positions_find(table, sizeof table, 5), 30);
}

static void test_translations(void **state) {
    (void)state;
    struct translation_frame frames[TRANSLATION_FRAMES];
    // begin (own operations, 2 frames of functions); frame: bytecode 5 of literal 0, 1 value;
    // a literal; frame: bytecode 7 of literal 1
    // begin, the earlier one 14 back: 2 operations of that; frame: bytecode 9 of literal 1
    const uint8_t table[] = {2, 0, 4, 4,  24, 10, 0,      1,  29, 6, 24, 14,
                             2, 0, 2, 14, 4,  4,  36 + 2, 24, 18, 2, 0};
    assert_int_equal(translation_read(VERSION, table, sizeof table, 0, frames), 2);
    assert_int_equal(frames[0].offset, 5);
    assert_int_equal(frames[0].literal, 0);
    assert_int_equal(frames[1].offset, 7);
    assert_int_equal(frames[1].literal, 1);
    assert_int_equal(translation_read(VERSION, table, sizeof table, 14, frames), 2);
    assert_int_equal(frames[0].offset, 5);
    assert_int_equal(frames[1].offset, 9);
    assert_int_equal(frames[1].literal, 1);
    assert_int_equal(translation_read(VERSION, table, sizeof table, 4, frames), 0);
    assert_int_equal(translation_read(VERSION, table, sizeof table, 100, frames), 0);
    assert_int_equal(translation_read(1, table, sizeof table, 0, frames), 0);
    for (size_t size = 0; size < 11; size++)
        assert_true(translation_read(VERSION, table, size, 0, frames) < 2);
}

// Of V8 10.2, where operations have signs too and end a number earlier.
static void test_signed_translation(void **state) {
    (void)state;
    const uint16_t version = 10 << 8 | 2;
    struct translation_frame frames[TRANSLATION_FRAMES];
    // begin, 2 frames; frame of none; frame: bytecode 5 of literal 2
    const uint8_t table[] = {3 << 1, 4, 2, 0, 0, 4, 6, 18 << 1, 10, 4, 0, 0, 0};
    assert_int_equal(translation_read(version, table, sizeof table, 0, frames), 1);
    assert_int_equal(frames[0].offset, 5);
    assert_int_equal(frames[0].literal, 2);
    assert_int_equal(translation_read(version, table, sizeof table, 4, frames), 0);
}

// Of V8 13.6: of a frame of V8's own the function is the first value, if that is a literal.
static void test_closure(void **state) {
    (void)state;
    struct translation_frame frames[TRANSLATION_FRAMES];
    // begin, 3 frames; frame: bytecode 5 of literal 0, a literal; V8's own of literal 0, whose
    // function is literal 3; another one of literal 1, whose function is in a register
    const uint8_t table[] = {14, 0, 6, 4,  1, 10, 0, 0, 0, 38, 8, 2,
                             0,  0, 0, 38, 6, 2,  0, 2, 0, 39, 8};
    assert_int_equal(translation_read(TRUSTED_VERSION, table, sizeof table, 0, frames), 3);
    assert_int_equal(frames[0].offset, 5);
    assert_int_equal(frames[0].literal, 0);
    assert_int_equal(frames[1].offset, TRANSLATION_BUILTIN);
    assert_int_equal(frames[1].literal, 3);
    assert_int_equal(frames[2].offset, TRANSLATION_BUILTIN);
    assert_int_equal(frames[2].literal, 1);
}

// By V8's own table where it is exported, or by ours.
static void test_bytecodes(void **state) {
    (void)state;
    const uint32_t count = 208, older_count = 198, call = 109;
    uint8_t sizes[BYTECODES_SIZES], there[BYTECODES_SIZES];
    assert_int_equal(bytecodes_read_sizes(TRUSTED_VERSION, 0, sizes), count);
    assert_int_equal(sizes[0], 1);
    assert_int_equal(sizes[call], 6);
    assert_int_equal(sizes[count + call], 9);
    assert_int_equal(sizes[2 * count + call], 15);
    memset(there, 7, sizeof there);
    assert_int_equal(bytecodes_read_sizes(VERSION, (uintptr_t)there, sizes), older_count);
    assert_int_equal(sizes[3 * older_count - 1], 7);
    assert_int_equal(bytecodes_read_sizes(VERSION, 0, sizes), 0);
    assert_int_equal(bytecodes_read_sizes(VERSION, sizeof there, sizes), 0);
    assert_int_equal(bytecodes_read_sizes(1, 0, sizes), 0);
}

static void test_random_tables(void **state) {
    (void)state;
    struct translation_frame frames[TRANSLATION_FRAMES];
    uint8_t table[128];
    for (size_t round = 0; round < 200 * ROUNDS; round++) {
        for (size_t i = 0; i < sizeof table; i++) table[i] = (uint8_t)(random_next(&seed) % 48);
        table[0] = 2;
        table[1] = 0;
        uint32_t count = translation_read(VERSION, table, sizeof table, 0, frames);
        assert_true(count <= TRANSLATION_FRAMES);
        table[0] = 14;
        count = translation_read(TRUSTED_VERSION, table, sizeof table, 0, frames);
        assert_true(count <= TRANSLATION_FRAMES);
        positions_find(table, sizeof table, (int32_t)random_below(&seed, 1000));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_memory), cmocka_unit_test(test_positions),
        cmocka_unit_test(test_translations),   cmocka_unit_test(test_signed_translation),
        cmocka_unit_test(test_random_tables),  cmocka_unit_test(test_closure),
        cmocka_unit_test(test_bytecodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
