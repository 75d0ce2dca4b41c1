// SPDX-License-Identifier: Apache-2.0
// Walks of real stacks, compared with libgcc's unwinder frame by frame: functions of all sorts in
// random order, libc in between, signal handlers, coroutines, threads, generated code.
#include "runtime/unwind/walk.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <cmocka.h>

#include "runtime/sys/object.h"
#include "runtime/unwind/rule.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/trace.h"

enum { CHAINS = 400, DEEP = 2000, STACK_BYTES = 256 << 10, STORM_US = 150, STORM_CALLS = 4000 };

#if defined(__clang__)
#define OPTIMIZED(options)
#else
#define OPTIMIZED(options) __attribute__((optimize(options)))
#endif
#define FUNCTION __attribute__((noinline, noclone))

static struct trace trace;
static uint64_t seed;
static void (*at_the_bottom)(void);
static volatile int sink_value;

static int step(int depth);

static void take_and_check(void) {
    trace_take(&trace);
    if (!trace_is_equal(&trace)) trace_print(&trace);
    assert_true(trace_is_equal(&trace));
}

FUNCTION OPTIMIZED("O0") static int step_plain(int depth) {
    int here = step(depth) + 1;
    return here;
}

FUNCTION OPTIMIZED("O2,omit-frame-pointer") static int step_without_frame_pointer(int depth) {
    return step(depth) + sink_value;
}

// Uses the frame pointer register for something else, if the compiler follows its habits.
FUNCTION OPTIMIZED("O2,omit-frame-pointer") static int step_with_many_registers(int depth) {
    int a = sink_value, b = a + depth, c = b * a, d = c - b, e = d ^ a, f = e + c;
    int result = step(depth);
    return result + a + b + c + d + e + f;
}

FUNCTION OPTIMIZED("O2") static int step_with_alloca(int depth) {
    volatile char *space = alloca(16 + random_below(&seed, 3000));
    space[0] = (char)depth;
    return step(depth) + space[0];
}

FUNCTION OPTIMIZED("O2,omit-frame-pointer") static int step_with_large_frame(int depth) {
    volatile char space[20000];
    space[depth % 20000] = 1;
    return step(depth) + space[depth % 20000];
}

// A realigned stack whose size is not known either: the CFA is an expression.
FUNCTION OPTIMIZED("O2") static int step_realigned(int depth) {
    _Alignas(128) volatile char space[256];
    volatile char *more = alloca(8 + random_below(&seed, 100));
    space[0] = more[0] = (char)depth;
    return step(depth) + space[0] + more[0];
}

static int pending_depth;

static int compare_by_step(const void *a, const void *b) {
    int depth = pending_depth;
    pending_depth = -1;
    if (depth >= 0) sink_value = step(depth);
    return (a > b) - (a < b);
}

FUNCTION static int step_through_bsearch(int depth) {
    static const char items[3];
    pending_depth = depth;
    return bsearch(&items[1], items, 3, 1, compare_by_step) != NULL;
}

FUNCTION static int step_through_qsort(int depth) {
    char items[2] = {1, 0};
    pending_depth = depth;
    qsort(items, 2, 1, compare_by_step);
    return items[0];
}

static int (*const steps[])(int depth) = {
    step_plain,           step_without_frame_pointer, step_with_many_registers,
    step_with_alloca,     step_with_large_frame,      step_realigned,
    step_through_bsearch, step_through_qsort,
};

FUNCTION static int step(int depth) {
    if (depth == 0) {
        at_the_bottom();
        return 1;
    }
    int (*next)(int) = steps[random_below(&seed, sizeof steps / sizeof steps[0])];
    return next(depth - 1) + sink_value;
}

static void run_chains(void) {
    for (int i = 0; i < CHAINS; i++) sink_value = step((int)random_below(&seed, 60));
}

static void test_functions_of_all_sorts(void **state) {
    (void)state;
    at_the_bottom = take_and_check;
    run_chains();
    assert_int_equal(trace_cut(&trace), 0);
}

static FUNCTION int recurse(int depth) {
    if (depth == 0) {
        take_and_check();
        return 0;
    }
    return recurse(depth - 1) + 1;
}

static void test_deep_recursion(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) assert_int_equal(recurse(DEEP), DEEP);
    assert_true(trace.own_count > DEEP);
}

static void test_cut_by_capacity(void **state) {
    (void)state;
    uintptr_t frames[10];
    struct walk_range range = {0, 0};
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    for (uint32_t capacity = 2; capacity < 6; capacity++) {
        frames[capacity] = 77;
        assert_int_equal(walk_stack(&start, &range, frames, capacity).count, capacity);
        assert_int_equal(frames[0], start.pc);
        assert_int_equal(frames[capacity - 1], CAIRN_CUT_DEPTH);
        assert_int_equal(frames[capacity], 77);
    }
}

static void test_new_code_is_reported_once(void **state) {
    (void)state;
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    rule_forget_all();
    assert_true(walk_stack(&start, &trace.range, trace.own, TRACE_MAX).has_new_code);
    assert_false(walk_stack(&start, &trace.range, trace.own, TRACE_MAX).has_new_code);
}

static void on_signal(int number) {
    (void)number;
    take_and_check();
}

static void raise_signal(void) {
    raise(SIGUSR1);
}

static void handler_set(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

static void test_signal_handlers(void **state) {
    (void)state;
    static char stack[STACK_BYTES];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack}, none = {.ss_flags = SS_DISABLE}, old;
    at_the_bottom = raise_signal;
    handler_set(SIGUSR1, on_signal, 0);
    run_chains();
    sigaltstack(&other, &old);
    handler_set(SIGUSR1, on_signal, SA_ONSTACK);
    run_chains();
    sigaltstack(&none, NULL);
    sigaltstack(&old, NULL);
    handler_set(SIGUSR1, SIG_DFL, 0);
}

static struct {
    uint32_t signals, equal, cut, different;
    struct trace trace, first_different;
} storm;

// Interrupted anywhere: in prologues, the PLT, libc. Where code has no unwind information the
// two may part, and the walk says so.
static void on_storm(int number) {
    (void)number;
    storm.signals++;
    trace_take(&storm.trace);
    if (trace_is_equal(&storm.trace))
        storm.equal++;
    else if (trace_cut(&storm.trace))
        storm.cut++;
    else if (storm.different++ == 0)
        storm.first_different = storm.trace;
}

static void nothing(void) {}

static void test_interrupted_anywhere(void **state) {
    (void)state;
    struct itimerval every = {{0, STORM_US}, {0, STORM_US}}, never = {{0, 0}, {0, 0}};
    at_the_bottom = nothing;
    handler_set(SIGALRM, on_storm, SA_RESTART);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < STORM_CALLS; i++) sink_value = step((int)random_below(&seed, 40));
    setitimer(ITIMER_REAL, &never, NULL);
    handler_set(SIGALRM, SIG_DFL, 0);
    print_message("%u interruptions: %u equal, %u cut, %u different\n", storm.signals, storm.equal,
                  storm.cut, storm.different);
    if (storm.different) trace_print(&storm.first_different);
    assert_int_equal(storm.different, 0);
    assert_true(storm.equal > storm.signals * 9 / 10);
}

static ucontext_t main_context, coroutines[3];

static void coroutine_body(void) {
    for (;;) {
        sink_value = step((int)random_below(&seed, 20));
        swapcontext(&coroutines[0], &main_context);
    }
}

static void coroutine_body_1(void) {
    for (;;) {
        sink_value = step((int)random_below(&seed, 20));
        swapcontext(&coroutines[1], &main_context);
    }
}

static void coroutine_start(int index, void (*body)(void), char *stack) {
    getcontext(&coroutines[index]);
    coroutines[index].uc_stack.ss_sp = stack;
    coroutines[index].uc_stack.ss_size = STACK_BYTES * 4;
    coroutines[index].uc_link = &main_context;
    makecontext(&coroutines[index], body, 0);
}

static void test_coroutines(void **state) {
    (void)state;
    char *stacks =
        mmap(NULL, 8 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at_the_bottom = take_and_check;
    coroutine_start(0, coroutine_body, stacks);
    coroutine_start(1, coroutine_body_1, stacks + 4 * STACK_BYTES);
    for (int i = 0; i < 200; i++) {
        swapcontext(&main_context, &coroutines[random_below(&seed, 2)]);
        take_and_check();
    }
    munmap(stacks, 8 * STACK_BYTES);
}

static void *thread_body(void *argument) {
    (void)argument;
    for (int i = 0; i < 20; i++) sink_value = step((int)random_below(&seed, 30));
    return NULL;
}

// One range serves one thread after another, each with another stack.
static void test_threads(void **state) {
    (void)state;
    at_the_bottom = take_and_check;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, thread_body, NULL), 0);
        pthread_join(thread, NULL);
    }
}

static void take(void) {
    trace_take(&trace);
}

// Makes generated code and calls it; the trace is taken by what it calls.
static void run_generated(const uint8_t *code, size_t bytes) {
    uint8_t *page = mmap(NULL, SYS_PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*function)(void (*)(void));
    memcpy(page, code, bytes);
    memcpy(&function, &page, sizeof page);
    function(take);
    assert_true(trace.own[1] > (uintptr_t)page && trace.own[1] < (uintptr_t)page + bytes);
    munmap(page, SYS_PAGE_BYTES);
}

FUNCTION static uint32_t depth_here(void) {
    trace_take(&trace);
    return trace.own_count;
}

#if defined(__x86_64__)
// push rbp; mov rbp, rsp; call rdi; pop rbp; ret
static const uint8_t with_frame_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
// sub rsp, 8; call rdi; add rsp, 8; ret
static const uint8_t without[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
// push rbp; xor ebp, ebp; call rdi; pop rbp; ret
static const uint8_t with_null[] = {0x55, 0x31, 0xed, 0xff, 0xd7, 0x5d, 0xc3};

static void test_generated_code(void **state) {
    (void)state;
    uint32_t depth = depth_here();
    run_generated(with_frame_pointer, sizeof with_frame_pointer);
    assert_int_equal(trace_cut(&trace), CAIRN_CUT_GUESSED);
    assert_int_equal(trace.own_count, depth + 3);  // take, the code, run_generated and the mark
    run_generated(without, sizeof without);
    assert_int_equal(trace_cut(&trace), CAIRN_CUT_GUESSED);
    run_generated(with_null, sizeof with_null);
    assert_int_equal(trace_cut(&trace), CAIRN_CUT_NO_CFI);
    assert_int_equal(trace.own_count, 3);
}
#else
static void test_generated_code(void **state) {
    (void)state;
    skip();
}
#endif

static int setup(void **state) {
    (void)state;
    object_init();
    seed = 1;
    return rule_init() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_all_sorts),
        cmocka_unit_test(test_deep_recursion),
        cmocka_unit_test(test_cut_by_capacity),
        cmocka_unit_test(test_new_code_is_reported_once),
        cmocka_unit_test(test_signal_handlers),
        cmocka_unit_test(test_interrupted_anywhere),
        cmocka_unit_test(test_coroutines),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_generated_code),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
