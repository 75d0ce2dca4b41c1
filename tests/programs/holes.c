// SPDX-License-Identifier: Apache-2.0
// Has a heap of which much is free between blocks in use, and of whose blocks most was never
// touched; says how much of them is resident ("RESIDENT FREE": bytes of its blocks by mincore, in
// free chunks by mallinfo2) and waits for the end of its input. Then it frees all but the last
// block, which keeps the pages, and ends.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ROWS = 60000,
    ROW_BYTES = 200,
    KEPT_EACH = 40,
    BUFFERS = 900,
    BUFFER_BYTES = 16384,
    TOUCHED_BYTES = 4096,
    PAGES_MOST = 16,
};

static char *rows[ROWS], *buffers[BUFFERS];

static size_t resident_of(const char *block, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t start = (uintptr_t)block, end = start + bytes, first = start / page * page;
    unsigned char pages[PAGES_MOST];
    size_t sum = 0;
    if (mincore((void *)first, end - first, pages)) return 0;  // NOLINT: an address
    for (uintptr_t at = first; at < end; at += page) {
        uintptr_t from = at < start ? start : at, to = at + page < end ? at + page : end;
        if (pages[(at - first) / page] & 1) sum += to - from;
    }
    return sum;
}

int main(void) {
    char line[128], input;
    size_t resident = 0;
    for (int i = 0; i < ROWS; i++) rows[i] = memset(malloc(ROW_BYTES), 1, ROW_BYTES);
    for (int i = 0; i < ROWS; i++) {
        if (i % KEPT_EACH) {
            free(rows[i]);
            rows[i] = NULL;
        } else {
            resident += resident_of(rows[i], ROW_BYTES);
        }
    }
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = malloc(BUFFER_BYTES);
        memset(buffers[i], 1, TOUCHED_BYTES);
    }
    for (int i = 0; i < BUFFERS; i++) resident += resident_of(buffers[i], BUFFER_BYTES);
    struct mallinfo2 info = mallinfo2();
    int length = snprintf(line, sizeof line, "%zu %zu\n", resident, info.fordblks - info.fsmblks);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
    while (read(STDIN_FILENO, &input, 1) > 0) {
    }
    for (int i = 0; i < ROWS; i++) free(rows[i]);
    for (int i = 0; i + 1 < BUFFERS; i++) free(buffers[i]);
    return buffers[BUFFERS - 1][0] != 1;
}
