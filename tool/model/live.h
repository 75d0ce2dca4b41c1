// SPDX-License-Identifier: Apache-2.0
// What the stacks of a running process hold now, look by look: the model behind `cairn top`.
//
// A look reads the counters anew and adds them up; stacks, places and the tree are decoded once and
// stay. The process is neither stopped nor asked. What threads do while a look reads their counters
// is in it in part, so that a look is not of one choice; nothing adds up over looks.
#ifndef TOOL_MODEL_LIVE_H
#define TOOL_MODEL_LIVE_H

#include "tool/model/decode.h"
#include "tool/model/follow.h"
#include "tool/model/live_part.h"
#include "tool/model/measure.h"

#define LIVE_LOOKS 5u  // rates are taken over so many looks

enum live_measure { LIVE_BYTES, LIVE_GROWTH, LIVE_RATE, LIVE_TEMPORARY, LIVE_MEASURES };

// How sure the numbers of a look are; all zero if nothing is sampled.
struct live_sureness {
    struct estimate held, allocated;
};
static inline struct live_sureness live_sureness_of(const struct estimate *estimates) {
    return (struct live_sureness){estimates[ESTIMATED_EXIT], estimates[ESTIMATED_ALLOCATED]};
}

// Beside the stack of the same index.
struct live_stack {
    int64_t base_bytes;                       // held when growth began to be counted
    int64_t survivor_bytes, survivor_blocks;  // held, of blocks allocated since the mark
    uint64_t past_bytes[LIVE_LOOKS];          // allocated by then
    uint64_t past_calls[LIVE_LOOKS];
    struct live_sureness base, past[LIVE_LOOKS];
};

// What is listed: stacks, or what stands for them in a part. Beside each other, by the same index.
struct live_rows {
    ARRAY(struct stack) stacks;
    ARRAY(struct live_stack) more;
};

struct live_look {
    uint64_t at_ns;  // since the start of the recording
    uint64_t allocated_bytes, allocations;
    int64_t live_bytes;
    struct live_sureness sureness;
};

struct live {
    struct follow follow;
    // Of its stacks exit_* is what they hold now; of its peaks only the process' own is known.
    struct profile profile;
    struct decoder decoder;
    struct live_rows whole;         // all stacks
    struct live_part part;          // that was asked for
    struct live_rows part_rows;     // its sets, or what stacks hold of a label
    ARRAY(uint32_t) stack_of_node;  // index + 1; 0: none
    ARRAY(uint64_t) ids;            // by node
    uint32_t *generations;          // by cell: when its blocks were allocated
    size_t cell_room;
    size_t ready_modules;
    uint32_t mark_generation;  // survivors are blocks of this one or later; 0: no mark
    uint64_t base_ns;          // since when growth is counted
    struct live_look looks[LIVE_LOOKS];
    size_t look_count;
};

bool live_open(const char *path, struct live *live, struct error *error);
void live_close(struct live *live);

// Looks again at `clock_ns` (CLOCK_MONOTONIC). False if the recording cannot be read any more.
bool live_look(struct live *live, uint64_t clock_ns, struct error *error);

// The process still writes.
bool live_is_running(const struct live *live);
// The last look, since the recording's start.
uint64_t live_now_ns(const struct live *live);

// What is listed from now on: live_shown. Growth of a part is counted from here, its rates from the
// next look on. The numbers of the process stay those of all. False without memory.
bool live_show(struct live *live, enum live_part_kind kind, const struct live_set *of,
               struct error *error);
// The rows that are asked for; the functions below mean these.
static inline const struct live_rows *live_shown(const struct live *live) {
    return live->part.kind == LIVE_WHOLE ? &live->whole : &live->part_rows;
}

// Growth is counted from the last look on. Survivors are blocks of `generation` or later from then
// on; 0: as before, which at first is since the last mark that the process had.
void live_begin_growth(struct live *live, uint32_t generation);

// A stack's value: bytes, bytes, bytes a second, blocks.
int64_t live_value(const struct live *live, enum live_measure measure, size_t stack);
// The same with how sure it is. What changed between two snapshots is no surer than what both held
// alone, nor than what came and went in between; the narrower one counts, and neither is too
// narrow.
struct measured live_measured(const struct live *live, enum live_measure measure, size_t stack);
// Bytes and calls per second of a stack, or of the process.
struct live_rate {
    double bytes, calls;
};
struct live_rate live_rate_of(const struct live *live, size_t stack);
struct live_rate live_rate_total(const struct live *live);
// Bytes per second by which the heap grew or (below 0) shrank over the same looks.
double live_slope(const struct live *live);
struct measured live_slope_measured(const struct live *live);

// "live", "growth", "rate", "temporary".
const char *live_measure_name(enum live_measure measure);
bool live_measure_parse(const char *name, enum live_measure *measure);
#define LIVE_MEASURE_NAMES "live, growth, rate or temporary"

#endif
