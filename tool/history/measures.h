// SPDX-License-Identifier: Apache-2.0
// The figures that a history keeps of a test: one row here is a column there, a line on every
// screen and a key in JSON.
#ifndef TOOL_HISTORY_MEASURES_H
#define TOOL_HISTORY_MEASURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum history_measure {
    HISTORY_PEAK,
    HISTORY_EXIT,
    HISTORY_CALLS,
    HISTORY_BYTES,
    HISTORY_TEMPORARY,
    HISTORY_STACK_MEASURES,  // the ones before are known of stacks too
    HISTORY_WASTE = HISTORY_STACK_MEASURES,
    HISTORY_MEASURES,
};

struct history_measure_row {
    const char *name;  // as options, columns and keys have it
    bool is_bytes;
    const char *noun[2];  // of what is counted
};

static const struct history_measure_row history_measures[HISTORY_MEASURES] = {
    [HISTORY_PEAK] = {"peak", true, {NULL, NULL}},
    [HISTORY_EXIT] = {"exit", true, {NULL, NULL}},
    [HISTORY_CALLS] = {"calls", false, {"call", "calls"}},
    [HISTORY_BYTES] = {"bytes", true, {NULL, NULL}},
    [HISTORY_TEMPORARY] = {"temporary", false, {"block", "blocks"}},
    [HISTORY_WASTE] = {"waste", true, {NULL, NULL}},
};

// What a figure is worth. It is exact with none of these.
enum {
    HISTORY_IS_THREADED = 1,    // how threads met may decide it
    HISTORY_IS_SAMPLED = 2,     // an estimate, with its 95 % interval
    HISTORY_IS_INCOMPLETE = 4,  // something was lost
};

struct history_figure {
    int64_t value;
    int64_t interval;  // half of it: of samples at 95 %, of the peak with threads a bound
    bool is_known;
};

#endif
