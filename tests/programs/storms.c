// SPDX-License-Identifier: Apache-2.0
// Signal handlers that come in the middle of everything, to be run with an allocator that can be
// interrupted anywhere (tests/tools/interruptible_preload.c).
//   allocate S HZ   for S seconds a handler makes two blocks and frees them, at most HZ times a
//   second jump S HZ       every second time the handler then jumps out, also out of cairn at work
//   count S HZ      the handler only counts: fit for libc's allocator
// Prints how often it was handled and how often it jumped; nothing else allocates.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/programs/interruptions.h"
#include "tests/programs/ledger.h"

#define AFTER_BLOCKS 1000
#define HANDLED_MIN 5  // where the machine is busy, a few signals a second come

static sigjmp_buf back;
static volatile sig_atomic_t is_quiet, is_jumping, is_armed, handled, jumped, wrong_errno;

static void on_timer(int number) {
    (void)number;
    handled++;
    if (!is_quiet) {
        void *block = malloc(64);
        void *other = malloc(128);
        free(block);
        free(other);
    }
    interrupt_again();
    if (is_jumping && is_armed && handled % 2) {
        jumped++;
        siglongjmp(back, 1);
    }
}

__attribute__((noinline)) static void deep(int depth, size_t size) {
    if (depth) {
        deep(depth - 1, size);
        __asm__ volatile("");
        return;
    }
    void *block = ledger_take(size);
    errno = 77;
    ledger_give(block, size);
    if (errno != 77) wrong_errno = 1;
}

static void storm(int seconds) {
    const time_t end = time(NULL) + seconds;
    volatile size_t round = 0;
    sigsetjmp(back, 1);
    is_armed = 1;
    while (time(NULL) < end || handled < HANDLED_MIN)
        for (int i = 0; i < 200; i++, round++) deep((int)(round % 30), round % 700 + 1);
    is_armed = 0;
}

__attribute__((noinline)) static void afterwards(void) {
    for (size_t i = 0; i < AFTER_BLOCKS; i++) ledger_take(1000);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    ledger_open();
    signal(SIGALRM, on_timer);
    is_quiet = !strcmp(argv[1], "count");
    is_jumping = !strcmp(argv[1], "jump");
    const int seconds = atoi(argv[2]), hertz = atoi(argv[3]);
    interruptions_begin(1000000 / hertz, seconds * hertz);
    storm(seconds);
    interruptions_end();
    afterwards();
    char text[128];
    int length = snprintf(text, sizeof text, "errno %s, handled %d, jumped %d\n",
                          wrong_errno ? "lost" : "kept", (int)handled, (int)jumped);
    return write(STDOUT_FILENO, text, (size_t)length) != length;
}
