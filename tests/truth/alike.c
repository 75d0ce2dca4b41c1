// SPDX-License-Identifier: Apache-2.0
// Rows that are allocated one by one; its twin has an array of them.
//
// claim: alike
// flags: -O2
// flags: -O3 -s -DTHREADS=8
// saves: calls totals.allocations
#include "ledger.h"

enum { ROWS = 80000 / THREADS, EARLY = ROWS / 4 };

struct row {
    struct row *next;
    long key, value;
};

// Some are gone before the last ones come.
APART static struct row *load_rows(void) {
    struct row *all = HOLDS ? NULL : malloc((ROWS + EARLY) * sizeof *all), *list = NULL;
    for (int i = 0; i < ROWS + EARLY; i++) {
        struct row *row = HOLDS ? malloc(sizeof *row) : &all[i];
        row->next = list;
        list = row;
        if (i >= EARLY) continue;
        list = NULL;
        if (HOLDS) free(row);
    }
    return list;
}

static void *work(void *unused) {
    (void)unused;
    seen = load_rows();
    return NULL;
}

int main(void) {
    in_threads(work);
    ledger("blocks", (double)(ROWS + EARLY) * THREADS, (double)(ROWS + EARLY) * THREADS);
    ledger("block_bytes", sizeof(struct row), sizeof(struct row));
    return 0;
}
