// SPDX-License-Identifier: Apache-2.0
// A chain of calls as PHP 8.2 has it, with generators that wait for one another and a call that is
// made without a frame; hostile memory: whatever the words of PHP say, nothing is read that is not
// there, and a stack ends; and where a part of code ends. (That frames are the true ones,
// tests/e2e/php_frames.py shows.)
#include "runtime/php/php.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/format.h"
#include "runtime/managed/codes.h"
#include "runtime/php/engine.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/region.h"
#include "tests/unit/runtime/codes_place.h"
#include "tests/unit/runtime/hostile.h"

enum { LIMIT = 64, ROUNDS = 2000, ARENA_WORDS = 4096, CODES_BYTES = 8 << 20, WORD = 8 };
enum { LOOP = 0x10000, LOOP_END = 0x20000, OUTSIDE = 0x30000, GLOBALS = 0, CLASS = 200 };
static uint64_t seed = 1;
static uint64_t *arena;
static struct php_thread *thread;

static uint64_t at(size_t word) {
    return (uintptr_t)(arena + word);
}

static int set_up(void **state) {
    (void)state;
    const size_t bytes = ARENA_WORDS * sizeof *arena;
    char *place = sys_map(2 * bytes);
    assert_non_null(place);
    assert_int_equal(mprotect(place + bytes, bytes, PROT_NONE), 0);
    arena = (uint64_t *)place;
    codes_make_place(CODES_BYTES);
    engine_php = (struct php_engine){.layout = *engine_php_layout(8u << 8 | 2u),
                                     .globals = at(GLOBALS),
                                     .generator = at(CLASS),
                                     .loop = LOOP,
                                     .loop_end = LOOP_END,
                                     .frameless = at(CLASS + 1)};
    thread = php_thread_make(LIMIT);
    php.can_be_read = true;
    return thread ? 0 : -1;
}

// ---- a chain ------------------------------------------------------------------------------------

static size_t next_word;

static uint64_t make(size_t words) {
    size_t first = next_word;
    next_word += words;
    assert_true(next_word < ARENA_WORDS);
    memset(arena + first, 0, words * sizeof *arena);
    return at(first);
}

static uint64_t make_text(const char *text) {
    uint64_t address = make(3 + strlen(text) / WORD + 1), *words = (uint64_t *)address;
    words[2] = strlen(text);
    memcpy(words + 3, text, strlen(text));
    return address;
}

static uint64_t make_function(uint8_t type, const char *name, const char *class) {
    uint64_t address = make(32), *words = (uint64_t *)address;
    words[0] = type;
    words[1] = name ? make_text(name) : 0;
    words[engine_php.layout.function_file / WORD] = make_text("/app/a.php");
    if (!class) return address;
    words[2] = make(4);
    ((uint64_t *)words[2])[PHP_CLASS_NAME / WORD] = make_text(class);
    return address;
}

// A call of a function at a line, by the call further out.
static uint64_t make_call(uint64_t function, uint32_t line, uint64_t info, uint64_t previous) {
    uint64_t address = make(PHP_FRAME_WORDS), *words = (uint64_t *)address;
    words[PHP_FRAME_OPLINE] = make(4);
    ((uint64_t *)words[PHP_FRAME_OPLINE])[PHP_OP_LINE / WORD] = line;
    words[PHP_FRAME_FUNCTION] = function;
    words[PHP_FRAME_INFO] = info;
    words[PHP_FRAME_PREVIOUS] = previous;
    return address;
}

static uint64_t make_generator(uint64_t call, uint64_t parent) {
    uint64_t address = make(24), *words = (uint64_t *)address;
    words[PHP_OBJECT_CLASS / WORD] = arena[CLASS];
    words[engine_php.layout.generator_frame / WORD] = call;
    words[engine_php.layout.generator_parent / WORD] = parent;
    return address;
}

static void begin(uint64_t call) {
    arena[GLOBALS + engine_php.layout.globals_frame / WORD] = call;
}

// A stack as text: "name:line", or "*" of native code.
static const char *text_of(struct managed_stack stack) {
    static char text[1024];
    size_t used = 0;
    for (uint32_t i = 0; i < stack.count; i++) {
        uintptr_t pc = stack.frames[i].pc;
        const uint8_t *record =
            codes.region.base + (size_t)(pc >> 32 & INT32_MAX) * CAIRN_CODE_ALIGN;
        if (pc & FRAME_PYTHON)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s:%u ",
                                 (const char *)record + sizeof(struct cairn_code), (uint32_t)pc);
        else
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     pc < CAIRN_CUT_LIMIT ? "- " : "* ");
    }
    return text;
}

static const char *weave(struct managed_native native) {
    return text_of(php_weave(thread, native, getpid(), false));
}

static void test_chain(void **state) {
    (void)state;
    next_word = CLASS + 16;
    arena[CLASS] = at(CLASS + 2);
    uint64_t file = make_function(PHP_FUNCTION_USER, NULL, NULL);
    uint64_t sort = make_function(PHP_FUNCTION_INTERNAL, "usort", NULL);
    uint64_t method = make_function(PHP_FUNCTION_USER, "area", "Shape");
    uint64_t call = make_call(file, 5, PHP_CALL_TOP, 0);
    call = make_call(method, 7, 0, call);
    call = make_call(sort, 0, 0, call);
    call = make_call(method, 8, PHP_CALL_TOP, call);
    begin(call);
    const struct frame frames[] = {
        {.pc = OUTSIDE}, {.pc = LOOP + 1}, {.pc = OUTSIDE + 1}, {.pc = LOOP + 2}, {.pc = OUTSIDE}};
    const struct managed_native native = {frames, 5};
    assert_string_equal(weave(native), "* * {main}:5 Shape::area:7 usort:0 * * Shape::area:8 * ");
    // as in a fiber: what resumed it is outermost, behind the mark
    const struct frame inner[] = {{.pc = CAIRN_CUT_GUESSED}, {.pc = LOOP + 2}, {.pc = OUTSIDE}};
    assert_string_equal(weave((struct managed_native){inner, 3}),
                        "- {main}:5 Shape::area:7 usort:0 * Shape::area:8 * ");
    // no more frames are wanted
    const struct frame cut[] = {{.pc = CAIRN_CUT_MAX_DEPTH}, {.pc = LOOP + 2}, {.pc = OUTSIDE}};
    assert_string_equal(weave((struct managed_native){cut, 3}), "- * Shape::area:8 * ");
    // another thread has none
    assert_string_equal(text_of(php_weave(thread, native, getpid() + 1, false)), "* * * * * ");
    // in the next request its words are others, at the same address
    begin(0);
    assert_string_equal(weave(native), "* * * * * ");
    begin(call);
    memcpy((char *)((uint64_t *)method)[1] + PHP_TEXT, "rows", 4);
    assert_string_equal(weave(native), "* * {main}:5 Shape::rows:7 usort:0 * * Shape::rows:8 * ");
}

static void test_generators(void **state) {
    (void)state;
    next_word = CLASS + 16;
    uint64_t outer = make_function(PHP_FUNCTION_USER, "outer", NULL);
    uint64_t middle = make_function(PHP_FUNCTION_USER, "middle", NULL);
    uint64_t inner = make_function(PHP_FUNCTION_USER, "inner", NULL);
    uint64_t caller = make_call(make_function(PHP_FUNCTION_USER, NULL, NULL), 1, PHP_CALL_TOP, 0);
    uint64_t root = make_generator(make_call(inner, 4, PHP_CALL_TOP, 0), 0);
    uint64_t waits = make_generator(make_call(middle, 3, PHP_CALL_TOP, 0), root);
    uint64_t leaf = make_generator(make_call(outer, 2, PHP_CALL_TOP, 0), waits);
    uint64_t holder = make_call(0, 0, PHP_TYPE_OBJECT, caller);
    ((uint64_t *)holder)[PHP_FRAME_THIS] = leaf;
    begin(make_call(inner, 4, PHP_CALL_TOP, holder));
    const struct frame frames[] = {{.pc = LOOP + 1}, {.pc = OUTSIDE}, {.pc = LOOP + 2}};
    assert_string_equal(weave((struct managed_native){frames, 3}),
                        "* {main}:1 outer:2 middle:3 * * inner:4 ");
}

static void test_without_frame(void **state) {
    (void)state;
    const uint64_t code_shift = 32;
    next_word = CLASS + 16;
    uint64_t built_in = make_function(PHP_FUNCTION_INTERNAL, "class_exists", NULL);
    uint64_t user = make_function(PHP_FUNCTION_USER, "loads", NULL);
    uint64_t table = make(4);
    ((uint64_t *)table)[1] = built_in;
    arena[CLASS + 1] = table;
    uint64_t call = make_call(user, 3, PHP_CALL_TOP, 0);
    uint64_t *opline = (uint64_t *)((uint64_t *)call)[PHP_FRAME_OPLINE];
    opline[2] = (uint64_t)1 << code_shift;
    opline[3] |= (uint64_t)PHP_OP_FRAMELESS << code_shift;
    const struct frame frames[] = {{.pc = LOOP + 1}, {.pc = LOOP + 2}};
    const struct managed_native native = {frames, 2};
    begin(call);
    assert_string_equal(weave(native), "* * loads:3 ");
    begin(make_call(user, 9, PHP_CALL_TOP, call));
    assert_string_equal(weave(native), "* loads:3 class_exists:0 * loads:9 ");
}

// ---- hostile memory -----------------------------------------------------------------------------

static uint64_t some_word(void) {
    const uint64_t usual = PHP_CALL_TOP | PHP_TYPE_OBJECT | PHP_FUNCTION_USER;
    return hostile_word(&seed, arena, ARENA_WORDS, usual);
}

static uint32_t weave_some(bool is_careful) {
    struct frame frames[LIMIT];
    uint32_t count = 1 + (uint32_t)random_below(&seed, LIMIT - 1), named = 0;
    for (uint32_t i = 0; i < count; i++)
        frames[i] = (struct frame){.pc = random_chance(&seed, 50) ? LOOP + i : some_word()};
    struct managed_stack stack =
        php_weave(thread, (struct managed_native){frames, count}, getpid(), is_careful);
    assert_true(stack.count <= LIMIT && stack.keep <= stack.count);
    for (uint32_t i = 0; i < stack.count; i++) named += (stack.frames[i].pc & FRAME_PYTHON) != 0;
    return named;
}

// A chain, of which some words are not what they should be.
static void make_hostile(void) {
    next_word = CLASS + 16;
    uint64_t call = 0;
    for (int i = 0; i < 20; i++) {
        uint8_t type = random_chance(&seed, 30) ? PHP_FUNCTION_INTERNAL : PHP_FUNCTION_USER;
        uint64_t function = make_function(type, "name", random_chance(&seed, 50) ? "Class" : NULL);
        uint64_t waits = random_chance(&seed, 10) ? make_generator(call, 0) : 0;
        call = make_call(waits ? 0 : function, 1, PHP_CALL_TOP | PHP_TYPE_OBJECT, call);
        ((uint64_t *)call)[PHP_FRAME_THIS] = waits;
    }
    begin(call);
    for (size_t i = random_below(&seed, 200); i < ARENA_WORDS; i += 1 + random_below(&seed, 200))
        arena[i] = some_word();
}

static void test_hostile_memory(void **state) {
    (void)state;
    uint32_t named = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        make_hostile();
        named += weave_some(false) + weave_some(round % 5 == 0);
    }
    assert_true(named > ROUNDS);  // it comes so far
}

// ---- code ---------------------------------------------------------------------------------------

static void test_part_of_code(void **state) {
    (void)state;
    uintptr_t start, end;
    struct {
        uint8_t forms[4];
        int32_t unused, count;
        int32_t rows[4][2];
    } table = {{1, 0x1b, 0x03, 0x3b}, 0, 4, {{-300, 0}, {-200, 0}, {-100, 0}, {500, 0}}};
    const uint8_t *header = (const uint8_t *)&table;
    uintptr_t here = (uintptr_t)header;
    assert_true(engine_php_part_of(header, here - 150, &start, &end));
    assert_int_equal(start, here - 200);
    assert_int_equal(end, here - 100);
    assert_true(engine_php_part_of(header, here - 300, &start, &end));
    assert_int_equal(start, here - 300);
    assert_false(engine_php_part_of(header, here - 301, &start, &end));
    assert_false(engine_php_part_of(header, here + 500, &start, &end));
    assert_false(engine_php_part_of(NULL, here, &start, &end));
    table.forms[3] = 0;
    assert_false(engine_php_part_of(header, here - 150, &start, &end));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),         cmocka_unit_test(test_generators),
        cmocka_unit_test(test_without_frame), cmocka_unit_test(test_hostile_memory),
        cmocka_unit_test(test_part_of_code),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
