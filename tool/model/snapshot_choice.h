// SPDX-License-Identifier: Apache-2.0
// A snapshot of a recording as a user names it, and what every stack held then.
//
// Words: peak; exit (or now); the label of a mark or snapshot; an offset from the start (`10s`) or
// from the end (`-10m`); a time of the clock (`14:30`, `14:30:05`, with `2026-11-21 ` in front if
// need be), in local time. What every stack held is known at the snapshots that were kept, at the
// peak and at the end. A time means the last of these before it or the first behind it: that at
// which what was live in all was nearer to what was live at that time.
//
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
#ifndef TOOL_MODEL_SNAPSHOT_CHOICE_H
#define TOOL_MODEL_SNAPSHOT_CHOICE_H

#include "tool/model/snapshots.h"

enum snapshot_choice_kind { CHOICE_PEAK, CHOICE_EXIT, CHOICE_SNAPSHOT };

struct snapshot_choice {
    enum snapshot_choice_kind kind;
    size_t snapshot;  // index in the list
    uint64_t at_ns;
    bool is_nearest;  // of a time that was asked for: `wanted_ns`
    uint64_t wanted_ns;
    bool has_wanted_live;  // what was live at that time is known, of all stacks together
    int64_t wanted_live_bytes;
};

// Finds what `text` means; the error says what there is instead.
bool snapshot_choose(const struct snapshots *snapshots, const char *text,
                     struct snapshot_choice *choice, struct error *error);

// The same among marks alone; a time means the last mark not after it.
bool snapshot_choose_mark(const struct snapshots *snapshots, const char *text,
                          struct snapshot_choice *choice, struct error *error);

// What every stack held, by number; for free(). NULL without memory. The profile must not have been
// filtered by threads or lifespan.
struct live_at *snapshot_choice_live(const struct snapshots *snapshots,
                                     const struct snapshot_choice *choice);

// "the peak, at 1.20 s", "snapshot "warm", at 2.00 s", "the snapshot at 2.00 s, nearest to 1.90 s".
void snapshot_choice_text(const struct snapshots *snapshots, const struct snapshot_choice *choice,
                          char *out, size_t size);

struct estimate *snapshot_estimates_at(const struct snapshots *snapshots,
                                       const struct snapshot_choice *choice);

struct estimate *snapshot_estimates_between(const struct snapshots *snapshots,
                                            const struct snapshot_choice *from,
                                            const struct snapshot_choice *to);

// Of blocks that were allocated in this generation or a later one, and live now.
struct estimate *snapshot_estimates_since(const struct snapshots *snapshots, uint32_t generation);

#endif
