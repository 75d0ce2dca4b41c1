// SPDX-License-Identifier: Apache-2.0
// Calls every wrapped function with a marked errno and prints what errno is afterwards, for the
// first call of a function in a thread, from new code, and for the thousandth.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARK 4242
#define ROUNDS 1000

static char text[8192];
static size_t used;

static void note(const char *name, int number) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s %d\n", name, number);
}

#define TRY(name, ...)                                                                             \
    do {                                                                                           \
        errno = MARK;                                                                              \
        __VA_ARGS__;                                                                               \
        int after = errno;                                                                         \
        if (is_noted) note(name, after);                                                           \
        if (!is_noted && after != MARK && after != ENOMEM && after != EINVAL) note(name, after);   \
    } while (0)

static void try_blocks(int is_noted) {
    void *volatile block = NULL;
    void *out = NULL;
    volatile size_t huge = SIZE_MAX / 2;
    TRY("malloc", block = malloc(100));
    TRY("realloc", block = realloc(block, 5000));
    TRY("realloc down", block = realloc(block, 50));
    TRY("free", free(block));
    TRY("free NULL", free(NULL));
    TRY("calloc", block = calloc(10, 30));
    TRY("reallocarray", block = reallocarray(block, 20, 30));
    free(block);
    TRY("posix_memalign", posix_memalign(&out, 64, 300));
    free(out);
    TRY("aligned_alloc", block = aligned_alloc(64, 640));
    free(block);
    TRY("memalign", block = memalign(128, 77));
    free(block);
    TRY("valloc", block = valloc(33));
    free(block);
    TRY("pvalloc", block = pvalloc(33));
    free(block);
    TRY("large malloc", block = malloc(1 << 22));
    TRY("large free", free(block));
    TRY("malloc fails", block = malloc(huge));
    TRY("calloc fails", block = calloc(huge, 8));
    TRY("posix_memalign fails", posix_memalign(&out, 3, 8));
}

static void try_others(int is_noted) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    TRY("setrlimit", setrlimit(RLIMIT_NOFILE, &limit));
    TRY("prlimit", prlimit(0, RLIMIT_NOFILE, NULL, &limit));
    TRY("prctl", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    TRY("prctl fails", prctl(-1, 0, 0, 0, 0));
    TRY("syscall", syscall(SYS_getpid));
    TRY("syscall fails", syscall(100000L));
    TRY("execv fails", execv("/there/is/none", (char *[]){(char *)"none", NULL}));
    TRY("execl fails", execl("/there/is/none", "none", (char *)NULL));
    TRY("execlp fails", execlp("there-is-none", "none", (char *)NULL));
    void *library = dlopen("libm.so.6", RTLD_NOW);
    TRY("dlclose", dlclose(library));
}

static void *body(void *unused) {
    try_blocks(1);
    for (int i = 0; i < ROUNDS; i++) try_blocks(0);
    return unused;
}

int main(void) {
    pthread_t thread;
    body(NULL);
    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
    try_others(1);
    return write(STDOUT_FILENO, text, used) != (ssize_t)used;
}
