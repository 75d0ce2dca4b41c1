// SPDX-License-Identifier: Apache-2.0
// Where a figure changed over commits, as numbers alone.
//
// Figures that were counted are equal if the program did the same: each difference is a step, even
// one of 1. Everything else has noise: what samples stand for, how threads met, and programs whose
// figures differ between two runs of one commit. There a step is a level that differs from the one
// before by more than noise explains (docs/howto/history.md).
#ifndef TOOL_HISTORY_STEPS_H
#define TOOL_HISTORY_STEPS_H

#include "tool/base/array.h"
#include "tool/history/step_value.h"

struct step {
    size_t first;           // index of the first value of the new level
    int64_t before, after;  // the levels on both sides: of counted figures the values
};

// The newest commit differs from all runs of the level before, and has too few runs to say whether
// that is a step.
struct steps_open {
    bool is_there;
    size_t first;           // index of its first value
    int64_t before, after;  // means of the level before and of its own runs
    size_t missing;         // so many further runs of it decide; 0: there are too few before it
    size_t runs_before;     // of the level before
};

struct steps {
    ARRAY(struct step) list;  // in order
    struct steps_open open;
    bool is_noisy;     // the figure varies from run to run
    double deviation;  // by so much, where it is not known from samples
};

// False without memory. `steps` for steps_free.
bool steps_find(const struct step_value *values, size_t count, struct steps *steps);
void steps_free(struct steps *steps);

#endif
