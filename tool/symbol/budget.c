// SPDX-License-Identifier: Apache-2.0
// Reading takes memory in proportion to the debug information, unpacked: about three times its size
// at worst (indexes, decoded units). So 128 MiB of it at once keep the whole near 400 MiB.
#include "tool/symbol/budget.h"

#include <pthread.h>

#define OPEN_BYTES_MAX ((uint64_t)128 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_smaller = PTHREAD_COND_INITIALIZER;
static uint64_t open_bytes;

// Nothing counts for more than everything, so that a file which lies about its size fits too.
static uint64_t counted(uint64_t bytes) {
    return bytes < OPEN_BYTES_MAX ? bytes : OPEN_BYTES_MAX;
}

void budget_take(uint64_t bytes) {
    bytes = counted(bytes);
    pthread_mutex_lock(&lock);
    while (open_bytes && open_bytes + bytes > OPEN_BYTES_MAX) pthread_cond_wait(&is_smaller, &lock);
    open_bytes += bytes;
    pthread_mutex_unlock(&lock);
}

void budget_give(uint64_t bytes) {
    pthread_mutex_lock(&lock);
    open_bytes -= counted(bytes);
    pthread_cond_broadcast(&is_smaller);
    pthread_mutex_unlock(&lock);
}
