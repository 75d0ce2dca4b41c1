// SPDX-License-Identifier: Apache-2.0
// Two large buffers that grow in turn, so that one keeps the other from growing where it is; of its
// twin each step is an mremap, by which nothing is copied.
//
// claim: realloc
// flags: -O2
// flags: -O0 -DTHREADS=8
#include <malloc.h>

#include "ledger.h"

enum { KIB = 1024, FIRST = 256 * KIB, STEPS = 9 };

APART static void *grow_texts(void *unused) {
    size_t size = FIRST;
    char *left = NULL, *right = NULL;
    for (int i = 0; i <= STEPS; i++) {
        left = realloc(left, size);
        memset(left, 'x', size);
        right = realloc(right, size);
        memset(right, 'x', size);
        size += size / 4;
    }
    free(left);
    free(right);
    return unused;
}

int main(void) {
    double copied = 0, size = FIRST;
    for (int i = 0; i < STEPS; i++) {
        copied += 2 * size * THREADS;
        size += size / 4;
    }
    mallopt(M_MMAP_THRESHOLD, 128 * KIB);  // it moves no more with what a thread has freed
    if (HOLDS) mallopt(M_MMAP_MAX, 0);
    in_threads(grow_texts);
    ledger("times", STEPS, 2 * STEPS * THREADS);
    ledger("copied_bytes", copied / 4, copied);
    ledger_name("where", "grow_texts");
    return 0;
}
