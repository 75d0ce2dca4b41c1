// SPDX-License-Identifier: Apache-2.0
// Frames as Ruby 3.1 has them: methods with their classes, blocks, a method in C; what counts until
// it collects; lines far behind in a code's table; hostile memory: whatever the words of Ruby say,
// nothing is read that is not there, and a stack ends; and what the code of two functions says.
// (That frames are the true ones, tests/e2e/ruby_frames.py shows.)
#include "runtime/ruby/ruby.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "format/format.h"
#include "format/languages.h"
#include "runtime/managed/codes.h"
#include "runtime/ruby/engine.h"
#include "runtime/sys/frame.h"
#include "runtime/sys/region.h"
#include "tests/unit/runtime/codes_place.h"
#include "tests/unit/runtime/hostile.h"

enum { LIMIT = 64, ROUNDS = 2000, ARENA_WORDS = 8192, CODES_BYTES = 8 << 20, WORD = 8 };
enum { LOOP = 0x10000, LOOP_END = 0x20000, OUTSIDE = 0x30000 };
enum { MACHINE = 0, OBJECTS = 2, COLLECTIONS = 4, SYMBOLS = 8, CONTEXT = 16, FIRST = 64 };
enum { FRAME_WORDS = 8, STACK_WORDS = 512, PATH_NAME = 200, ATTACHED_NAME = 201, TIMES_NAME = 202 };
static uint64_t seed = 1;
static uint64_t *arena;
static struct ruby_thread *thread;

static uint64_t at(size_t word) {
    return (uintptr_t)(arena + word);
}

static uint64_t *words_of(uint64_t address) {
    return (uint64_t *)address;
}

static int set_up(void **state) {
    (void)state;
    const size_t bytes = ARENA_WORDS * sizeof *arena;
    char *place = sys_map(2 * bytes);
    assert_non_null(place);
    assert_int_equal(mprotect(place + bytes, bytes, PROT_NONE), 0);
    arena = (uint64_t *)place;
    codes_make_place(CODES_BYTES);
    engine_ruby = (struct ruby_engine){.layout = *engine_ruby_layout(3u << 8 | 1u),
                                       .loop = LOOP,
                                       .loop_end = LOOP_END,
                                       .symbols = at(SYMBOLS),
                                       .machine = at(MACHINE),
                                       .machine_objects = WORD,
                                       .objects_collections = WORD};
    thread = ruby_thread_make(LIMIT);
    ruby.can_be_read = ruby.is_verified = true;
    return thread ? 0 : -1;
}

// ---- objects ------------------------------------------------------------------------------------

static size_t next_word;
static uint64_t symbols_part;

static uint64_t make(size_t words) {
    size_t first = next_word;
    next_word += words;
    assert_true(next_word < ARENA_WORDS);
    memset(arena + first, 0, words * sizeof *arena);
    return at(first);
}

static uint64_t make_text(const char *text) {
    const unsigned length_shift = 14;
    uint64_t object = make(5), *words = words_of(object);
    size_t length = strlen(text);
    if (length < 3 * sizeof *words) {
        words[0] = RUBY_TYPE_STRING | length << length_shift;
        memcpy(words + 2, text, length);
        return object;
    }
    words[0] = RUBY_TYPE_STRING | RUBY_IS_APART;
    words[2] = length;
    words[3] = make(length / WORD + 2) + 3;
    memcpy((char *)words[3], text, length);
    return object;
}

static uint64_t make_list(uint64_t elements, uint64_t count) {
    uint64_t object = make(5), *words = words_of(object);
    words[0] = RUBY_TYPE_ARRAY;
    words[2] = count;
    words[4] = elements;
    return object;
}

static void name_symbol(uint64_t number, const char *text) {
    words_of(symbols_part)[number * 2] = make_text(text);
}

static uint64_t symbol(uint64_t number) {
    return number << RUBY_NAME_SHIFT | 1;
}

static void make_symbols(void) {
    uint64_t names = make(2);
    symbols_part = make((size_t)RUBY_NAMES_UNIT * 2);
    words_of(names)[0] = make_list(symbols_part, (uint64_t)RUBY_NAMES_UNIT * 2);
    arena[SYMBOLS + RUBY_NAMES_LIST / WORD] = make_list(names, 1);
    name_symbol(PATH_NAME, "__classpath__");
    name_symbol(ATTACHED_NAME, "__attached__");
    name_symbol(TIMES_NAME, "times");
}

// A class that keeps a value by a symbol.
static uint64_t make_class(uint64_t flags, uint64_t name, uint64_t value) {
    uint64_t object = make(5), *words = words_of(object), *table;
    words[0] = flags;
    words[engine_ruby.layout.class_extra / WORD] = make(4);
    uint64_t extra = words[engine_ruby.layout.class_extra / WORD];
    words_of(extra)[engine_ruby.layout.extra_variables / WORD] = make(8);
    table = words_of(words_of(extra)[engine_ruby.layout.extra_variables / WORD]);
    table[5] = 2;
    table[6] = make(6);
    words_of(table[6])[1] = symbol(TIMES_NAME);
    words_of(table[6])[4] = symbol(name);
    words_of(table[6])[5] = value;
    return object;
}

static uint64_t make_named(const char *name) {
    return make_class(RUBY_TYPE_CLASS, PATH_NAME, make_text(name));
}

// The entry of a method in a class; `name`: 0 of one that is written in Ruby.
static uint64_t make_entry(uint64_t class, uint64_t name) {
    uint64_t object = make(5), *words = words_of(object);
    words[0] = RUBY_TYPE_INTERNAL | RUBY_INTERNAL_METHOD << RUBY_INTERNAL_SHIFT;
    words[1] = class;
    words[2] = make(6);
    words_of(words[2])[0] = name ? 1 : RUBY_DEFINITION_IS_CODE;
    words_of(words[2])[RUBY_DEFINITION_NAME / WORD] = symbol(name);
    return object;
}

// Code of one line, with a method's name if `is_method`.
static uint64_t make_code(const char *label, const char *base, uint32_t line, bool is_method) {
    uint64_t code = make(3), body = make(40), *words = words_of(body);
    words_of(code)[RUBY_CODE_BODY / WORD] = body;
    words[0] = is_method | (uint64_t)0x2000 << 32;  // no address of a sanitizer
    words[1] = make(16);
    words[engine_ruby.layout.body_location / WORD] = make_text("/app/a_file_of_the_program.rb");
    words[engine_ruby.layout.body_location / WORD + 1] = make_text(base);
    words[engine_ruby.layout.body_location / WORD + 2] = make_text(label);
    words[engine_ruby.layout.body_lines / WORD] = make(2);
    words_of(words[engine_ruby.layout.body_lines / WORD])[0] = line;
    words[engine_ruby.layout.body_lines / WORD + 2] = 1;
    words[engine_ruby.layout.body_local / WORD] = code;
    return code;
}

// ---- frames -------------------------------------------------------------------------------------

static uint64_t stack, frame;

static uint64_t make_environment(uint64_t method, uint64_t outer, uint64_t flags) {
    uint64_t first = make(3), *words = words_of(first);
    words[0] = method;
    words[1] = outer | 1;
    words[2] = flags | (outer ? 0 : RUBY_ENVIRONMENT_IS_LOCAL);
    return first + RUBY_ENVIRONMENT_BEFORE;
}

// The next frame inwards.
static void push(uint64_t code, uint64_t environment) {
    frame -= engine_ruby.layout.frame_bytes;
    uint64_t *words = words_of(frame);
    memset(words, 0, engine_ruby.layout.frame_bytes);
    words[RUBY_FRAME_CODE] = code;
    if (code) words[RUBY_FRAME_PC] = words_of(words_of(code)[RUBY_CODE_BODY / WORD])[1] + WORD;
    words[RUBY_FRAME_ENVIRONMENT] = environment;
    arena[CONTEXT + 2] = frame;
}

static void begin(void) {
    next_word = FIRST;
    make_symbols();
    arena[MACHINE] = at(MACHINE);
    arena[MACHINE + 1] = at(OBJECTS);
    arena[OBJECTS + 1]++;
    stack = make(STACK_WORDS);
    frame = stack + STACK_WORDS * WORD;
    arena[CONTEXT] = stack;
    arena[CONTEXT + 1] = STACK_WORDS;
    push(0, make_environment(0, 0, RUBY_FRAME_KIND_DUMMY | RUBY_FRAME_IS_NATIVE));
}

// A stack as text: "name:line", or "*" of native code.
static const char *text_of(struct managed_stack made) {
    static char text[1024];
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < made.count; i++) {
        uintptr_t pc = made.frames[i].pc;
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
    return text_of(ruby_weave_context(thread, native, at(CONTEXT), false));
}

static const struct frame two_loops[] = {
    {.pc = OUTSIDE}, {.pc = LOOP + 1}, {.pc = OUTSIDE + 1}, {.pc = LOOP + 2}, {.pc = OUTSIDE}};
static const struct managed_native native = {two_loops, 5};

static void test_frames(void **state) {
    (void)state;
    begin();
    uint64_t circle = make_named("Told::Circle"), entry = make_entry(circle, 0);
    uint64_t times = make_entry(
        make_class(RUBY_TYPE_CLASS | RUBY_IS_SINGLETON, ATTACHED_NAME, circle), TIMES_NAME);
    push(make_code("<main>", "<main>", 9, false), make_environment(0, 0, RUBY_FRAME_IS_TOP));
    uint64_t method = make_environment(entry, 0, 0);
    push(make_code("area", "area", 7, true), method);
    push(0, make_environment(times, 0, RUBY_FRAME_KIND_FUNCTION | RUBY_FRAME_IS_NATIVE));
    uint64_t code = make_code("block in area", "area", 8, true);
    push(code, make_environment(0, method, RUBY_FRAME_IS_TOP));
    const char *whole = "* * <main>:9 Told::Circle#area:7 Told::Circle.times:0 * * "
                        "block in Told::Circle#area:8 * ";
    assert_string_equal(weave(native), whole);
    // as in a Fiber that is damaged: what has no native frame is outermost, behind the mark
    const struct frame inner[] = {{.pc = CAIRN_CUT_GUESSED}, {.pc = LOOP + 2}, {.pc = OUTSIDE}};
    assert_string_equal(weave((struct managed_native){inner, 3}),
                        "- <main>:9 Told::Circle#area:7 Told::Circle.times:0 * "
                        "block in Told::Circle#area:8 * ");
    // no more frames are wanted
    const struct frame cut[] = {{.pc = CAIRN_CUT_MAX_DEPTH}, {.pc = LOOP + 2}, {.pc = OUTSIDE}};
    assert_string_equal(weave((struct managed_native){cut, 3}),
                        "- * block in Told::Circle#area:8 * ");
    // a thread that runs no Ruby has none
    assert_string_equal(text_of(ruby_weave_context(thread, native, 0, false)), "* * * * * ");
    // what was looked up counts until Ruby collects
    uint64_t *label = words_of(words_of(code)[RUBY_CODE_BODY / WORD]) +
                      engine_ruby.layout.body_location / WORD + 2;
    *label = make_text("ensure in area");
    assert_string_equal(weave(native), whole);
    arena[OBJECTS + 1]++;
    assert_non_null(strstr(weave(native), "ensure in Told::Circle#area:8"));
    // nor without knowing that
    engine_ruby.machine_objects = 0;
    *label = make_text("rescue in area");
    assert_non_null(strstr(weave(native), "rescue in Told::Circle#area:8"));
    engine_ruby.machine_objects = WORD;
}

static void test_classes(void **state) {
    (void)state;
    begin();
    uint64_t plain = make_named("Plain"),
             own = make_class(RUBY_TYPE_CLASS | RUBY_IS_SINGLETON, ATTACHED_NAME, make(5));
    words_of(own)[RUBY_CLASS_ABOVE / WORD] = plain;
    uint64_t included = make(5);
    words_of(included)[0] = RUBY_TYPE_INCLUDED;
    words_of(included)[RUBY_OBJECT_CLASS / WORD] =
        make_class(RUBY_TYPE_MODULE, PATH_NAME, make_text("Kernel"));
    uint64_t unnamed = make_class(RUBY_TYPE_CLASS, TIMES_NAME, 0);
    uint64_t special = make(5);
    words_of(special)[0] = RUBY_TYPE_INTERNAL | RUBY_INTERNAL_SPECIAL << RUBY_INTERNAL_SHIFT;
    words_of(special)[1] = make_entry(plain, 0);
    push(make_code("a", "a", 1, true), make_environment(make_entry(own, 0), 0, 0));
    push(make_code("b", "b", 2, true), make_environment(make_entry(included, 0), 0, 0));
    push(make_code("c", "c", 3, true), make_environment(make_entry(unnamed, 0), 0, 0));
    push(make_code("d", "d", 4, true), make_environment(special, 0, 0));
    // one that define_method made has its block's name
    push(make_code("block in <class:E>", "<class:E>", 5, false),
         make_environment(make_entry(plain, TIMES_NAME), 0, 0));
    assert_string_equal(weave((struct managed_native){two_loops, 1}),
                        "#<Plain>.a:1 Kernel#b:2 c:3 Plain#d:4 block in <class:E>:5 * ");
}

// Entries at every third position: the table of bits as Ruby's own function makes it.
static void test_lines(void **state) {
    (void)state;
    enum { POSITIONS = 1400, STEP = 3, FIRST_PART = 54, BLOCK = 512 };
    begin();
    uint64_t code = make_code("long", "long", 0, true);
    uint64_t *body = words_of(words_of(code)[RUBY_CODE_BODY / WORD]);
    uint64_t table = make(6 + 3 * 10), *bits = words_of(table),
             lines = make(POSITIONS / STEP * 3 / 2 + 4);
    uint32_t count = 0;
    for (uint32_t i = 0; i < POSITIONS; i++) {
        uint32_t behind = i - FIRST_PART, block = behind / BLOCK, bit = behind % BLOCK;
        uint64_t *words = bits + 6 + (size_t)block * 10;
        if (i >= FIRST_PART && bit == 0) words[0] = count;
        if (i >= FIRST_PART && bit && bit % 64 == 0)
            words[1] |= (uint64_t)(count - (uint32_t)words[0]) << (bit / 64 - 1) * 9;
        if (i % STEP == 0) {
            ((uint32_t *)lines)[(size_t)count * 3] = 1000 + i;
            if (i >= FIRST_PART) words[2 + bit / 64] |= (uint64_t)1 << bit % 64;
            count++;
        }
        if (i < FIRST_PART) bits[i / 9] |= (uint64_t)count << i % 9 * 7;
    }
    body[engine_ruby.layout.body_lines / WORD] = lines;
    body[engine_ruby.layout.body_lines / WORD + 2] = count;
    body[engine_ruby.layout.body_lines / WORD + 3] = table;
    push(code, make_environment(0, 0, 0));
    for (uint32_t i = 0; i < POSITIONS; i++) {
        char wanted[64];
        words_of(frame)[RUBY_FRAME_PC] = body[1] + (uint64_t)(i + 1) * WORD;
        snprintf(wanted, sizeof wanted, "long:%u * ", 1000 + i / STEP * STEP);
        assert_string_equal(weave((struct managed_native){two_loops, 1}), wanted);
    }
}

// Stacks that do not end as they should, before one did.
static void test_refused(void **state) {
    (void)state;
    begin();
    push(make_code("a", "a", 1, true), make_environment(0, 0, 0));
    words_of(stack + (STACK_WORDS - FRAME_WORDS) * WORD)[RUBY_FRAME_ENVIRONMENT] =
        make_environment(0, 0, 0);
    ruby.is_verified = false;
    for (int i = 0; i < 100; i++) assert_string_equal(weave(native), "* * * * * ");
    assert_false(ruby.can_be_read);
    assert_int_equal(ruby.version, CAIRN_RUBY_UNKNOWN);
    ruby.can_be_read = ruby.is_verified = true;
}

// ---- hostile memory -----------------------------------------------------------------------------

static uint64_t some_word(void) {
    const uint64_t usual = RUBY_TYPE_STRING | RUBY_IS_APART | RUBY_FRAME_IS_TOP;
    return hostile_word(&seed, arena, ARENA_WORDS, usual);
}

static uint32_t weave_some(bool is_careful) {
    struct frame frames[LIMIT];
    uint32_t count = 1 + (uint32_t)random_below(&seed, LIMIT - 1), named = 0;
    for (uint32_t i = 0; i < count; i++)
        frames[i] = (struct frame){.pc = random_chance(&seed, 50) ? LOOP + i : some_word()};
    struct managed_stack made =
        ruby_weave_context(thread, (struct managed_native){frames, count}, at(CONTEXT), is_careful);
    assert_true(made.count <= LIMIT && made.keep <= made.count);
    for (uint32_t i = 0; i < made.count; i++) named += (made.frames[i].pc & FRAME_PYTHON) != 0;
    return named;
}

// Frames, of which some words are not what they should be.
static void make_hostile(void) {
    begin();
    uint64_t class = make_named("Class"), outer = 0;
    for (int i = 0; i < 20; i++) {
        bool is_native = random_chance(&seed, 30);
        uint64_t entry = make_entry(class, is_native ? TIMES_NAME : 0);
        uint64_t flags =
            is_native ? RUBY_FRAME_KIND_FUNCTION | RUBY_FRAME_IS_NATIVE : RUBY_FRAME_IS_TOP;
        uint64_t environment = make_environment(entry, random_chance(&seed, 30) ? outer : 0, flags);
        push(is_native ? 0 : make_code("block in name", "name", 3, true), environment);
        outer = environment;
    }
    const size_t wrong = random_below(&seed, 200);
    for (size_t i = 0; i < wrong; i++)
        arena[FIRST + random_below(&seed, next_word - FIRST)] = some_word();
    if (random_chance(&seed, 10)) arena[random_below(&seed, FIRST)] = some_word();
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

static void test_code(void **state) {
    (void)state;
    uint8_t loads[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x8b, 0x05, 0x00, 0x01, 0x00, 0x00, 0xc3};
    assert_int_equal(engine_ruby_loaded(loads), (uintptr_t)loads + 10 + 0x100);
    assert_int_equal(engine_ruby_loaded(loads + 4), (uintptr_t)loads + 10 + 0x100);
    loads[10] = 0x90;
    assert_int_equal(engine_ruby_loaded(loads), 0);
    uint8_t follows[] = {0x48, 0x8b, 0x05, 1, 2,    3,    4,    0x48, 0x8b, 0x00, 0x48, 0x8b, 0x80,
                         0x50, 0x04, 0,    0, 0x48, 0x8b, 0x80, 0xb8, 0x01, 0,    0,    0xc3};
    uint32_t first = 0, second = 0;
    assert_true(engine_ruby_offsets(follows, &first, &second));
    assert_int_equal(first, 0x450);
    assert_int_equal(second, 0x1b8);
    follows[9] = 0x01;
    assert_false(engine_ruby_offsets(follows, &first, &second));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),         cmocka_unit_test(test_classes),
        cmocka_unit_test(test_lines),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hostile_memory), cmocka_unit_test(test_code),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
