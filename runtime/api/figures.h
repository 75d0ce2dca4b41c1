// SPDX-License-Identifier: Apache-2.0
// Sums over the recording of this process, for questions that the program asks (api.h). They read
// what other threads are writing: each value is one that was there, not all of the same time.
#ifndef RUNTIME_API_FIGURES_H
#define RUNTIME_API_FIGURES_H

#include <stdbool.h>

#include "include/cairn/cairn.h"

void figures_of_process(struct cairn_stats *stats);

// What was allocated in regions of this name and those within. False: there was none.
bool figures_of_region(const char *name, struct cairn_stats *stats);

// Blocks by size. False: allocations are sampled, of which no sizes are kept.
bool figures_of_sizes(struct cairn_histogram *histogram);

// What pools of this name hold. False: there was none.
bool figures_of_pool(const char *name, struct cairn_stats *stats);

#endif
