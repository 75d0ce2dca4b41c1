// SPDX-License-Identifier: Apache-2.0
// Two threads whose blocks are kept by thread-local data of a library that is loaded while it runs:
// libkeeper.c, the argument. Says "ready" and waits.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLD_BYTES = 1 << 14 };

static void (*fill)(void);
static pthread_barrier_t both;

// What calls left on the stack.
__attribute__((noinline)) static void forget(void) {
    volatile char old[OLD_BYTES];
    memset((void *)old, 0, sizeof old);
}

static void *work(void *unused) {
    fill();
    forget();
    pthread_barrier_wait(&both);
    pause();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    char byte;
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library) fill = (void (*)(void))dlsym(library, "keeper_fill");
    if (!fill || pthread_barrier_init(&both, NULL, 2)) return 1;
    if (pthread_create(&thread, NULL, work, NULL)) return 1;
    fill();
    forget();
    pthread_barrier_wait(&both);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
    }
    return 3;
}
