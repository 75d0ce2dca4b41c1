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
    uint64_t inherited_blocks, inherited_bytes;  // what a fork found when it began
    uint64_t peak_bytes, peak_ns;
    int64_t exit_blocks, exit_bytes;
    struct estimate peak_estimate, exit_estimate;  // zeros unless is_sampled
    uint64_t rate_bytes;                           // one sample in so many, 0 unless is_sampled
    uint64_t own_ns;                               // time spent in cairn, all threads
    uint64_t lost;                                 // events and names, all reasons
};

struct figures figures_of(const struct recording *recording);

bool figures_is_small(const struct figures *figures);

// A thread's entry that stands for the blocks a fork inherited.
bool figures_is_inherited(const struct cairn_thread *thread);

// Time spent in cairn as thousandths of the processor time; false: not known.
bool figures_own_share(uint64_t own_ns, uint64_t cpu_ns, unsigned *thousandths);

// What was freed of a number that is exact where `left` of it, an estimate, still lives: that may
// be the larger one, and then it is none.
uint64_t figures_freed(uint64_t exact, int64_t left);

// Wraps instead of overflowing: a damaged file may hold any number.
int64_t figures_add(int64_t a, int64_t b);

#endif
