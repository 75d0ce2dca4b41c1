// SPDX-License-Identifier: Apache-2.0
// Nodes that live for a request; those of its twin live for a hundred of them.
//
// claim: short_lived
// flags: -O2
// flags: -O0 -DTHREADS=8
// saves: calls totals.allocations
#include "ledger.h"

enum { REQUESTS = 4000, NODES = 20, KEPT = 100 };

struct list {
    char *nodes[NODES];
};

APART static char *make_node(void) {
    return malloc(40);
}

static void *work(void *unused) {
    struct list *lists = calloc(KEPT, sizeof *lists);
    (void)unused;
    for (int i = 0; i < REQUESTS / THREADS; i++) {
        struct list *list = &lists[i % KEPT];
        for (int j = 0; !MENDED && j < NODES; j++) free(list->nodes[j]), list->nodes[j] = NULL;
        for (int j = 0; j < NODES; j++)
            if (!list->nodes[j]) list->nodes[j] = make_node();
        for (int j = 0; HOLDS && !MENDED && j < NODES; j++)
            free(list->nodes[j]), list->nodes[j] = NULL;
    }
    free(lists);
    return NULL;
}

int main(void) {
    const double blocks = (double)REQUESTS * NODES;
    in_threads(work);
    ledger("blocks", blocks * 0.9, blocks * 1.1);
    return 0;
}
