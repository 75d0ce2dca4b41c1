// SPDX-License-Identifier: Apache-2.0
// Hostile memory: whatever the words of a JVM say, nothing is read that is not there, and a stack
// ends. (That its frames are the true ones, tests/e2e/java_frames.py shows.) And numbers of its
// tables.
#include "runtime/java/java.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "format/format.h"
#include "runtime/java/numbers.h"
#include "runtime/java/vm.h"
#include "runtime/managed/codes.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/region.h"
#include "tests/unit/runtime/codes_place.h"
#include "tests/unit/runtime/random.h"

enum { LIMIT = 64, ROUNDS = 1000, THREAD_ROUNDS = 50 };
enum { ARENA_WORDS = 8192, CODES_BYTES = 8 << 20 };
static const int tid = 4711;
static uint64_t seed = 1;

static uint64_t *arena;
static const uint64_t object = 64;  // of the thread, its word in the arena
static struct frame outside[2];

// A word that leads somewhere in the arena, near its end, nowhere, or is a small number.
static uint64_t some_word(void) {
    const uint64_t kinds = 8, small = 300, word = sizeof(uint64_t);
    uint64_t inside = (uintptr_t)arena + random_next(&seed) % ARENA_WORDS * word;
    switch (random_next(&seed) % kinds) {
    case 0:
        return random_next(&seed);
    case 1:
        return random_next(&seed) % small;
    case 2:
        return (uintptr_t)(arena + ARENA_WORDS) - random_next(&seed) % small;
    case 3:
        return 0;
    case 4:
        return inside + 1;
    case 5:
        return (uint64_t)tid;
    default:
        return inside;
    }
}

static struct managed_native walk(void *context, uintptr_t pc, uintptr_t stack,
                                  uintptr_t *frame_slot) {
    (void)context;
    (void)frame_slot;
    outside[0] = (struct frame){.stack = stack + sizeof stack, .pc = pc};
    outside[1] = (struct frame){.stack = stack, .pc = pc};
    return (struct managed_native){outside, 2};
}

// Every field somewhere in the first words behind an address; static ones in the arena.
static void make_layout(void) {
    const uint64_t near = 40, at = (uintptr_t)arena;
    uint64_t *words = (uint64_t *)&vm;
    for (size_t i = 0; i < sizeof vm / sizeof *words; i++)
        words[i] = random_next(&seed) % near * sizeof *words;
    uint64_t *statics[] = {&vm.thread_list, &vm.call_stub_return, &vm.interpreter, &vm.code_heaps};
    for (size_t i = 0; i < sizeof statics / sizeof *statics; i++) *statics[i] = at + i * sizeof at;
    vm.version = random_chance(&seed, 50) ? 17 : 25;
}

// So is the way to code: what lies in the first half is the interpreter's, the rest a heap's.
static void make_code(void) {
    const uint64_t word = sizeof word, queue = 200, heaps = 220, data = 230, heap = 240, map = 300;
    const uint64_t half = ARENA_WORDS / 2, shift = 7;
    vm.queue_buffer = vm.array_length = vm.heap_memory = vm.space_low = 0;
    vm.queue_limit = vm.array_data = vm.space_high = word;
    vm.heap_segments = 2 * word;
    vm.heap_shift = 4 * word;
    arena[1] = (uintptr_t)(arena + random_below(&seed, ARENA_WORDS));
    arena[2] = (uintptr_t)(arena + queue);
    arena[3] = (uintptr_t)(arena + heaps);
    arena[queue] = (uintptr_t)arena;
    arena[queue + 1] = half * word;
    arena[heaps] = 1;
    arena[heaps + 1] = (uintptr_t)(arena + data);
    arena[data] = (uintptr_t)(arena + heap);
    arena[heap] = (uintptr_t)(arena + half);
    arena[heap + 1] = (uintptr_t)(arena + ARENA_WORDS);
    arena[heap + 2] = (uintptr_t)(arena + map);
    arena[heap + 4] = shift;
}

// An anchor, and interpreted frames in a row, of which half of the time some words are others.
static void make_frames(void) {
    const uint64_t low = 400, step = 16, above = 8, count = 20;
    uint64_t *anchor = arena + object + 4;
    anchor[0] = (uintptr_t)(arena + low);
    anchor[1] = (uintptr_t)(arena + low + above);
    anchor[2] = (uintptr_t)(arena + random_below(&seed, ARENA_WORDS / 2));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t *frame = arena + low + above + i * step;
        frame[-1] = (uintptr_t)(frame + 2);
        frame[0] = (uintptr_t)(frame + step);
        frame[1] = (uintptr_t)(arena + random_below(&seed, ARENA_WORDS / 2));
    }
    if (random_chance(&seed, 50)) return;
    anchor[random_below(&seed, 3)] = some_word();
    for (int i = 0; i < 5; i++) arena[low + random_below(&seed, count * step)] = some_word();
}

// The way to an anchor is right, so that what follows is reached.
static void make_thread(void) {
    const uint64_t list = 16, threads = 24, os = 128;
    vm.list_length = 0;
    vm.list_threads = sizeof(uint64_t);
    vm.thread_os = 0;
    vm.os_tid = 0;
    vm.thread_stack_base = sizeof(uint64_t);
    arena[0] = (uintptr_t)(arena + list);
    arena[list] = 1;
    arena[list + 1] = (uintptr_t)(arena + threads);
    arena[threads] = (uintptr_t)(arena + object);
    arena[object] = (uintptr_t)(arena + os);
    arena[object + 1] = (uintptr_t)(arena + ARENA_WORDS) + random_next(&seed) % 2 * CODES_BYTES;
    arena[os] = (uint64_t)tid;
    vm.thread_anchor = 4 * sizeof(uint64_t);
    vm.anchor_sp = 0;
    vm.anchor_fp = sizeof(uint64_t);
    vm.anchor_pc = 2 * sizeof(uint64_t);
    make_frames();
}

// Behind the words nothing can be read, for as far as the thread's stack may claim to reach:
// what else the process has there is not the JVM's, and the sanitizer's own at times.
static uint64_t *make_arena(void) {
    const size_t bytes = ARENA_WORDS * sizeof *arena;
    char *place = sys_map(bytes + CODES_BYTES);
    assert_non_null(place);
    assert_int_equal(mprotect(place + bytes, CODES_BYTES, PROT_NONE), 0);
    return (uint64_t *)place;
}

// A page that was readable is not any more, as the wrapped functions say.
static char *take_page_away(void) {
    const size_t pages = ARENA_WORDS * sizeof *arena / SYS_PAGE_LEAST;
    char *page = (char *)arena + random_below(&seed, pages) * SYS_PAGE_LEAST;
    memory_note_change();
    assert_int_equal(mprotect(page, SYS_PAGE_LEAST, PROT_NONE), 0);
    return page;
}

static void test_hostile_memory(void **state) {
    (void)state;
    const struct managed_walker walker = {walk, NULL};
    uint64_t deepest = 0;
    arena = make_arena();
    codes_make_place(CODES_BYTES);
    struct java_thread *thread = NULL;
    pthread_key_t own;
    assert_int_equal(pthread_key_create(&own, NULL), 0);
    java_use_own_data(pthread_getspecific);
    java.can_be_read = true;
    for (size_t round = 0; round < ROUNDS; round++) {
        if (round % THREAD_ROUNDS == 0) thread = java_thread_make(LIMIT);
        assert_non_null(thread);
        make_layout();
        for (size_t i = 0; i < ARENA_WORDS / 8; i++)
            arena[round % 2 ? i : random_next(&seed) % ARENA_WORDS] = some_word();
        make_thread();
        if (random_chance(&seed, 90)) make_code();
        // the list moves, so that the thread is looked for anew
        if (round % 3 == 0) arena[0] = some_word();
        struct frame native[2] = {{.stack = 0, .pc = CAIRN_CUT_GUESSED},
                                  {.stack = (uintptr_t)arena, .pc = (uintptr_t)walk}};
        // its object is among the thread's own data, or something else is
        pthread_setspecific(own, random_chance(&seed, 50) ? arena + object : (void *)some_word());
        char *taken = random_chance(&seed, 50) ? take_page_away() : NULL;
        struct managed_stack stack =
            java_weave(thread, (struct managed_native){native, 2}, tid, &walker);
        if (taken) assert_int_equal(mprotect(taken, SYS_PAGE_LEAST, PROT_READ | PROT_WRITE), 0);
        assert_in_range(stack.count, 0, LIMIT);
        assert_true(stack.keep <= stack.count);
        if (stack.count > deepest) deepest = stack.count;
    }
    assert_true(deepest > 10);  // past the anchor
    java.can_be_read = false;
    java_use_own_data(NULL);
    pthread_key_delete(own);
}

// As long as the thread has its object among its own data, the list is not asked; then it is.
static void test_own_data(void **state) {
    (void)state;
    const struct managed_walker walker = {walk, NULL};
    struct frame native[1] = {{.stack = (uintptr_t)arena, .pc = (uintptr_t)walk}};
    const struct managed_native stack = {native, 1};
    uint64_t *list = (uint64_t *)sys_map(SYS_PAGE_LEAST);
    pthread_key_t own;
    assert_int_equal(pthread_key_create(&own, NULL), 0);
    java_use_own_data(pthread_getspecific);
    java.can_be_read = true;
    seed = 1;
    memset(arena, 0, ARENA_WORDS * sizeof *arena);
    make_layout();
    make_thread();
    make_code();
    memset(&arena[object + 4], 0, 3 * sizeof *arena);
    vm.anchor_sp = 0;
    list[0] = 1;
    list[1] = (uintptr_t)(list + 2);
    list[2] = (uintptr_t)(arena + object);
    arena[0] = (uintptr_t)list;
    pthread_setspecific(own, arena + object);
    struct java_thread *thread = java_thread_make(LIMIT);
    assert_false(java_has_own_object(thread));
    java_weave(thread, stack, tid, &walker);
    assert_true(java_has_own_object(thread));
    list[2] = 0;  // no longer in the list, but the thread's own still
    java_weave(thread, stack, tid, &walker);
    assert_true(java_has_own_object(thread));
    pthread_setspecific(own, NULL);  // it has taken it out
    assert_false(java_has_own_object(thread));
    java_weave(thread, stack, tid, &walker);
    pthread_setspecific(own, arena + object);
    assert_false(java_has_own_object(thread));  // it was not in the list when that was asked
    java.can_be_read = false;
    java_use_own_data(NULL);
    pthread_key_delete(own);
}

static void test_numbers(void **state) {
    (void)state;
    const uint8_t bytes[] = {0, 191, 192, 0, 255, 255, 255, 255, 255, 3};
    struct numbers numbers = {bytes, bytes + sizeof bytes, 0};
    assert_int_equal(numbers_read(&numbers), 0);
    assert_int_equal(numbers_read(&numbers), 191);
    assert_int_equal(numbers_read(&numbers), 192);
    const uint64_t most = 255 * (1 + (1ull << 6) + (1ull << 12) + (1ull << 18) + (1ull << 24));
    assert_int_equal(numbers_read(&numbers), (uint32_t)most);
    assert_int_equal(numbers_read_signed(&numbers), -2);
    assert_int_equal(numbers_read(&numbers), 0);  // at the end
}

static void test_numbers_without_zero(void **state) {
    (void)state;
    const uint8_t bytes[] = {1, 191, 192, 1, 192, 2, 4};
    struct numbers numbers = {bytes, bytes + sizeof bytes, 1};
    assert_int_equal(numbers_read(&numbers), 0);
    assert_int_equal(numbers_read(&numbers), 190);
    assert_int_equal(numbers_read(&numbers), 191);
    assert_int_equal(numbers_read(&numbers), 191 + 64);
    assert_int_equal(numbers_read_signed(&numbers), -2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_memory),
        cmocka_unit_test(test_own_data),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_without_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
