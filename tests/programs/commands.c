// SPDX-License-Identifier: Apache-2.0
// Does what the lines of its input say, and answers each with "ok": `early SIZE` and `late SIZE`
// allocate a block, each in a function of its own, `free N` frees the N-th block that it has,
// `again N SIZE` reallocates it, `touch` writes to all blocks, `enter KEY=VALUE` enters a context
// and `leave` leaves it, `end` ends.
#include <cairn/cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4096 };
static struct {
    char *block;
    size_t size;
} held[BLOCKS];
static int count;

static void keep(char *block, size_t size) {
    if (count == BLOCKS || !block) abort();
    held[count].block = block;
    held[count++].size = size;
}

__attribute__((noinline)) static void early(size_t size) {
    keep(malloc(size), size);
}

__attribute__((noinline)) static void late(size_t size) {
    keep(malloc(size), size);
}

__attribute__((noinline)) static void again(int number, size_t size) {
    held[number].block = realloc(held[number].block, size);
    held[number].size = size;
}

static void drop(int number) {
    free(held[number].block);
    held[number] = held[--count];
}

static void touch(void) {
    for (int i = 0; i < count; i++) memset(held[i].block, 1, held[i].size);
}

// In the present context, with a label more.
static void enter(const char *line) {
    char key[64], value[64];
    if (sscanf(line, "%*s %63[^=]=%63[^\n]", key, value) != 2) abort();
    cairn_context_enter(cairn_context_with(cairn_context_current(), key, value));
}

int main(void) {
    static char line[256], word[256], out[256];
    setvbuf(stdout, out, _IOLBF, sizeof out);
    while (fgets(line, sizeof line, stdin)) {
        long first = 0, second = 0;
        if (sscanf(line, "%255s %ld %ld", word, &first, &second) < 1) continue;
        if (!strcmp(word, "early")) early((size_t)first);
        if (!strcmp(word, "late")) late((size_t)first);
        if (!strcmp(word, "free") && first < count) drop((int)first);
        if (!strcmp(word, "again") && first < count) again((int)first, (size_t)second);
        if (!strcmp(word, "touch")) touch();
        if (!strcmp(word, "enter")) enter(line);
        if (!strcmp(word, "leave")) cairn_context_leave();
        if (!strcmp(word, "end")) break;
        puts("ok");
    }
    return 0;
}
