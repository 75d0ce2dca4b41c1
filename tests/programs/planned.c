// SPDX-License-Identifier: Apache-2.0
// Allocates as the file named by its argument says, line by line: "FUNCTION COUNT SIZE". A test
// commits such files, so that a step in a history is a line that changed. Reads it without malloc.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_MAX = 4096, PLAN_BYTES = 4096 };
static void *kept[KEPT_MAX];
static size_t kept_count;

__attribute__((noinline)) static void keep(int count, size_t size) {
    for (int i = 0; i < count && kept_count < KEPT_MAX; i++) kept[kept_count++] = malloc(size);
}

#define NOINLINE __attribute__((noinline))
// Something behind the call keeps it from becoming a jump, which would leave no frame.
#define DONE __asm__ volatile("" ::: "memory")

NOINLINE static void fill_map(int count, size_t size) {
    keep(count, size);
    DONE;
}
NOINLINE static void load_table(int count, size_t size) {
    keep(count, size);
    DONE;
}
NOINLINE static void leak(int count, size_t size) {
    for (int i = 0; i < count; i++) {
        char *volatile lost = malloc(size);
        (void)lost;
    }
}
NOINLINE static void parse(int count, size_t size) {
    for (int i = 0; i < count; i++) {
        char *volatile text = malloc(size);
        free(text);
    }
}

int main(int argc, char **argv) {
    static char plan[PLAN_BYTES];
    int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || read(file, plan, sizeof plan - 1) < 0) return 1;
    close(file);
    for (char *rest = NULL, *line = strtok_r(plan, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *end = strchr(line, ' ');
        if (!end) return 1;
        *end++ = 0;
        int count = (int)strtol(end, &end, 10);
        size_t size = strtoul(end, NULL, 10);
        if (!strcmp(line, "fill_map")) fill_map(count, size);
        if (!strcmp(line, "load_table")) load_table(count, size);
        if (!strcmp(line, "leak")) leak(count, size);
        if (!strcmp(line, "parse")) parse(count, size);
    }
    while (kept_count) free(kept[--kept_count]);
    return 0;
}
