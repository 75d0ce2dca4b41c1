// SPDX-License-Identifier: Apache-2.0
// Which stacks let a thread load a library: real ones, written down as frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/attach/safe_point.h"

#define LIBC(name)                                                                                 \
    { 0x7000, FRAME_LIBC, name }
#define PROGRAM                                                                                    \
    { 0x1000, FRAME_PROGRAM, NULL }
#define LINKER                                                                                     \
    { 0x6000, FRAME_LINKER, NULL }
#define ALLOCATOR                                                                                  \
    { 0x5000, FRAME_ALLOCATOR, NULL }

#define COUNT(list) (sizeof(list) / sizeof *(list))

static struct safe_point judge(const struct safe_point_frame *frames, size_t count,
                               bool is_in_system_call) {
    struct safe_point_stack stack = {.frames = frames,
                                     .count = count,
                                     .is_complete = true,
                                     .is_in_system_call = is_in_system_call};
    return safe_point_judge(&stack);
}

#define is_safe(frames, is_in_system_call)                                                         \
    (judge((frames), COUNT(frames), (is_in_system_call)).is_safe)

static void test_program_and_waiting(void **state) {
    (void)state;
    const struct safe_point_frame loop[] = {PROGRAM, PROGRAM, LIBC(NULL), LIBC("__libc_start_main"),
                                            PROGRAM};
    const struct safe_point_frame reading[] = {LIBC("read"), PROGRAM, LIBC(NULL),
                                               LIBC("__libc_start_main"), PROGRAM};
    const struct safe_point_frame waiting[] = {LIBC(NULL), LIBC(NULL), LIBC("pthread_cond_wait"),
                                               PROGRAM,    LIBC(NULL), LIBC(NULL)};
    assert_true(is_safe(loop, false));
    assert_true(is_safe(reading, true));
    assert_true(is_safe(waiting, true));
    // the same place, but it computes there: it may hold anything
    assert_false(is_safe(waiting, false));
}

static void test_allocator(void **state) {
    (void)state;
    const char *const names[] = {"malloc",   "free",          "calloc",      "realloc",
                                 "memalign", "__libc_malloc", "malloc_trim", "posix_memalign"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct safe_point_frame direct[] = {LIBC(names[i]), PROGRAM, LIBC(NULL), LIBC(NULL)};
        const struct safe_point_frame deeper[] = {LIBC("__munmap"), LIBC(NULL), LIBC(names[i]),
                                                  PROGRAM,          LIBC(NULL), LIBC(NULL)};
        assert_false(is_safe(direct, false));
        assert_false(is_safe(deeper, true));
        struct safe_point point = judge(direct, COUNT(direct), false);
        assert_non_null(strstr(point.why, names[i]));
        assert_false(point.is_in_linker);
    }
    const struct safe_point_frame other[] = {ALLOCATOR, PROGRAM, LIBC(NULL), LIBC(NULL)};
    assert_false(is_safe(other, false));
}

// A static function of libc above a function that is not known to be safe.
static void test_nameless(void **state) {
    (void)state;
    const struct safe_point_frame inner[] = {LIBC(NULL), PROGRAM, LIBC(NULL), LIBC(NULL)};
    const struct safe_point_frame between[] = {LIBC("memcpy"), LIBC(NULL), LIBC("qsort"),
                                               PROGRAM,        LIBC(NULL), LIBC(NULL)};
    assert_false(is_safe(inner, false));
    assert_true(is_safe(inner, true));
    assert_false(is_safe(between, false));
    assert_false(is_safe(between, true));
}

static void test_linker(void **state) {
    (void)state;
    const struct safe_point_frame loading[] = {LINKER, LINKER, LIBC("dlopen"), PROGRAM};
    const struct safe_point_frame walking[] = {PROGRAM, LIBC("dl_iterate_phdr"), PROGRAM};
    const struct safe_point_frame binding[] = {LINKER, PROGRAM, PROGRAM};
    assert_true(judge(loading, COUNT(loading), false).is_in_linker);
    assert_true(judge(walking, COUNT(walking), false).is_in_linker);
    assert_true(judge(binding, COUNT(binding), false).is_in_linker);
    assert_false(is_safe(loading, false));
    assert_false(is_safe(walking, false));
    assert_false(is_safe(binding, false));
}

static void test_not_followed(void **state) {
    (void)state;
    const struct safe_point_frame frames[] = {PROGRAM, PROGRAM};
    struct safe_point_stack stack = {.frames = frames, .count = COUNT(frames)};
    assert_false(safe_point_judge(&stack).is_safe);
    stack.is_complete = true;
    assert_true(safe_point_judge(&stack).is_safe);
    // no frame at all is no reason to believe anything, if nobody says that it was the whole stack
    stack = (struct safe_point_stack){0};
    assert_false(safe_point_judge(&stack).is_safe);
}

static void test_own_code(void **state) {
    (void)state;
    const struct safe_point_frame frames[] = {
        LIBC("malloc"), {0x2010, FRAME_PROGRAM, NULL}, PROGRAM};
    struct safe_point_stack stack = {.frames = frames,
                                     .count = COUNT(frames),
                                     .is_complete = true,
                                     .code_start = 0x2000,
                                     .code_end = 0x2010};
    assert_false(safe_point_judge(&stack).is_in_range);
    stack.code_end = 0x2011;
    assert_true(safe_point_judge(&stack).is_in_range);
}

static void test_making_thread(void **state) {
    (void)state;
    const struct safe_point_frame making[] = {LIBC("mmap"), LIBC("pthread_create"),    PROGRAM,
                                              LIBC(NULL),   LIBC("__libc_start_main"), PROGRAM};
    const struct safe_point_frame interrupted[] = {PROGRAM, PROGRAM,    LIBC("pthread_create"),
                                                   PROGRAM, LIBC(NULL), LIBC(NULL)};
    const struct safe_point_frame joining[] = {LIBC("pthread_join"), PROGRAM, LIBC(NULL),
                                               LIBC(NULL)};
    assert_true(judge(making, COUNT(making), true).is_making_thread);
    assert_true(judge(interrupted, COUNT(interrupted), false).is_making_thread);
    assert_false(judge(joining, COUNT(joining), true).is_making_thread);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_and_waiting),
        cmocka_unit_test(test_allocator),
        cmocka_unit_test(test_making_thread),
        cmocka_unit_test(test_nameless),
        cmocka_unit_test(test_linker),
        cmocka_unit_test(test_not_followed),
        cmocka_unit_test(test_own_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
