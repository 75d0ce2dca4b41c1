// SPDX-License-Identifier: Apache-2.0
// What a heap is like at one time, as figures: blocks in use and free by size, arenas, and
// which pages are resident and whose blocks keep them. Read out of a process or its core
// (tool/live).
#ifndef TOOL_MODEL_HEAP_STATE_H
#define TOOL_MODEL_HEAP_STATE_H

#include "tool/model/reader.h"
#include "tool/model/residency.h"

// A block's state, as its allocator has it.
enum heap_kind {
    HEAP_USED,
    HEAP_MAPPED,  // in use, with a mapping of its own
    HEAP_MOVING,  // that a thread within a call may be moving: in use or free
    HEAP_BINNED,  // free, in one of the bins; of another allocator than glibc's: on its page
    HEAP_FAST,    // free, in a fastbin
    HEAP_CACHED,  // free, in a thread's cache
    HEAP_KINDS,
};

struct heap_sum {
    uint64_t count, bytes;
};

// Class i: sizes from 2^i up to 2^(i+1) - 1; of no bytes: class 0.
enum { HEAP_CLASSES = 48 };
struct heap_class {
    struct heap_sum used, free;  // by usable size
    struct heap_sum live;        // of the recording: by the size asked for
};
unsigned heap_class_of(uint64_t bytes);

// Blocks of one size on pages of their own, of another allocator than glibc's.
struct heap_size {
    uint64_t size;
    struct heap_sum used, cached, free, moving;
    uint64_t page_bytes;  // of which more may be left over than the free ones
};

// Returns what of the pages is neither handed out nor in a cache.
static inline uint64_t heap_size_wasted(const struct heap_size *size) {
    const uint64_t taken = size->used.bytes + size->cached.bytes + size->moving.bytes;
    return size->page_bytes > taken ? size->page_bytes - taken : 0;
}

struct heap_arena {
    uint64_t address;
    bool is_main;
    uint64_t bytes;  // that it took from the system
    uint64_t resident_bytes;
    uint64_t used_bytes, free_bytes;  // usable bytes of its chunks
    uint64_t top_bytes;               // of its end, which was never handed out
    uint64_t largest_free_bytes;      // one chunk, or the end
};

enum heap_area_kind {
    HEAP_AREA_MAIN,    // what brk moves
    HEAP_AREA_ARENA,   // heaps of threads' arenas
    HEAP_AREA_BLOCKS,  // blocks with mappings of their own
    HEAP_AREA_OTHER,   // memory of another allocator with live blocks
};

// A part of the heap; areas ascend and lie apart.
struct heap_area {
    uint64_t start, end;
    enum heap_area_kind kind;
    size_t first_page;  // index into residency.pages
};

struct heap_state {
    uint32_t pid;  // 0: not known
    bool is_core;  // else a process, which was stopped for `pause_ns`
    uint64_t pause_ns;
    size_t thread_count;
    uint64_t copied_bytes;
    const char *allocator;  // whose blocks are known, used and free; NULL: of none
    bool is_recorded;       // live blocks are known with their stacks ...
    bool is_sampled;        // ... as a sample: what stacks hold and keep is estimated

    struct heap_class classes[HEAP_CLASSES];
    struct heap_sum kinds[HEAP_KINDS];
    struct heap_sum live;          // recorded blocks
    uint64_t top_bytes;            // ends of arenas
    uint64_t free_bytes;           // chunks, ends and pages without blocks
    uint64_t free_resident_bytes;  // of them on resident pages; of a core: all
    uint64_t largest_free_bytes;
    uint64_t empty_bytes;             // of another allocator than glibc's: pages without blocks ...
    uint64_t empty_resident_bytes;    // ... and what of them is resident; of a core: all
    uint64_t unknown_caches;          // threads that may have caches which were not found
    uint64_t busy_threads;            // of another allocator: that may be within a call
    ARRAY(struct heap_size) sizes;    // of another allocator than glibc's; ascending
    ARRAY(struct heap_arena) arenas;  // the main one first, then by address
    ARRAY(struct heap_area) areas;
    uint64_t broken_count;    // stretches that were left at a chunk that makes no sense
    uint64_t rejected_count;  // slots of the live map that contradict what is around them

    // Owners: of a recorded process its stacks, by their index in the profile, then one for blocks
    // that were not recorded; else classes of sizes for blocks without a type, then types.
    struct residency residency;
    size_t stack_count;
    ARRAY(char *) types;  // names, safe to print; owner HEAP_CLASSES + i
};

void heap_state_free(struct heap_state *state);

// The type that an owner is; NULL: it is none.
const char *heap_state_type(const struct heap_state *state, uint32_t owner);

// Resident memory on which no live block lies.
uint64_t heap_state_empty_bytes(const struct heap_state *state);

// Memory that the heap keeps resident without a live block in it for a good part of the run: what
// fragmentation, or a peak that is over, costs.
//
// Resident memory was noted over time, and so was what was live. What else than the heap is
// resident is known of the pictures of it; the most that it was in any of them is taken away, and
// behind the last one all that cairn has itself at the end.

struct held_free {
    uint64_t at_ns;  // when it was the most
    uint64_t rss_bytes, live_bytes, free_bytes;
};

// False: there is nothing of the kind, or it is not known.
bool held_free_find(const struct recording *recording, struct held_free *held);

#endif
