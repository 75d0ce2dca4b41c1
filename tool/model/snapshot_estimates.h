// SPDX-License-Identifier: Apache-2.0
// How sure it is what stacks held at snapshots, where blocks were sampled.
//
// What a stack holds at one snapshot has the variance of the samples that were live then. A
// difference of two snapshots has that of the samples which came or went in between: those that
// were live at both have the same weight in both, and cancel out. Recorded are sums of all samples
// that ever came and ever went; where some came and went in between, they are in the difference of
// both sums. So a difference is given the lower of two variances, neither of which is too low:
// that of what was live at either snapshot, and that of all that came or went in between. From a
// mark on it is the true one, since what came after it is counted apart (generations), and so it is
// where nothing came and went. Where samples changed their weight in between (--max-samples) only
// the first one holds, and of the peak only that is known.
//
// All arrays are by number of a stack, for free(); NULL without memory. The profile must be of a
// recording with samples.
#ifndef TOOL_MODEL_SNAPSHOT_ESTIMATES_H
#define TOOL_MODEL_SNAPSHOT_ESTIMATES_H

#include "tool/model/snapshot_choice.h"

struct estimate *snapshot_estimates_at(const struct snapshots *snapshots,
                                       const struct snapshot_choice *choice);

struct estimate *snapshot_estimates_between(const struct snapshots *snapshots,
                                            const struct snapshot_choice *from,
                                            const struct snapshot_choice *to);

// Of blocks that were allocated in this generation or a later one, and live now.
struct estimate *snapshot_estimates_since(const struct snapshots *snapshots, uint32_t generation);

#endif
