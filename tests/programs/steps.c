// SPDX-License-Identifier: Apache-2.0
// A signal handler in front of every single instruction of an event: the processor's trap flag
// makes it run after each one. To be run with an allocator that can be interrupted anywhere
// (tests/tools/interruptible_preload.c).
//   steps HOW KIND [alternate] [STRIDE]
// HOW return: at the N-th instruction the handler makes a block, frees it, and returns. HOW jump:
// it jumps out instead; then blocks are made at several depths of the stack. For N = 1, 1 + STRIDE,
// ... until the event is over before that. KIND of event: malloc, new (malloc on a stack never
// seen), free, resize (calloc and realloc), thread (the first event of a thread). alternate: the
// handler has a stack of its own. Prints the number of allocations and frees that came to their
// end, of jumps, of blocks made by after_jump, and of allocations among the first. x86-64.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define ALTERNATE_BYTES 65536
#define PATH_BITS 12

static sigjmp_buf back;
static void *volatile held;
static volatile long left, calls, handler_calls, jumped, after;
static volatile long allocations;  // those of `calls` that gave a block
static bool is_jumping, is_alternate;
static int stride = 1;

static void on_trap(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    if (--left) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    free(malloc(64));
    handler_calls += 2;
    allocations++;
    if (is_jumping) siglongjmp(back, 1);
}

static inline void trap_set(void) {
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
}
static inline void trap_clear(void) {
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
}

__attribute__((noinline)) static void event_malloc(void) {
    trap_set();
    held = malloc(100);
    trap_clear();
    allocations++;
    calls++;
}

// A stack that was never there: the bits of `path` choose between two places of a call.
__attribute__((noinline)) static void event_new(unsigned path, int depth) {
    if (!depth)
        event_malloc();
    else if (path & 1)
        event_new(path >> 1, depth - 1);
    else
        event_new(path >> 1, depth - 1);
    __asm__ volatile("");
}

__attribute__((noinline)) static void event_free(void) {
    held = malloc(10);
    allocations++;
    calls++;
    trap_set();
    free(held);
    trap_clear();
    calls++;
}

__attribute__((noinline)) static void event_resize(void) {
    trap_set();
    held = calloc(3, 40);
    allocations++;
    calls++;
    held = realloc(held, 300);
    allocations++;
    calls += 2;
    trap_clear();
}

__attribute__((noinline)) static void event(const char *kind, long round) {
    if (!strcmp(kind, "free"))
        event_free();
    else if (!strcmp(kind, "resize"))
        event_resize();
    else if (!strcmp(kind, "new"))
        event_new((unsigned)round, PATH_BITS);
    else
        event_malloc();
}

// Deeper on the stack than what was cut off, as deep, less deep.
__attribute__((noinline)) static void after_jump(int depth) {
    char room[256];
    __asm__ volatile("" ::"r"(room));
    if (depth) after_jump(depth - 1);
    held = malloc(1000);
    allocations++;
    after++;
    calls++;
}

static void use_alternate_stack(void) {
    static char memory[ALTERNATE_BYTES];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    if (is_alternate) sigaltstack(&stack, NULL);
}

// True if the event was over before the N-th instruction.
__attribute__((noinline)) static bool one_round(const char *kind, long round) {
    left = round;
    if (!sigsetjmp(back, 1))
        event(kind, round);
    else
        jumped++;
    bool is_over = left > 0;
    if (is_jumping) after_jump((int)(round % 3) * 4);
    return is_over;
}

static volatile long round_now = 1;
static volatile bool is_over;

static void *thread_round(void *kind) {
    use_alternate_stack();
    is_over = one_round(kind, round_now);
    return NULL;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    if (argc < 3) return 2;
    is_jumping = !strcmp(argv[1], "jump");
    is_alternate = argc > 3 && !strcmp(argv[3], "alternate");
    if (argc > 4) stride = atoi(argv[4]);
    if (is_alternate) action.sa_flags |= SA_ONSTACK;
    sigaction(SIGTRAP, &action, NULL);
    use_alternate_stack();
    for (; !is_over; round_now += stride) {
        pthread_t thread;
        if (strcmp(argv[2], "thread")) {
            is_over = one_round(argv[2], round_now);
        } else {
            if (pthread_create(&thread, NULL, thread_round, argv[2])) return 1;
            pthread_join(thread, NULL);
        }
    }
    char text[128];
    int length = snprintf(text, sizeof text, "%ld %ld %ld %ld\n", calls + handler_calls, jumped,
                          after, allocations);
    return fwrite(text, 1, (size_t)length, stdout) != (size_t)length;
}
