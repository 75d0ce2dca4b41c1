// SPDX-License-Identifier: Apache-2.0
// A copy of the memory that the allocator manages in a process. For tool/glibc to read: its data in
// libc, its arenas, and of blocks with a mapping of their own the page they begin on. The tables of
// other allocators lie anywhere: then all private memory that is written, with stacks of threads.
//
// Copying is what takes time while the process is stopped. So only pages that are there are copied
// (the others are zero in the process too), and the room is kept from one copy to the next: a first
// one, made while the process runs, shows how much there is and has the pages ready.
#ifndef TOOL_ATTACH_HEAP_COPY_H
#define TOOL_ATTACH_HEAP_COPY_H

#include "tool/heap/image.h"
#include "tool/proc/maps.h"
#include "tool/proc/remote.h"

// What is copied from `start` on; the rest up to `extent_end` belongs to it as well.
struct heap_part {
    uint64_t start, end, extent_end;
};

struct heap_copy {
    uint64_t libc_start, libc_end;  // the module that holds the allocator's own data
    bool is_all;                    // of another allocator: not glibc's alone
    uint64_t own_start, own_end;    // what the library has mapped in the process
    struct core_image image;        // its bytes lie in `room`
    uint8_t *room;
    size_t room_bytes;  // of address space
    struct extents extents;
    ARRAY(struct heap_part) parts;  // that a copy has
    struct remote_runs runs;        // of their pages with memory
};

// Finds what a copy would have, and how many bytes of it there are.
bool heap_copy_measure(struct heap_copy *copy, const struct remote *remote, uint64_t *bytes,
                       struct error *error);

// Copies what there is now. An earlier copy must have been cleared. False, with the reason, if the
// process has ended or there is no memory.
bool heap_copy_take(struct heap_copy *copy, const struct remote *remote, struct error *error);

// Forgets what was copied, and keeps the pages for the next copy.
void heap_copy_clear(struct heap_copy *copy);

void heap_copy_free(struct heap_copy *copy);

#endif
