// SPDX-License-Identifier: Apache-2.0
// Work on a stream of bytes by another thread, while the caller makes more of it: for work that has
// an order (deflater.h is for what has none). The bytes arrive in order, in blocks of any length,
// and never two at a time; what is put as wholes that divide a block arrives as wholes, aligned as
// they are long. A short stream is worked on by the caller, as is any without a thread.
#ifndef TOOL_BASE_BEHIND_H
#define TOOL_BASE_BEHIND_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define BEHIND_BLOCK_BYTES (1u << 18)

struct behind {
    void (*work)(void *context, const void *bytes, size_t size);
    void *context;
    unsigned char *blocks[2];  // one is filled while the other is worked on
    unsigned filled;           // which
    size_t size;               // of what is in it
    size_t total_bytes;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t waiting_bytes;  // of the other block, 0: it is free
    bool is_over;
};

// False without memory.
bool behind_start(struct behind *behind, void (*work)(void *context, const void *, size_t),
                  void *context);
void behind_put(struct behind *behind, const void *bytes, size_t size);
// Returns when everything is done, and frees what behind_start took.
void behind_end(struct behind *behind);

#endif
