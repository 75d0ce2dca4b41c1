// SPDX-License-Identifier: Apache-2.0
// Writes beside its blocks, each time in another way, as the first argument says; exits with 0.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER_INLINED __attribute__((noinline))

NEVER_INLINED static void spoil(char *block, long offset, char value) {
    ((volatile char *)block)[offset] = value;
}
NEVER_INLINED static char *make(size_t size) {
    return (char *)malloc(size);
}
NEVER_INLINED static void release(char *block) {
    free(block);
}

static void right() {
    char *block = make(24);
    spoil(block, 24, 0);
    release(block);
}
static void left() {
    char *block = make(100);
    spoil(block, -1, 'x');
    release(block);
}
static void fill() {
    char *block = (char *)calloc(3, 7);
    for (int i = 0; i < 27; i++) spoil(block, i, 1);
    release(block);
}
static void under() {
    char *block = make(4000);
    for (int i = -8; i < 8; i++) spoil(block, i, 1);
    release(block);
}
static void grown() {
    char *block = make(128);
    spoil(block, 130, 7);
    block = (char *)realloc(block, 100000);
    block = (char *)realloc(block, 50);
    spoil(block, 50, 7);
    release(block);
}
static void aligned() {
    void *block = nullptr;
    if (posix_memalign(&block, 4096, 100)) exit(1);
    spoil((char *)block, 100, 7);
    release((char *)block);
}
static void object() {
    char *block = new char[33];
    spoil(block, 33, 7);
    delete[] block;
}
static void left_over() {
    static char *block;
    block = make(40);
    spoil(block, 41, 0);
}

static void in_child() {
    char *block = make(60);
    pid_t child = fork();
    if (child == 0) {
        spoil(block, 60, 1);
        release(block);
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    release(block);
}

static void *work(void *number) {
    for (long i = 0; i < 2000; i++) {
        char *block = make((size_t)(i % 700));
        if (i % 500 == (long)number) spoil(block, i % 700, 0);
        release(block);
    }
    return nullptr;
}
static void threads() {
    pthread_t ids[4];
    for (long i = 0; i < 4; i++) pthread_create(&ids[i], nullptr, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(ids[i], nullptr);
}

// All that belongs to a block, and what came before the bands or goes around them.
static void clean() {
    for (size_t size = 0; size < 3000; size += 7) {
        char *block = make(size);
        memset(block, 1, size);
        block = (char *)realloc(block, 2 * size + 1);
        memset(block, 2, malloc_usable_size(block));
        release(block);
        void *other = aligned_alloc(256, size);
        memset(other, 3, size);
        free(other);
    }
    char *line = nullptr, *copy = strdup("a copy");
    size_t room = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (getline(&line, &room, file) > 0) continue;
    fclose(file);
    free(line);
    free(copy);
}

// Damages a block, says so, and waits for a line each time before it allocates again.
static void asked() {
    static char *block;
    char line[16];
    block = make(70);
    spoil(block, 70, 0);
    for (;;) {
        puts("ok");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) return;
        release(make(10));
    }
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)();
    } ways[] = {{"right", right},     {"left", left},           {"fill", fill},
                {"under", under},     {"grown", grown},         {"aligned", aligned},
                {"object", object},   {"left_over", left_over}, {"in_child", in_child},
                {"threads", threads}, {"clean", clean},         {"asked", asked}};
    for (const auto &way : ways)
        if (count > 1 && !strcmp(words[1], way.name)) {
            way.run();
            return 0;
        }
    return 2;
}
