// SPDX-License-Identifier: Apache-2.0
// A store that fills up to the end and is freed then; its twin is a queue that is filled until four
// fifths of the time, and that another thread empties as it works, a little slower.
//
// claim: growth
// flags: -O1
// flags: -O1 -DTHREADS=8
#include "ledger.h"

enum { ROUNDS = 240, EACH = 24, ITEM_BYTES = 4000 / THREADS, OTHER_BYTES = 6 << 20 };
enum { TAKEN_EACH = 19 };

struct queue {
    char *items[ROUNDS * EACH];
    int count;  // (atomic)
};
static struct queue queues[THREADS];

APART static char *make_item(void) {
    return memset(malloc(ITEM_BYTES), 1, ITEM_BYTES);
}

static void *fill(void *number) {
    struct queue *queue = &queues[(size_t)number];
    for (int i = 0; i < ROUNDS * EACH; i++) {
        queue->items[i] = make_item();
        __atomic_store_n(&queue->count, i + 1, __ATOMIC_RELEASE);
        if (i % EACH == 0) wait_ms(10);
    }
    return NULL;
}

static void *take(void *number) {
    struct queue *queue = &queues[(size_t)number];
    const int all = ROUNDS * EACH;
    for (int i = 0; !HOLDS && i < all; i++) {
        while (i >= __atomic_load_n(&queue->count, __ATOMIC_ACQUIRE)) wait_ms(1);
        free(queue->items[i]);
        if (i % TAKEN_EACH == 0) wait_ms(10);
    }
    return NULL;
}

int main(void) {
    char *other = memset(malloc(OTHER_BYTES), 1, OTHER_BYTES);
    pthread_t takers[THREADS];
    seen = other;
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&takers[i], NULL, take, (void *)i)) abort();
    in_threads(fill);
    for (size_t i = 0; i < THREADS; i++) pthread_join(takers[i], NULL);
    for (size_t i = 0; HOLDS && i < THREADS; i++)
        for (int j = 0; j < ROUNDS * EACH; j++) free(queues[i].items[j]);
    free(other);
    ledger_name("where", "make_item");
    ledger("is_freed", 1, 1);
    return 0;
}
