// SPDX-License-Identifier: Apache-2.0
// A program with modules in other namespaces (dlmopen): elsewhere THREADS. That many threads do
// nothing but allocate and free, half of them in the first namespace that is open.
// It does what it is told on stdin, a line each, N being the number of a namespace, and answers
// with what the libraries of all namespaces have allocated by then: "CALLS BYTES HELD".
//   open | close N                 a new one, with libelsewhere.so; unloads its modules
//   keep N COUNT SIZE | copy N COUNT LENGTH | grow N SIZE | drop N
//   work N THREADS TURNS           by threads that its own libc starts
//   load N COUNT SIZE              a module that it loads itself allocates them
//   end                            "sound" if every block was what it should be
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPACES = 64, THREADS_MAX = 16, TURNS = 1000 };

struct account {
    uint64_t calls, bytes, held;
};

static struct space {
    void *handle;
    void (*keep)(size_t, size_t);
    void (*grow)(size_t);
    void (*copy)(size_t, size_t);
    void (*drop)(void);
    int (*work)(size_t, size_t);
    int (*load)(const char *, size_t, size_t);
    struct account (*account)(void);
} spaces[SPACES];
static size_t space_count;
static struct account closed;
static int is_ending, is_damaged;  // (atomic)

static char directory[4096];

static void find(struct space *space, void *function, const char *name) {
    *(void **)function = dlsym(space->handle, name);
    if (!*(void **)function) exit(4);
}

static void open_space(void) {
    char path[8192];
    struct space *space = &spaces[space_count++];
    snprintf(path, sizeof path, "%s/libelsewhere.so", directory);
    space->handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (!space->handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    find(space, &space->keep, "elsewhere_keep");
    find(space, &space->grow, "elsewhere_grow");
    find(space, &space->copy, "elsewhere_copy");
    find(space, &space->drop, "elsewhere_drop");
    find(space, &space->work, "elsewhere_work");
    find(space, &space->load, "elsewhere_load");
    find(space, &space->account, "elsewhere_account");
}

static void add(struct account *sum, struct account account) {
    sum->calls += account.calls;
    sum->bytes += account.bytes;
    sum->held += account.held;
}

static void close_space(struct space *space) {
    add(&closed, space->account());
    dlclose(space->handle);
    *space = (struct space){.handle = NULL};
}

static void answer(void) {
    struct account sum = closed;
    for (size_t i = 0; i < space_count; i++)
        if (spaces[i].handle) add(&sum, spaces[i].account());
    printf("%llu %llu %llu\n", (unsigned long long)sum.calls, (unsigned long long)sum.bytes,
           (unsigned long long)sum.held);
}

static void obey(const char *line) {
    char word[16], path[8192];
    size_t which = 0, a = 0, b = 0;
    int count = sscanf(line, "%15s %zu %zu %zu", word, &which, &a, &b);
    if (count < 1 || which >= SPACES) return;
    struct space *space = &spaces[which];
    snprintf(path, sizeof path, "%s/libplugin.so", directory);
    if (!strcmp(word, "open")) open_space();
    if (!strcmp(word, "close")) close_space(space);
    if (!strcmp(word, "keep")) space->keep(a, b);
    if (!strcmp(word, "copy")) space->copy(a, b);
    if (!strcmp(word, "grow")) space->grow(a);
    if (!strcmp(word, "drop")) space->drop();
    if (!strcmp(word, "work") && space->work(a, b)) is_damaged = 1;
    if (!strcmp(word, "load") && space->load(path, a, b)) exit(5);
    answer();
}

// In the program's own namespace.
static void work_here(void) {
    uint64_t *blocks[16] = {0};
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        uint64_t **block = &blocks[turn * 7 % 16];
        if (*block && **block != (uint64_t)(uintptr_t)*block) is_damaged = 1;
        free(*block);
        *block = malloc(8 + turn % 300);
        **block = (uint64_t)(uintptr_t)*block;
    }
    for (size_t i = 0; i < 16; i++) free(blocks[i]);
}

static void *churn(void *argument) {
    int is_elsewhere = (int)(intptr_t)argument % 2;
    while (!__atomic_load_n(&is_ending, __ATOMIC_RELAXED))
        if (!is_elsewhere)
            work_here();
        else if (spaces[0].work(2, TURNS))
            __atomic_store_n(&is_damaged, 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS_MAX];
    int thread_count = count > 1 ? atoi(words[1]) : 0;
    const char *slash = strrchr(words[0], '/');
    char line[512];
    static char in[4096], out[4096];  // stdio's own would be allocated
    setvbuf(stdin, in, _IOLBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - words[0]) : 1,
             slash ? words[0] : ".");
    if (thread_count) open_space();
    for (int i = 0; i < thread_count && i < THREADS_MAX; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(intptr_t)i)) return 2;
    puts("ready");
    while (fgets(line, sizeof line, stdin) && strncmp(line, "end", 3) != 0) obey(line);
    __atomic_store_n(&is_ending, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < thread_count && i < THREADS_MAX; i++) pthread_join(threads[i], NULL);
    puts(is_damaged ? "damaged" : "sound");
    return is_damaged;
}
