// SPDX-License-Identifier: Apache-2.0
// What the tool tells the driver that performs the calls of an event log (cairn replay), and what
// that tells of them: one file that both map, and that no anonymous memory is needed beside.
//
//     header · threads · calls of each thread · blocks · samples
//
// Each block has a number, which a later block has again. Whose turn it is with a number says in
// which order threads use it: a call waits until the block has had as many turns as it says.
#ifndef CAIRN_REPLAY_H
#define CAIRN_REPLAY_H

#include <stdint.h>

#define CAIRN_REPLAY_MAGIC 0x79616c706572u
#define CAIRN_REPLAY_CLASSES                                                                       \
    8u  // of sizes: up to 16, 64, 256, ... bytes; the last all that are larger
#define CAIRN_REPLAY_CLASS_SHIFT 2u
#define CAIRN_REPLAY_SAMPLES 512u

#define CAIRN_REPLAY_SHARES 126u
#define CAIRN_REPLAY_SHARE_MASK 127u

enum cairn_replay_kind {
    CAIRN_REPLAY_MALLOC = 0,
    CAIRN_REPLAY_CALLOC = 1,
    CAIRN_REPLAY_ALIGNED = 2,
    CAIRN_REPLAY_FREE = 3,
    CAIRN_REPLAY_REALLOC = 4,  // the block keeps its number
    CAIRN_REPLAY_TIME = 5,     // size: milliseconds since the start of the log
    CAIRN_REPLAY_PEAK = 6,     // here the log holds most
    CAIRN_REPLAY_KINDS = 7,
};

struct cairn_replay_call {
    uint32_t block;
    uint32_t turn;
    uint64_t size : 48, kind : 3, alignment_shift : 6;
    uint64_t share : 7;  // of the block that is touched: 1 + so many of CAIRN_REPLAY_SHARES; 0: all
};

struct cairn_replay_thread {
    uint64_t calls_at, call_count;
    uint64_t now_ms;  // (atomic) the driver's: it does nothing earlier any more
    uint64_t done;    // (atomic) calls so far
    int64_t live_bytes;
    uint64_t reserved[3];
};

struct cairn_replay_block {
    uint64_t address, size;
    uint32_t turn;      // (atomic)
    uint32_t sleepers;  // (atomic) threads that wait for it
    uint64_t reserved_word;
};

struct cairn_replay_sample {
    uint64_t calls, ms;
    int64_t live_bytes, resident_bytes;  // resident: anonymous memory beyond the driver's own
};

enum cairn_replay_state {
    CAIRN_REPLAY_NEW = 0,
    CAIRN_REPLAY_RUNNING = 1,
    CAIRN_REPLAY_DONE = 2,
    CAIRN_REPLAY_NO_MEMORY = 3,  // an allocation failed
    CAIRN_REPLAY_NO_THREAD = 4,
};

// Calls of a size class.
struct cairn_replay_times {
    uint64_t calls;
    uint64_t timed, ticks;  // but those in which the thread lost its processor
};

struct cairn_replay {
    uint64_t magic, bytes;
    uint32_t thread_count, block_count;
    uint64_t threads_at, blocks_at, samples_at, call_count;
    uint32_t has_touch;      // each page of a block is written to
    uint32_t is_timed;       // at the speed of the log
    uint32_t freed_percent;  // of the blocks that are left, at last
    uint32_t page_bytes;
    // the driver's
    uint32_t state;  // enum cairn_replay_state
    uint32_t sample_count;
    int64_t own_bytes, end_bytes, end_live_bytes, freed_bytes, freed_live_bytes;
    int64_t peak_bytes, peak_live_bytes;  // of all samples, of the driver's own count
    uint64_t minor_faults, major_faults, wall_ns, processor_ns;
    double ns_per_tick;
    uint64_t ticks_of_nothing;  // that two looks at the clock take
    struct cairn_replay_times given[CAIRN_REPLAY_CLASSES], freed[CAIRN_REPLAY_CLASSES];
};

_Static_assert(sizeof(struct cairn_replay_call) == 16, "layout");
_Static_assert(sizeof(struct cairn_replay_thread) == 64, "layout");
_Static_assert(sizeof(struct cairn_replay_block) == 32, "layout");

#endif
