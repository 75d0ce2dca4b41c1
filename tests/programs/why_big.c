// SPDX-License-Identifier: Apache-2.0
// Twins that are large for one reason each: blocks that are used; those, nearly all of them freed
// again; memory that is mapped, or mapped and not writable any more; blocks that were never
// written; blocks with equal contents; blocks that nothing refers to. Prints mallinfo2's bytes in
// use and free, and waits for its input to end.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COUNT = 40000, BYTES = 1000, KEPT = 20, LARGE = 40 << 20 };

#define RESERVED ((size_t)16 << 30)
#define RESERVED_BLOCK ((size_t)2 << 30)

static char *table[COUNT];
static char *mapped;

static void fill(char *block, uint32_t number) {
    for (size_t i = 0; i + sizeof number <= BYTES; i += sizeof number) {
        number = number * 1664525u + 1013904223u;
        memcpy(block + i, &number, sizeof number);
    }
}

static void allocate(int is_equal) {
    for (uint32_t i = 0; i < COUNT; i++) {
        table[i] = malloc(BYTES);
        if (!table[i]) exit(1);
        memset(table[i], 1, BYTES);
        fill(table[i], is_equal ? 1 : i);
    }
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "used";
    if (!strcmp(way, "mapped") || !strcmp(way, "closed")) {
        mapped = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(mapped, 1, LARGE);
        if (!strcmp(way, "closed") && mprotect(mapped, LARGE, PROT_READ) != 0) return 1;
    } else if (!strcmp(way, "reserved")) {
        mapped = mmap(NULL, RESERVED, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        table[0] = malloc(RESERVED_BLOCK);
        if (mapped == MAP_FAILED || !table[0]) return 1;
        memset(mapped + RESERVED / 2, 1, BYTES);
        memset(table[0] + RESERVED_BLOCK / 2, 1, BYTES);
    } else if (!strcmp(way, "untouched")) {
        table[0] = malloc(LARGE);
        if (!table[0]) return 1;
        memset(table[0], 1, BYTES);
    } else {
        allocate(!strcmp(way, "equal"));
    }
    for (size_t i = 0; !strcmp(way, "freed") && i < COUNT; i++) {
        if (i % KEPT == 0) continue;
        free(table[i]);
        table[i] = NULL;
    }
    for (size_t i = 0; !strcmp(way, "leaked") && i < COUNT; i++)
        if (i % KEPT) table[i] = NULL;
    struct mallinfo2 info = mallinfo2();
    printf("%zu %zu\n", info.uordblks + info.hblkhd, info.fordblks);
    fflush(stdout);
    return getchar() != EOF;
}
