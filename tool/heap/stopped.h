// SPDX-License-Identifier: Apache-2.0
// The memory of a running process as it was while all of its threads were stopped for a moment:
// what a reader of cores needs of it, copied, the threads' registers, and which pages were
// resident.
//
//     copied for blocks   data of libraries and what they relocated, what brk moves, the heaps of
//                         threads' arenas, the heads of blocks with mappings of their own, the map
//                         of live blocks
//     of arenas, where it is enough, the heads of chunks alone (stopped_heads.h)
//     only for references the inside of large blocks, stacks, mappings of the program's own, shared
//                         memory without a path: what a core has by default
//     never               code, files, memory that the process cannot read
//
// Keeping a copy from going stale without a stop is not possible from outside; so it is copied, by
// process_vm_readv, into memory that a rehearsal has made ready: everything is searched once before
// anything is stopped.
// Only pages that are there are read, so that nothing changes in the process. The tool is a tracer
// (PTRACE_SEIZE): if it is killed meanwhile, the kernel lets the threads go on.
#ifndef TOOL_HEAP_STOPPED_H
#define TOOL_HEAP_STOPPED_H

#include "format/format.h"
#include "tool/heap/image.h"
#include "tool/heap/plan.h"
#include "tool/heap/stopped_heads.h"
#include "tool/heap/windows.h"

struct stopped_image {
    struct core_image core;                  // with copies in memory; what is not copied reads as 0
    ARRAY(struct stopped_segment) segments;  // those of `core`, in their order
    uint64_t pause_ns;                       // the time for which threads were stopped
    uint64_t copied_bytes;
    size_t thread_count;
    struct heap_windows windows;  // what was drawn where not everything was copied
    uint8_t *memory;              // that the copies lie in
    uint64_t memory_bytes;
    struct stopped_heads heads;  // what is kept of arenas where that is all that is asked for
};

struct stopped_request {
    pid_t pid;
    const struct cairn_header *header;  // of the recording that it writes; NULL: it does not
    enum plan_scope scope;
    uint64_t bytes_max;      // to copy
    const char *way_around;  // how the user asks for more
    bool may_draw;           // where that is too little, a part of the heap is drawn, by `seed`
    uint64_t seed;
};

// False with a clause that says why: the process is refused (tool/proc/examine.h), has ended, has
// more to copy than was asked for (and nothing may be drawn), or more than the memory that is left
// here.
bool stopped_take(const struct stopped_request *request, struct stopped_image *image,
                  struct error *error);
void stopped_free(struct stopped_image *image);

// Returns how many bytes of [start, end) were on resident pages.
uint64_t stopped_resident_bytes(const struct stopped_image *image, uint64_t start, uint64_t end);

#endif
