// SPDX-License-Identifier: Apache-2.0
// Takes the heads of a heap's chunks (tool/glibc/heads.h) out of a process that is stopped: its
// memory is copied piece by piece into one buffer, by several threads, and each piece is walked and
// forgotten. So the tool takes no more memory for large blocks than for small ones. Buffer and room
// for the heads are made ready before the process is stopped, by a rehearsal.
#ifndef TOOL_HEAP_STOPPED_HEADS_H
#define TOOL_HEAP_STOPPED_HEADS_H

#include "tool/base/spans.h"
#include "tool/glibc/heads.h"
#include "tool/heap/plan.h"

struct stopped_segment {
    uint64_t start, end;
    uint8_t *are_resident;  // a byte a page, not 0: it is
    enum piece_kind kind;
};

// The heads, and the memory that they lie in.
struct stopped_heads {
    struct heap_heads heads;
    uint8_t *memory;
    uint64_t memory_bytes;
};

// Zero it, but for what says which pages there are: segments, by /proc/PID/pagemap and as memory.
struct heads_work {
    const struct remote *remote;
    struct stopped_heads *out;
    const struct stopped_segment *pages;
    const struct memory_segment *memory;
    size_t count;  // of either
    uint8_t *buffer;
    uint64_t buffer_bytes;
    uint64_t start, end;    // what is in the buffer
    uint64_t copied_bytes;  // into it
    struct remote_runs runs;
    ARRAY(struct memory_segment) segments;  // in which arenas and chunks are looked for
};

// Makes ready for a heap of so many bytes that are there; `kept_bytes` is what its heads will take.
// False if it has no arenas of glibc's, or without memory: then it is to be copied.
bool stopped_heads_rehearse(struct heads_work *work, uint64_t bytes, uint64_t *kept_bytes);

// Takes the heads; there are no stretches if it could not.
void stopped_heads_take(struct heads_work *work);

// Adds the whole pages that need not be copied, since there are heads of what is in them, or since
// no chunk was ever there. False without memory.
bool stopped_heads_skip(const struct heads_work *work, struct spans *skipped);

void stopped_heads_end(struct heads_work *work);
void stopped_heads_free(struct stopped_heads *heads);

#endif
