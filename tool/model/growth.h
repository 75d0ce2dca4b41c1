// SPDX-License-Identifier: Apache-2.0
// Stacks whose live bytes rise over the moments of a recording: what leaks, and what caches.
//
// A straight line is fitted through what a stack held at each moment and holds at the end (least
// squares). `fit` is how much of the ups and downs the line explains (R squared, 0 to 1): a leak
// that goes on all the time is near 1, a cache that is filled once, or a heap that goes up and
// down, is far below. Ranked by slope and fit, so that what was allocated once at the start comes
// last. Of samples only stacks are listed that rose by more than the 95 % interval of that.
#ifndef TOOL_MODEL_GROWTH_H
#define TOOL_MODEL_GROWTH_H

#include "tool/model/instant.h"

#define GROWTH_MOMENTS_MIN 3u  // with the end; fewer make no line

struct growth_stack {
    uint32_t stack;      // index into the profile's stacks
    double bytes_per_s;  // of the line that fits better, over the time there was
    double fit;
    int64_t first_bytes, last_bytes, most_bytes;
    int64_t interval_bytes;  // half the width of the 95 % interval of last - first; 0: exact
};

struct growth {
    struct growth_stack *list;  // rising ones, the most suspicious first
    size_t count;
    size_t moment_count;      // with the end
    uint64_t from_ns, to_ns;  // of the first and the last
    size_t first;             // index of the first moment that was looked at
    size_t step;              // and every so many from it on
};

// From moment `first` on, `most` moments at most. False without memory.
bool growth_build(struct growth *growth, const struct moments *moments, size_t first, size_t most,
                  struct error *error);
void growth_free(struct growth *growth);

// The first moment to look at if nobody says: the first mark, as the program has warmed up then;
// without marks the first of all.
size_t growth_first(const struct moments *moments);

// What some stacks held at each moment: a row of `growth->moment_count` bytes a stack, for free().
int64_t *growth_values(const struct growth *growth, const struct moments *moments, size_t stacks);

#endif
