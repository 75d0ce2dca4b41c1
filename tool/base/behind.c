// SPDX-License-Identifier: Apache-2.0
#include "tool/base/behind.h"

#include <stdlib.h>
#include <string.h>

// A stream up to ALONE_BYTES is too short for a thread to save time.
enum { ALONE_BYTES = 1 << 20, ALIGN_BYTES = 64 };

bool behind_start(struct behind *behind, void (*work)(void *context, const void *, size_t),
                  void *context) {
    *behind = (struct behind){.work = work, .context = context};
    for (int i = 0; i < 2; i++) behind->blocks[i] = aligned_alloc(ALIGN_BYTES, BEHIND_BLOCK_BYTES);
    pthread_mutex_init(&behind->lock, NULL);
    pthread_cond_init(&behind->changed, NULL);
    if (behind->blocks[0] && behind->blocks[1]) return true;
    behind_end(behind);
    return false;
}

static void *run(void *context) {
    struct behind *behind = context;
    pthread_mutex_lock(&behind->lock);
    for (;;) {
        while (!behind->waiting_bytes && !behind->is_over)
            pthread_cond_wait(&behind->changed, &behind->lock);
        if (!behind->waiting_bytes) break;
        const unsigned char *block = behind->blocks[!behind->filled];
        size_t size = behind->waiting_bytes;
        pthread_mutex_unlock(&behind->lock);
        behind->work(behind->context, block, size);
        pthread_mutex_lock(&behind->lock);
        behind->waiting_bytes = 0;
        pthread_cond_signal(&behind->changed);
    }
    pthread_mutex_unlock(&behind->lock);
    return NULL;
}

// Gives away the block that is full, as soon as the other one is free.
static void hand_over(struct behind *behind) {
    bool is_long = behind->total_bytes > ALONE_BYTES;
    if (is_long && !behind->has_thread)
        behind->has_thread = !pthread_create(&behind->thread, NULL, run, behind);
    if (!behind->has_thread) {
        behind->work(behind->context, behind->blocks[behind->filled], behind->size);
        behind->size = 0;
        return;
    }
    pthread_mutex_lock(&behind->lock);
    while (behind->waiting_bytes) pthread_cond_wait(&behind->changed, &behind->lock);
    behind->waiting_bytes = behind->size;
    behind->filled = !behind->filled;
    behind->size = 0;
    pthread_cond_signal(&behind->changed);
    pthread_mutex_unlock(&behind->lock);
}

void behind_put(struct behind *behind, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    behind->total_bytes += size;
    while (size) {
        size_t room = BEHIND_BLOCK_BYTES - behind->size, part = size < room ? size : room;
        memcpy(behind->blocks[behind->filled] + behind->size, from, part);
        behind->size += part;
        from += part;
        size -= part;
        if (behind->size == BEHIND_BLOCK_BYTES) hand_over(behind);
    }
}

void behind_end(struct behind *behind) {
    if (behind->size) hand_over(behind);
    if (behind->has_thread) {
        pthread_mutex_lock(&behind->lock);
        behind->is_over = true;
        pthread_cond_signal(&behind->changed);
        pthread_mutex_unlock(&behind->lock);
        pthread_join(behind->thread, NULL);
    }
    pthread_mutex_destroy(&behind->lock);
    pthread_cond_destroy(&behind->changed);
    for (int i = 0; i < 2; i++) free(behind->blocks[i]);
    *behind = (struct behind){0};
}
