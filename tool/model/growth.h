// SPDX-License-Identifier: Apache-2.0
// Stacks whose live bytes rise over time: what leaks, and what caches.
//
// The bytes of a stack are known at moments: snapshots, the peak and the end. Between two of them
// its value is carried, but never above what the timeline says that the whole heap held; a stack
// that has four fifths of what the heap rose by meanwhile, nearly without a fall, rose as it did. A
// straight line is fitted over time to this curve, from the first moment to the end (least
// squares). A program that gives back at least half of its heap in the last tenth of its time, when
// nine tenths of all bytes were allocated, shuts down there: the curve ends before that.
//
// A stack grows if its line rises and the curve rises in its last third too, beyond the one before,
// by GROWTH_RISE_BYTES, a hundredth of the peak, or a sixth of its own rise, and by no more than
// was allocated then; not all before its last two ninths, unless it rested nearly as long between
// its steps; and by four times what it fell meanwhile, or on a line that is none by chance. A stack
// that rose before and stayed there has stalled: it is in the list behind those that grow, with the
// time in which it rose. After an attach, blocks that take the place of older ones do not grow. One
// of which little is left at the end grows if it held on up to the last tenth, as far as the whole
// heap's fall says: what another thread took out of a queue in the last quarter was no shutdown.
// `fit` is how much of the ups and downs the line explains (R squared, 0 to 1): of a leak that goes
// on all the time it is near 1. Of samples only stacks are listed that rose by more than the 95 %
// interval of that.
//
// Growth is known from GROWTH_MOMENTS_MIN moments on, of GROWTH_NS_MIN and half of the recording at
// least.
#ifndef TOOL_MODEL_GROWTH_H
#define TOOL_MODEL_GROWTH_H

#include "tool/model/curve.h"
#include "tool/model/growth_heap.h"
#include "tool/model/snapshot_choice.h"

#define GROWTH_MOMENTS_MIN 5u  // with the peak and the end
#define GROWTH_NS_MIN 2000000000u
#define GROWTH_RISE_BYTES (1 << 20)

struct growth_stack {
    uint32_t stack;      // index into the profile's stacks
    double bytes_per_s;  // of the line
    double fit;
    int64_t first_bytes, last_bytes;  // where the curve begins and ends
    int64_t freed_bytes;              // given back after that, if it is half of it or more
    int64_t interval_bytes;  // half the width of the 95 % interval of last - first; 0: exact
    bool has_stalled;
    uint64_t from_ns, until_ns;  // of a stack that has stalled: when it rose
};

// A moment at which it is known what every stack held.
struct growth_point {
    struct snapshot_choice choice;
};

struct growth {
    struct growth_stack *list;  // the most suspicious first
    size_t count;
    size_t stalled_count;         // of these, at the end of the list
    size_t late_count;            // rose as well, and no moment shows when
    int64_t rise_least;           // by less no stack grows
    struct growth_point *points;  // by time: snapshots, the peak, the end
    size_t point_count;
    size_t moment_count;  // there are; not all of many are looked at
    size_t first;         // index of the first snapshot that was looked at
    uint64_t start_ns, end_ns;
    bool is_known;
};

// From snapshot `first` on, `most` snapshots at most. False without memory.
bool growth_build(struct growth *growth, const struct snapshots *snapshots, size_t first,
                  size_t most, struct error *error);
void growth_free(struct growth *growth);

// The first snapshot to look at if nobody says: the first mark, as the program has warmed up then;
// without marks the first of all.
size_t growth_first(const struct snapshots *snapshots);

// The curves of the first stacks of the list: a row of GROWTH_CELLS bytes a stack, for free(). NULL
// without memory.
int64_t *growth_curves(const struct growth *growth, const struct snapshots *snapshots,
                       size_t stacks);

#endif
