// SPDX-License-Identifier: Apache-2.0
// The dynamic linker's last error is the program's own: prints it at the start, and after calls
// with which the library might ask the linker for something, each behind an open that failed.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static void print_error(const char *what) {
    const char *error = dlerror();
    printf("%s: %s\n", what, error ? error : "none");
    fflush(stdout);
}

static void fail(void) {
    if (dlopen("./no-such-library.so", RTLD_NOW)) abort();
}

static void *allocate(void *unused) {
    free(malloc(100));
    return unused;
}

// Functions that many systems lack. The library has them, so that they are found in it.
typedef void give_back(void *block, size_t first, size_t second);

static void call_late(const char *name, size_t first, size_t second) {
    give_back *late = NULL;
    void *block = aligned_alloc(64, 64);
    *(void **)&late = dlsym(RTLD_DEFAULT, name);
    fail();
    if (late)
        late(block, first, second);
    else
        free(block);
    print_error(name);
}

static void call_thread(void) {
    pthread_t thread;
    fail();
    if (pthread_create(&thread, NULL, allocate, NULL)) abort();
    pthread_join(thread, NULL);
    print_error("thread");
}

static void call_fork(void) {
    fail();
    pid_t child = fork();
    if (!child) {
        allocate(NULL);
        print_error("child");
        _Exit(0);
    }
    if (waitpid(child, NULL, 0) != child) abort();
    print_error("parent");
}

int main(void) {
    print_error("start");
    call_late("cfree", 0, 0);
    call_late("free_sized", 64, 0);
    call_late("free_aligned_sized", 64, 64);
    call_thread();
    call_fork();
    if (!dlopen("libm.so.6", RTLD_NOW)) abort();
    print_error("opened");
    fail();
    dlopen(NULL, RTLD_NOW);
    print_error("opened itself");
    return 0;
}
