// SPDX-License-Identifier: Apache-2.0
// `waiting THREADS`: so many threads that do nothing, and the first, which sleeps by libc's
// function syscall again and again: while it is recorded it is nearly always in a hook. SIGTERM
// ends it.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10 };

static volatile sig_atomic_t is_ending;

static void end(int number) {
    (void)number;
    is_ending = 1;
}

static void *wait_for_nothing(void *unused) {
    (void)unused;
    for (;;) pause();
    return NULL;
}

static void nap(void) {
    const struct timespec nap = {.tv_nsec = 20000000};
    nanosleep(&nap, NULL);
}

static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && !is_ending) continue;
}

int main(int count, char **words) {
    int threads = count > 1 ? atoi(words[1]) : 1;
    pthread_attr_t small;
    pthread_t thread;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    if (pthread_atfork(nap, NULL, NULL)) return 2;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread, &small, wait_for_nothing, NULL)) return 2;
    signal(SIGTERM, end);
    pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
    puts("ready");
    fflush(stdout);
    while (!is_ending) fork_once();
    puts("sound");
    return 0;
}
