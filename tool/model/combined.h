// SPDX-License-Identifier: Apache-2.0
// The peak that several processes had together, as the two bounds between which it lies: the
// timelines are put on one clock, and at every time the sums of their lower and upper bounds
// are taken.
//
// Of sampled processes both bounds are estimates. How sure, is known of each process at its own
// peak, which is where it is least so: the sum of these variances, over the processes that lived at
// the time of the peak, is at least the variance of what they held together; of their
// deviations, if a fork is among them (estimate.h).
#ifndef TOOL_MODEL_COMBINED_H
#define TOOL_MODEL_COMBINED_H

#include "tool/base/array.h"
#include "tool/model/estimate.h"
#include "tool/model/reader.h"
#include "tool/model/run_row.h"

// From `at_ns` (CLOCK_MONOTONIC) on, the sums differ by this much.
struct combined_change {
    uint64_t at_ns;
    int64_t low_bytes, high_bytes;
    struct estimate estimate;
    double bytes_deviation;
    int fork_count;
    int64_t inherited_bytes;
};

struct combined_peak {
    uint64_t low_bytes, high_bytes;
    struct estimate estimate;  // of either; all zero if no process was sampled
    uint64_t inherited_bytes;  // at most so much of it were copies that forks had inherited
    uint64_t pss_bytes;        // highest sum of proportional set sizes, at least, as far as they
                               // were looked at; 0: none was
    size_t pss_processes;      // that were
};

// From `at_ns` on, the sum of the proportional set sizes differs by this much.
struct combined_pss {
    uint64_t at_ns;
    int64_t bytes;
};

struct combined {
    ARRAY(struct combined_change) changes;
    ARRAY(struct combined_pss) pss;
    size_t pss_processes;
    uint64_t least_bytes;            // the largest peak of a single process ...
    struct estimate least_estimate;  // ... and how sure that is
};

// False without memory.
bool combined_add(struct combined *combined, const struct recording *recording);
// A process without a recording: it held something between nothing and its peak while it ran.
bool combined_add_row(struct combined *combined, const struct run_row *row);

struct combined_peak combined_find(struct combined *combined);
void combined_free(struct combined *combined);

#endif
