// SPDX-License-Identifier: Apache-2.0
// A library that programs load and unload (lost_kinds.cc): it has variables of its own and of each
// thread, and can lose blocks.
#include <stdlib.h>

void *lost_variable;
__thread void *lost_of_thread;
__thread void *lost_table[8];

void **lost_place(int which);
void **lost_place(int which) {
    return which == 0 ? &lost_variable : which == 1 ? &lost_of_thread : &lost_table[which - 2];
}

// As an extension of sqlite3: it loses a list, a ring, and a table of texts.
int lost_extension(void);
int lost_extension(void) {
    enum { COUNT = 9, TABLE_BYTES = 136 };
    void *volatile *last = NULL;
    void *volatile *ring = calloc(1, TABLE_BYTES), *volatile *table = calloc(1, TABLE_BYTES);
    for (int i = 0; i < COUNT; i++) {
        void *volatile *link = calloc(1, 2 * sizeof *link);
        *link = (void *)last;
        last = link;
        table[i] = calloc(1, TABLE_BYTES);
    }
    ring[0] = calloc(1, TABLE_BYTES);
    *(void *volatile *)ring[0] = (void *)ring;
    return 0;
}
