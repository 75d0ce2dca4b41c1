// SPDX-License-Identifier: Apache-2.0
// Threads of every kind, each with an account of its own (ledger.h).
//   many N      N short threads, one at a time and in bursts of 100, each under one of four names
//   cancel      threads cancelled at once and at cancellation points while they allocate
//   stacks      threads on stacks of the program's own, of least size, and coroutines on theirs
//   handlers    handlers that allocate on the smallest alternate stacks
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "tests/programs/ledger.h"

#define BURST 100
#define EVENTS_OF_SHORT 3
#define LEAVER 100  // every so many threads one leaves a block
#define OWN_STACK_BYTES 65536
#define GUARD_BYTES 4096

static pthread_key_t key;

static void start(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                  void *argument) {
    if (pthread_create(thread, attributes, body, argument)) abort();
}

static void *short_body(void *argument) {
    size_t number = (size_t)argument;
    char name[16];
    ledger_begin();
    snprintf(name, sizeof name, "short-%zu", number % 4);
    pthread_setname_np(pthread_self(), name);
    for (size_t i = 0; i < EVENTS_OF_SHORT; i++) {
        void *block = ledger_take(number % 500 + i);
        if (i || number % LEAVER) ledger_give(block, number % 500 + i);
    }
    return NULL;
}

// The lines of ended threads are summed up in one, so that there are enough of them.
static void fold_lines(void) {
    struct ledger_line *sum = &ledger_lines[2];
    uint64_t count = ledger_lines->pid;
    for (uint64_t i = 3; i <= count; i++) {
        sum->allocations += ledger_lines[i].allocations;
        sum->allocated_bytes += ledger_lines[i].allocated_bytes;
        sum->frees += ledger_lines[i].frees;
        sum->freed_bytes += ledger_lines[i].freed_bytes;
    }
    ledger_lines->pid = 2;
}

static void run_many(size_t count) {
    pthread_t threads[BURST];
    ledger_lines->pid = 2;
    ledger_lines[2].pid = ledger_lines[1].pid;
    for (size_t done = 0; done < count; done += BURST) {
        bool is_burst = done / BURST % 2;
        for (size_t i = 0; i < BURST; i++) {
            start(&threads[i], NULL, short_body, (void *)(done + i));
            if (!is_burst) pthread_join(threads[i], NULL);
        }
        for (size_t i = 0; is_burst && i < BURST; i++) pthread_join(threads[i], NULL);
        fold_lines();
    }
}

static void give_at_exit(void *block) {
    ledger_give(block, 300);
    ledger_give(ledger_take(33), 33);
    ledger_take(44);
}

static void *cancelled_body(void *is_asynchronous) {
    int old;
    ledger_begin();
    pthread_setspecific(key, ledger_take(300));
    for (int i = 0; i < 100; i++) ledger_give(ledger_take(200), 200);
    // Asynchronous cancellation is not allowed inside malloc: only computation follows.
    if (is_asynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    for (volatile int i = 0; is_asynchronous; i++) {
    }
    for (;;) {
        ledger_give(ledger_take(200), 200);
        pthread_testcancel();
    }
    return NULL;
}

static void run_cancel(void) {
    pthread_key_create(&key, give_at_exit);
    for (size_t i = 0; i < 60; i++) {
        pthread_t thread;
        start(&thread, NULL, cancelled_body, (void *)(i % 2));
        usleep(2000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
}

static void *on_stack_body(void *unused) {
    ledger_begin();
    for (size_t i = 1; i < 200; i++) {
        void *block = ledger_take(i);
        if (i % 2) ledger_give(block, i);
    }
    return unused;
}

static void run_thread_on(void *stack, size_t bytes) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (stack ? pthread_attr_setstack(&attributes, stack, bytes)
              : pthread_attr_setstacksize(&attributes, bytes))
        abort();
    start(&thread, &attributes, on_stack_body, NULL);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

// Memory with an unreadable page below it: an overflow ends the program.
static char *guarded(size_t bytes) {
    char *memory =
        mmap(NULL, bytes + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE)) abort();
    return memory + GUARD_BYTES;
}

static ucontext_t main_context, coroutine;

static void coroutine_body(void) {
    for (size_t i = 1; i < 50; i++) {
        ledger_take(i);
        swapcontext(&coroutine, &main_context);
    }
}

static void run_coroutine(void) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = guarded(OWN_STACK_BYTES);
    coroutine.uc_stack.ss_size = OWN_STACK_BYTES;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, coroutine_body, 0);
    for (size_t i = 1; i < 50; i++) {
        swapcontext(&main_context, &coroutine);
        ledger_give(ledger_take(i), i);
    }
}

static void run_stacks(void) {
    for (int i = 0; i < 20; i++) {
        run_thread_on(guarded(OWN_STACK_BYTES), OWN_STACK_BYTES);
        run_thread_on(guarded(PTHREAD_STACK_MIN), PTHREAD_STACK_MIN);
        run_thread_on(NULL, PTHREAD_STACK_MIN);
    }
    run_coroutine();
}

static void on_signal(int number) {
    (void)number;
    void *block = ledger_take(40);
    ledger_give(ledger_take(50), 50);
    if (block) ledger_give(block, 40);
}

// The thread's very first event can be the handler's, on this stack.
static void *handler_body(void *bytes) {
    stack_t stack = {.ss_sp = guarded((size_t)bytes), .ss_size = (size_t)bytes};
    char *low = (char *)((uintptr_t)stack.ss_sp & ~(uintptr_t)(GUARD_BYTES - 1));
    stack.ss_sp = low;
    ledger_begin();
    if (sigaltstack(&stack, NULL)) abort();
    for (int i = 0; i < 20; i++) raise(SIGUSR1);
    return NULL;
}

static void run_handlers(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    const size_t least = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048;
    sigaction(SIGUSR1, &action, NULL);
    for (size_t bytes = least; bytes <= 4 * least; bytes += 1024) {
        pthread_t thread;
        start(&thread, NULL, handler_body, (void *)(bytes < 8192 ? (size_t)8192 : bytes));
        pthread_join(thread, NULL);
    }
    handler_body((void *)(size_t)8192);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "many";
    ledger_open();
    if (!strcmp(what, "many")) run_many(argc > 2 ? strtoul(argv[2], NULL, 10) : 10000);
    if (!strcmp(what, "cancel")) run_cancel();
    if (!strcmp(what, "stacks")) run_stacks();
    if (!strcmp(what, "handlers")) run_handlers();
    printf("%s done\n", what);
    return 0;
}
