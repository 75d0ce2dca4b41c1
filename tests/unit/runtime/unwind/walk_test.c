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
#include <ucontext.h>

#include <cmocka.h>

#include "runtime/sys/object.h"
#include "runtime/unwind/unwind_cache.h"
#include "tests/programs/interruptions.h"
#include "tests/unit/runtime/random.h"
#include "tests/unit/runtime/unwind/trace.h"

enum { CHAINS = 400, DEEP = 2000, STACK_BYTES = 256 << 10, STORM_US = 100, STORM_CALLS = 100000 };
enum { STORM_SIGNALS_MIN = 500, STORM_SIGNALS_MAX = 20000 };

#if defined(__clang__)
#define OPTIMIZED(options)
#define FUNCTION __attribute__((noinline))
#else
#define OPTIMIZED(options) __attribute__((optimize(options)))
#define FUNCTION __attribute__((noinline, noclone))
#endif

static struct trace trace;
static uint64_t seed;
static void (*at_the_bottom)(void);
static volatile unsigned sink_value;

static unsigned step(int depth);

// Where stacks are expected to end in.
static uintptr_t expected_cut;

static void take_and_check(void) {
    trace_take(&trace);
    bool is_right = trace_is_as_libgcc(&trace) && trace_is_as_full(&trace);
    if (!is_right || trace_cut(&trace) != expected_cut) trace_print(&trace);
    assert_true(trace_is_as_libgcc(&trace));
    assert_true(trace_is_as_full(&trace));
    assert_int_equal(trace_cut(&trace), expected_cut);
}

FUNCTION OPTIMIZED("O0") static unsigned step_plain(int depth) {
    unsigned here = step(depth) + 1;
    return here;
}

FUNCTION OPTIMIZED("O2,omit-frame-pointer") static unsigned step_without_frame_pointer(int depth) {
    return step(depth) + sink_value;
}

// Uses the frame pointer register for something else, if the compiler follows its habits.
FUNCTION OPTIMIZED("O2,omit-frame-pointer") static unsigned step_with_many_registers(int depth) {
    unsigned a = sink_value, b = a + (unsigned)depth, c = b * a, d = c - b, e = d ^ a, f = e + c;
    unsigned result = step(depth);
    return result + a + b + c + d + e + f;
}

FUNCTION OPTIMIZED("O2") static unsigned step_with_alloca(int depth) {
    volatile char *space = alloca(16 + random_below(&seed, 3000));
    space[0] = (char)depth;
    return step(depth) + (unsigned char)space[0];
}

FUNCTION OPTIMIZED("O2,omit-frame-pointer") static unsigned step_with_large_frame(int depth) {
    volatile char space[20000];
    space[depth % 20000] = 1;
    return step(depth) + (unsigned char)space[depth % 20000];
}

// A realigned stack whose size is not known either: the CFA is an expression.
FUNCTION OPTIMIZED("O2") static unsigned step_realigned(int depth) {
    _Alignas(128) volatile char space[256];
    volatile char *more = alloca(8 + random_below(&seed, 100));
    space[0] = more[0] = (char)depth;
    return step(depth) + (unsigned char)space[0] + (unsigned char)more[0];
}

static int pending_depth;

static int compare_by_step(const void *a, const void *b) {
    int depth = pending_depth;
    pending_depth = -1;
    if (depth >= 0) sink_value = step(depth);
    return (a > b) - (a < b);
}

FUNCTION static unsigned step_through_bsearch(int depth) {
    static const char items[3];
    pending_depth = depth;
    return bsearch(&items[1], items, 3, 1, compare_by_step) != NULL;
}

FUNCTION static unsigned step_through_qsort(int depth) {
    char items[2] = {1, 0};
    pending_depth = depth;
    qsort(items, 2, 1, compare_by_step);
    return (unsigned char)items[0];
}

static unsigned (*const steps[])(int depth) = {
    step_plain,           step_without_frame_pointer, step_with_many_registers,
    step_with_alloca,     step_with_large_frame,      step_realigned,
    step_through_bsearch, step_through_qsort,
};

FUNCTION static unsigned step(int depth) {
    if (depth == 0) {
        at_the_bottom();
        return 1;
    }
    unsigned (*next)(int) = steps[random_below(&seed, sizeof steps / sizeof steps[0])];
    return next(depth - 1) + sink_value;
}

static void run_chains(void) {
    for (int i = 0; i < CHAINS; i++) sink_value = step((int)random_below(&seed, 60));
}

static void test_functions_of_all_sorts(void **state) {
    (void)state;
    at_the_bottom = take_and_check;
    run_chains();
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
    assert_true(trace_count(&trace) > DEEP);
}

static void test_cut_by_the_limit(void **state) {
    (void)state;
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    for (uint32_t limit = 3; limit < 6; limit++) {
        struct walk_trace shallow;
        assert_true(walk_trace_init(&shallow, limit));
        for (int i = 0; i < 3; i++) {
            walk_stack(&shallow, &start);
            assert_int_equal(shallow.count, limit);
            assert_int_equal(shallow.frames[0].pc, CAIRN_CUT_DEPTH);
            assert_int_equal(shallow.frames[limit - 1].pc, start.pc);
        }
    }
}

static void test_new_code_is_reported_once(void **state) {
    (void)state;
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    rule_forget_all();
    assert_true(walk_stack(&trace.memory, &start).has_new_code);
    assert_false(walk_stack(&trace.memory, &start).has_new_code);
    walk_trace_reset(&trace.memory);
    assert_false(walk_stack(&trace.memory, &start).has_new_code);
}

// Also where it has taken the place of code that the stack before had: here, of code without unwind
// information, which no step of the old trace can be compared with.
static void test_new_code_in_an_old_trace(void **state) {
    (void)state;
    static const char elsewhere[64];
    uintptr_t *frame = __builtin_frame_address(0);
    struct walk_start start = {frame[1], (uintptr_t)(frame + 2), frame};
    walk_stack(&trace.memory, &start);
    start.pc = (uintptr_t)&elsewhere[1];
    assert_true(walk_stack(&trace.memory, &start).has_new_code);
    assert_false(walk_stack(&trace.memory, &start).has_new_code);
    walk_trace_reset(&trace.memory);
}

static void (*at_a_signal)(void);

static void on_signal(int number) {
    (void)number;
    at_a_signal();
}

static void raise_signal(void) {
    raise(SIGUSR1);
}

static void handler_set(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

static void signal_handlers_at(void (*check)(void)) {
    at_a_signal = check;
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

static void test_signal_handlers(void **state) {
    (void)state;
    signal_handlers_at(take_and_check);
}

static struct {
    uint32_t signals, equal, cut, different, wrong_memory;
    struct trace trace;
} storm;

// Interrupted anywhere: in prologues, the PLT, libc. Where code has no unwind information the
// two may part, and the walk says so.
static void on_storm(int number) {
    (void)number;
    storm.signals++;
    trace_take(&storm.trace);
    if (!trace_is_as_full(&storm.trace) && storm.wrong_memory++ == 0) trace_print(&storm.trace);
    if (trace_is_as_libgcc(&storm.trace))
        storm.equal++;
    else if (trace_cut(&storm.trace))
        storm.cut++;
    else if (storm.different++ == 0)
        trace_print(&storm.trace);
    interrupt_again();
}

static void nothing(void) {}

static void test_interrupted_anywhere(void **state) {
    (void)state;
    at_the_bottom = nothing;
    trace_init(&storm.trace);
    handler_set(SIGALRM, on_storm, SA_RESTART);
    interruptions_begin(STORM_US, STORM_SIGNALS_MAX);
    for (int i = 0; i < STORM_CALLS || storm.signals < STORM_SIGNALS_MIN; i++)
        sink_value = step((int)random_below(&seed, 40));
    interruptions_end();
    handler_set(SIGALRM, SIG_DFL, 0);
    print_message("%u interruptions: %u equal, %u cut, %u different\n", storm.signals, storm.equal,
                  storm.cut, storm.different);
    assert_int_equal(storm.wrong_memory, 0);
    assert_int_equal(storm.different, 0);
    assert_true(storm.equal > storm.signals * 9 / 10);
}

enum { COROUTINES = 3, SWITCHES = 300, COROUTINE_BYTES = 1 << 20 };

static ucontext_t main_context, coroutines[COROUTINES];

static void coroutine_body(int self) {
    for (;;) {
        sink_value = step((int)random_below(&seed, 20));
        swapcontext(&coroutines[self], &main_context);
    }
}

static void coroutine_start(int index, char *stack) {
    getcontext(&coroutines[index]);
    coroutines[index].uc_stack.ss_sp = stack;
    coroutines[index].uc_stack.ss_size = COROUTINE_BYTES;
    coroutines[index].uc_link = &main_context;
    void (*body)(void);
    void (*body_with_number)(int) = coroutine_body;
    memcpy(&body, &body_with_number, sizeof body);
    makecontext(&coroutines[index], body, 1, index);
}

// A coroutine's outermost frame is the start of a function that nobody called: no unwind
// information covers the byte before it, and libgcc stops there without a word.
static void test_coroutines(void **state) {
    (void)state;
    char *stacks = mmap(NULL, COROUTINES * COROUTINE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at_the_bottom = take_and_check;
    for (int i = 0; i < COROUTINES; i++) coroutine_start(i, stacks + i * COROUTINE_BYTES);
    for (int i = 0; i < SWITCHES; i++) {
        expected_cut = CAIRN_CUT_NO_CFI;
        swapcontext(&main_context, &coroutines[random_below(&seed, COROUTINES)]);
        expected_cut = 0;
        take_and_check();
    }
    munmap(stacks, COROUTINES * COROUTINE_BYTES);
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
    uint8_t *page = mmap(NULL, sys_page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*function)(void (*)(void));
    memcpy(page, code, bytes);
    memcpy(&function, &page, sizeof page);
    function(take);
    assert_true(trace_pc(&trace, 1) > (uintptr_t)page &&
                trace_pc(&trace, 1) < (uintptr_t)page + bytes);
    munmap(page, sys_page_bytes());
}

FUNCTION static uint32_t depth_here(void) {
    trace_take(&trace);
    return trace_count(&trace);
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
    assert_int_equal(trace_count(&trace), depth + 3);  // take, the code, run_generated and the mark
    run_generated(without, sizeof without);
    assert_int_equal(trace_cut(&trace), CAIRN_CUT_GUESSED);
    run_generated(with_null, sizeof with_null);
    assert_int_equal(trace_cut(&trace), CAIRN_CUT_NO_CFI);
    assert_int_equal(trace_count(&trace), 3);
}

// Calls its first argument, with a frame pointer that leads to two words: 0, and the second one. So
// a guess takes that for a return address. There is no unwind information for it.
__asm__(".text\nlead_to: push %rbp\n push %rsi\n push $0\n mov %rsp, %rbp\n call *%rdi\n"
        "add $16, %rsp\n pop %rbp\n ret");
extern void lead_to(void (*callee)(void), const uint8_t *address);

// Instructions, and the addresses behind them.
#define BEHIND(code) code "\n777: .pushsection .data\n.quad 777b\n.popsection\n"
__asm__(
    ".pushsection .data\nbehind_calls:\n.popsection\n"  //
    BEHIND("call lead_to") BEHIND("call *%rax") BEHIND("call *%r12") BEHIND("call *8(%rax)")
        BEHIND("call *4096(%r13)") BEHIND("call *lead_to(%rip)") BEHIND("call *(%rsp)")
            BEHIND("call *8(%r12, %rax, 8)")
                BEHIND("call *0x12345678(, %rax, 8)") ".pushsection .data\n.quad "
                                                      "0\nbehind_others:\n.popsection\n"  //
    BEHIND("jmp *%rax") BEHIND("push $1") BEHIND("mov $0xe8, %al") BEHIND("lcall *(%rax)") BEHIND(
        ".byte 0xe8\n.int 0x7fffffff") ".pushsection .data\n.quad behind_others, 0\n.popsection\n"
                                       ".skip 16, 0x90\n");
extern const uint8_t *const behind_calls[], *const behind_others[];

static void lead_to_each(const uint8_t *const *addresses, uint32_t frames) {
    for (uint32_t i = 0; addresses[i]; i++) {
        lead_to(take, addresses[i]);
        if (trace_count(&trace) != frames) trace_print(&trace);
        assert_int_equal(trace_cut(&trace), CAIRN_CUT_NO_CFI);
        assert_int_equal(trace_count(&trace), frames);
    }
}

static void test_a_guess_leads_behind_a_call(void **state) {
    (void)state;
    for (int again = 0; again < 2; again++) {
        lead_to_each(behind_calls, 4);  // take, lead_to, what is guessed and the mark
        lead_to_each(behind_others, 3);
    }
}

// push rbp; mov ebp, 0x1000; call rdi; pop rbp; ret
static const uint8_t with_other[] = {0x55, 0xbd, 0, 0x10, 0, 0, 0xff, 0xd7, 0x5d, 0xc3};

static uint32_t cut_at;

enum { CODES = 4, CODE_BYTES = 64 };
static struct {
    uint8_t *page;
    void (*generated[CODES])(void (*)(void));
    int depth, cuts[CAIRN_CUT_LIMIT], usable_guesses;
} among;

FUNCTION OPTIMIZED("O1,no-omit-frame-pointer") static void descend_with_frame_pointer(void);
FUNCTION OPTIMIZED("O1,no-omit-frame-pointer") static void descend_to_boundary(void);

// One level further, by code of a kind chosen at random: every stack shares some outer part with
// the one before, and where it parts from it there may or may not be a guess.
FUNCTION OPTIMIZED("O2,omit-frame-pointer") static void descend(void) {
    if (among.depth-- == 0) {
        trace_take(&trace);
        if (!trace_is_as_full(&trace)) trace_print(&trace);
        assert_true(trace_is_as_full(&trace));
        among.cuts[trace_cut(&trace)]++;
        among.usable_guesses +=
            trace_cut(&trace) == CAIRN_CUT_GUESSED && trace.full.usable_count == trace.full.count;
        return;
    }
    unsigned kind = (unsigned)random_below(&seed, 12);
    // what the code leaves in the frame pointer
    const uint32_t left[] = {0, 0x1000, 0x2000};
    memcpy((void *)(among.page + CODE_BYTES * (CODES - 1) + 2), &left[random_below(&seed, 3)], 4);
    if (kind < CODES)
        among.generated[kind](random_below(&seed, 2) ? descend : descend_with_frame_pointer);
    else if (kind < 6)
        descend_to_boundary();
    else if (kind % 2)
        descend();
    else
        descend_with_frame_pointer();
    if (random_below(&seed, 5) == 0) {  // again from here
        among.depth = (int)random_below(&seed, 4);
        descend();
    }
}

static void descend_with_frame_pointer(void) {
    descend();
    __asm__ volatile("" : : : "memory");
}

// So that inner frames lie where others lay before, whatever is further out.
static void descend_to_boundary(void) {
    const uintptr_t boundary = 1024;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    volatile char *room = __builtin_alloca(here % boundary + boundary / 2);
    room[0] = 0;
    descend();
    __asm__ volatile("" : : : "memory");
}

static void test_generated_code_among_other(void **state) {
    (void)state;
    const uint8_t *codes[CODES] = {with_frame_pointer, without, with_null, with_other};
    const size_t sizes[] = {sizeof with_frame_pointer, sizeof without, sizeof with_null,
                            sizeof with_other};
    uint8_t *page = mmap(NULL, sys_page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    among.page = page;
    trace.has_one_range = true;
    for (size_t i = 0; i < CODES; i++) {
        uint8_t *place = page + CODE_BYTES * i;
        memcpy(place, codes[i], sizes[i]);
        memcpy(&among.generated[i], &place, sizeof place);
    }
    for (int i = 0; i < 20000; i++) {
        among.depth = (int)random_below(&seed, 12);
        descend();
    }
    trace.has_one_range = false;
    munmap(page, sys_page_bytes());
    if (cut_at) return;
    assert_true(among.usable_guesses > 100);
    assert_true(among.cuts[0] > 100 && among.cuts[CAIRN_CUT_GUESSED] > 100);
    assert_true(among.cuts[CAIRN_CUT_NO_CFI] > 100);
}
#else
static void test_generated_code(void **state) {
    (void)state;
    skip();
}
static void test_a_guess_leads_behind_a_call(void **state) {
    (void)state;
    skip();
}
static void test_generated_code_among_other(void **state) {
    (void)state;
    skip();
}
#endif

// ---- cut at a number of frames ------------------------------------------------------------------

static uint32_t cut_count, whole_count, kept_count;

// The innermost frames are libgcc's, and the mark is there if that has more.
static bool trace_is_cut_libgcc(const struct trace *of) {
    const bool is_cut = trace_cut(of) == CAIRN_CUT_MAX_DEPTH;
    const uint32_t count = trace_count(of) - (trace_cut(of) != 0);
    uint32_t skipped = 0;
    while (skipped < of->libgcc_count && of->libgcc[skipped] != trace_pc(of, 0)) skipped++;
    const uint32_t there = of->libgcc_count - skipped;
    for (uint32_t i = 0; i < count; i++)
        if (i >= there || trace_pc(of, i) != of->libgcc[skipped + i]) return false;
    return is_cut ? count == cut_at && there > count : there == count;
}

static void take_and_check_cut(void) {
    trace_take(&trace);
    bool is_right = trace_is_cut_libgcc(&trace) && trace_is_as_full(&trace);
    if (!is_right) trace_print(&trace);
    assert_true(trace_is_cut_libgcc(&trace));
    assert_true(trace_is_as_full(&trace));
    if (trace_cut(&trace))
        cut_count++;
    else
        whole_count++;
    if (trace.memory.count == trace.result.keep) kept_count++;
}

// A trace at each level, on the way down and on the way up.
static FUNCTION int recurse_taking(int depth) {
    take_and_check_cut();
    if (depth == 0) return 0;
    int levels = recurse_taking(depth - 1) + 1;
    take_and_check_cut();
    return levels;
}

static void test_cut_at_a_depth(void **state) {
    (void)state;
    const uint32_t depths[] = {1, 2, 3, 8, 20, 64, 100, TRACE_MAX};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        cut_at = depths[i];
        cut_count = whole_count = kept_count = 0;
        walk_limit_depth(cut_at);
        trace_init(&trace);
        at_the_bottom = take_and_check_cut;
        run_chains();
        assert_int_equal(recurse_taking(300), 300);
        assert_true(cut_at >= 300 || (cut_count > 100 && kept_count > 100));
        assert_true(cut_at < 20 || whole_count > 10);
        signal_handlers_at(take_and_check_cut);
        test_generated_code_among_other(NULL);
    }
    walk_limit_depth(0);
    trace_init(&trace);
}

static int setup(void **state) {
    (void)state;
    object_init();
    trace_init(&trace);
    seed = 1;
    return rule_init() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_all_sorts),
        cmocka_unit_test(test_deep_recursion),
        cmocka_unit_test(test_cut_by_the_limit),
        cmocka_unit_test(test_new_code_is_reported_once),
        cmocka_unit_test(test_new_code_in_an_old_trace),
        cmocka_unit_test(test_signal_handlers),
        cmocka_unit_test(test_interrupted_anywhere),
        cmocka_unit_test(test_coroutines),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_generated_code),
        cmocka_unit_test(test_a_guess_leads_behind_a_call),
        cmocka_unit_test(test_generated_code_among_other),
        cmocka_unit_test(test_cut_at_a_depth),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
