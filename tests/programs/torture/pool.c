// SPDX-License-Identifier: Apache-2.0
// A pool that hands out cells of larger blocks. Planted: an assertion where an error belongs.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 16 };
struct block {
    struct block *next;
    int used;
    long cells[CELLS];
};
static struct block *blocks;

static long *take_cell(void) {
    if (!blocks || blocks->used == CELLS) {
        struct block *block = calloc(1, sizeof *block);
#ifdef RIGHT
        if (!block) return NULL;
#endif
        assert(block);
        block->next = blocks;
        blocks = block;
    }
    return &blocks->cells[blocks->used++];
}

int main(void) {
    long sum = 0;
    int is_ok = 1;
    for (int i = 0; is_ok && i < 50; i++) {
        long *cell = take_cell();
        is_ok = cell != NULL;
        if (cell) *cell = i;
    }
    while (blocks) {
        struct block *next = blocks->next;
        for (int i = 0; i < blocks->used; i++) sum += blocks->cells[i];
        free(blocks);
        blocks = next;
    }
    if (is_ok) printf("sum %ld\n", sum);
    return !is_ok;
}
