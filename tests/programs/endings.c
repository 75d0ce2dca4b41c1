// SPDX-License-Identifier: Apache-2.0
// Leaks 100 blocks of 1,000 bytes (one at a time, in leak_here) and ends the way its argument says:
// return N, exit N, _exit N, quick_exit N, abort, signal N (to itself), trap, closed (all
// descriptors closed before, then more allocations), thread (the last thread ends by pthread_exit
// after main).
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile sink;

__attribute__((noinline)) static void leak_here(void) {
    for (int i = 0; i < 100; i++) sink = malloc(1000);
}

static void close_everything(void) {
    for (int i = 0; i < 4096; i++) close(i);
    free(malloc(1 << 20));
    // The descriptors that come now have the numbers of those that were closed.
    FILE *file = fopen("written-after-close", "w");
    if (!file) _exit(8);
    fputs("only this\n", file);
    fclose(file);
}

static void *last_thread(void *argument) {
    usleep(20000);
    sink = malloc(3000);
    return argument;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "return";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    leak_here();
    if (!strcmp(how, "exit")) exit(number);
    if (!strcmp(how, "_exit")) _exit(number);
    if (!strcmp(how, "quick_exit")) quick_exit(number);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "signal")) raise(number);
    if (!strcmp(how, "trap")) __builtin_trap();
    if (!strcmp(how, "closed")) close_everything();
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, last_thread, NULL);
        pthread_exit(NULL);
    }
    return number;
}
