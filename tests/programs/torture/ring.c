// SPDX-License-Identifier: Apache-2.0
// The last readings in a ring. Planted: without room its size is 0, and a shift by -1 comes of it.
// Built with UBSan.
#include <stdio.h>
#include <stdlib.h>

struct ring {
    int *values;
    int bits;
    unsigned next;
};

static void make_ring(struct ring *ring, int bits) {
    ring->values = calloc((size_t)1 << bits, sizeof *ring->values);
    ring->bits = ring->values ? bits : -1;
}

static void add(struct ring *ring, int value) {
#ifdef RIGHT
    if (!ring->values) return;
#endif
    unsigned size = 1u << ring->bits;
    if (ring->values) ring->values[ring->next++ % size] = value;
}

int main(void) {
    struct ring ring = {0};
    make_ring(&ring, 4);
    for (int i = 0; i < 100; i++) add(&ring, i);
    if (!ring.values) {
        fputs("no memory for readings\n", stderr);
        return 1;
    }
    printf("the last is %d\n", ring.values[(ring.next - 1) % 16]);
    free(ring.values);
    return 0;
}
