// SPDX-License-Identifier: Apache-2.0
// The few numbers of a process that need no stacks: taken from the header and the threads alone, so
// that the processes of a large run can be listed without reading all of every recording.
#ifndef TOOL_MODEL_FIGURES_H
#define TOOL_MODEL_FIGURES_H

#include "tool/model/estimate.h"
#include "tool/model/reader.h"

// A process with a lower peak is small: screens fold such processes into one line.
#define FIGURES_SMALL_BYTES (1u << 20)

// More threads than the runtime's table has room for: what claims more is damaged.
#define FIGURES_THREADS_MAX (1u << 17)

struct figures {
    uint64_t allocations, allocated_bytes;  // by the process itself, without what it inherited
    uint64_t frees, failed;  // frees are an estimate if is_sampled, and so is all below but failed
    bool is_sampled;
    uint64_t inherited_blocks, inherited_bytes;  // what a fork found when it began, or cairn
    bool has_inherited;                          // a thread's entry stands for such blocks
    uint64_t found_blocks, found_bytes;          // the same of cairn, counted; 0: not known
    uint64_t peak_bytes, peak_ns;
    int64_t exit_blocks, exit_bytes;
    struct estimate peak_estimate, exit_estimate;  // zeros unless is_sampled
    struct sampled_scale scale;                    // what samples can have missed
    uint64_t rate_bytes;                           // one sample in so many, 0 unless is_sampled
    uint64_t rate_now_bytes, slowed_count;         // as it is now; how often it was doubled
    uint64_t own_ns;                               // time spent in cairn, all threads
    uint64_t lost;                                 // events and names, all reasons
};

struct figures figures_of(const struct recording *recording);

bool figures_is_small(const struct figures *figures);

// A thread's entry that stands for the blocks a fork inherited.
bool figures_is_inherited(const struct cairn_thread *thread);

// What was freed of a number that is exact where `left` of it, an estimate, still lives: that may
// be the larger one, and then it is none.
uint64_t figures_freed(uint64_t exact, int64_t left);

// Wraps instead of overflowing: a damaged file may hold any number.
int64_t figures_add(int64_t a, int64_t b);

// What resident memory consisted of at a moment, as parts that add up to it: the picture that the
// tool took of the process' mappings (cairn_picture), with its heap split as far as it can be.
//
// The heap's blocks are known as requested; which of their pages are resident is known of large
// ones, which have a mapping of their own, and of free memory that was counted. Where live blocks
// and free memory are together more than the resident heap, some of the live memory was never
// touched or is swapped out: what is not free is live then. If not all that is free was counted,
// nothing says which it is, and both stay one part, PICTURE_REST.

enum picture_part {
    PICTURE_LIVE,    // blocks that the program holds; with has_live_slack all that is not free
    PICTURE_SLACK,   // their rounding and headers, an estimate
    PICTURE_FREE,    // free chunks and unused ends of the allocator's arenas
    PICTURE_REST,    // of the heap: thread caches, and whatever of the others is not known
    PICTURE_MAPPED,  // anonymous memory that the program mapped itself
    PICTURE_STACKS,
    PICTURE_FILES,
    PICTURE_SHARED,
    PICTURE_OWN,
    PICTURE_OTHER,
    PICTURE_PARTS,
};

struct picture {
    uint64_t at_ns, rss_bytes, pss_bytes, swap_bytes;
    uint64_t bytes[PICTURE_PARTS];     // their sum is rss_bytes
    uint64_t live_bytes, live_blocks;  // as requested, resident or not
    uint64_t heap_bytes;               // resident: the sum of the first five
    uint64_t slack_bytes;              // resident or not
    uint64_t chunk_bytes, top_bytes;   // of glibc's free memory, resident or not
    uint64_t free_resident_bytes;      // of both
    uint32_t arena_count;              // 0: not known
    uint32_t stack_count;
    bool is_sampled;      // what is live is an estimate
    bool is_cut;          // there are more free chunks than were counted
    bool is_live_unseen;  // no block was ever sampled: how much is live is not known
    bool lacks_older;     // nor how much of what was there before cairn attached
    bool is_live_partly;  // not all of what is live is resident
    bool is_live_part;    // PICTURE_LIVE is known; else it is within PICTURE_REST
    bool has_live_slack;  // slack and thread caches are within PICTURE_LIVE
    bool is_free_part, is_slack_part, is_mapped_part;  // as is_live_part
    uint64_t peak_bytes;                               // RSS peak by the kernel, 0: not known
};

// True if all that is free in the heap was counted, so that the rest is not.
bool picture_knows_free(const struct picture *picture);

// Whether the reading is one of the RSS peak, as far as it rounds; and whether its parts say little
// of that, since resident memory was far lower then.
bool picture_is_of_peak(const struct picture *picture);
bool picture_is_far_from_peak(const struct picture *picture);

// The picture at CAIRN_PICTURE_AT_PEAK or CAIRN_PICTURE_LAST; false if there is none.
bool picture_of(const struct recording *recording, size_t index, struct picture *picture);

// Puts CAIRN_PICTURE_COUNT pictures in the place of what the recording has. False without memory.
bool pictures_set(struct recording *recording, const struct cairn_picture *pictures);

// "live", "free" and so on, as in JSON.
const char *picture_part_key(enum picture_part part);

#endif
