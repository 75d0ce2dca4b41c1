// SPDX-License-Identifier: Apache-2.0
// Stacks whose live bytes rise over the snapshots of a recording: what leaks, and what caches.
//
// A straight line is fitted through what a stack held at each snapshot, at the peak and at the end
// (least squares), over time or over the bytes allocated, whichever fits better (of less than half
// a second over bytes alone); each point weighs as much of that as it stands for. What a stack
// gives back as the program shuts down is not part of its life: if it held the most in the last
// tenth of the time or of the bytes allocated, its line ends there. `fit` is how much of the ups
// and downs the line explains (R squared, 0 to 1): a leak that goes on all the time is near 1, a
// cache that is filled once, or a heap that goes up and down, is far below. Ranked by slope and
// fit, so that what was allocated once at the start comes last. Of samples only stacks are listed
// that rose by more than the 95 % interval of that.
#ifndef TOOL_MODEL_GROWTH_H
#define TOOL_MODEL_GROWTH_H

#include "tool/model/snapshot_choice.h"

#define GROWTH_SNAPSHOTS_MIN 3u  // with the end; fewer make no line

struct growth_stack {
    uint32_t stack;      // index into the profile's stacks
    double bytes_per_s;  // of the line that fits better, over the time there was
    double fit;
    int64_t first_bytes, last_bytes;  // where the line begins and ends
    int64_t freed_bytes;              // of that, given back between then and the end; 0: the line
                                      // goes on to the end
    int64_t interval_bytes;  // half the width of the 95 % interval of last - first; 0: exact
};

// When it is known what every stack held.
struct growth_point {
    struct snapshot_choice choice;
    uint64_t allocated_bytes;  // until then
};

struct growth {
    struct growth_stack *list;  // rising ones, the most suspicious first
    size_t count;
    struct growth_point *points;  // by time: snapshots, the peak, the end
    size_t point_count;
    size_t first;  // index of the first snapshot that was looked at
};

// From snapshot `first` on, `most` snapshots at most. False without memory.
bool growth_build(struct growth *growth, const struct snapshots *snapshots, size_t first,
                  size_t most, struct error *error);
void growth_free(struct growth *growth);

// The first snapshot to look at if nobody says: the first mark, as the program has warmed up then;
// without marks the first of all.
size_t growth_first(const struct snapshots *snapshots);

// What the first stacks of the list held: a row of `growth->point_count` bytes a stack, for free().
int64_t *growth_values(const struct growth *growth, const struct snapshots *snapshots,
                       size_t stacks);

#endif
