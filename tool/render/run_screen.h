// SPDX-License-Identifier: Apache-2.0
// A run of several processes on a screen: how its first process ended, what all of them took
// together, and a table with a line for each; of a sampled one, a second with its intervals.
#ifndef TOOL_RENDER_RUN_SCREEN_H
#define TOOL_RENDER_RUN_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/model/combined.h"
#include "tool/model/profile.h"
#include "tool/model/run.h"
#include "tool/render/terminal.h"
#include "tool/render/trust.h"

struct run_screen {
    const struct run *run;
    struct run_sums sums;
    struct trust_sums trust;
    struct combined_peak combined;
    struct inherited copies;  // of blocks that forks inherited, all forks together
    size_t fork_count;        // that inherited blocks
    size_t top;               // lines of the table, 0: all of them, the small ones too
    bool is_plain_number;     // sizes in bytes
    bool has_prefix;          // starts with "cairn: "
};

// "make ended with status 0 after 12 s, 37 processes".
void run_screen_print_ending(const struct terminal *terminal, const struct run_screen *screen);
// Figures, trust.
void run_screen_print_facts(const struct terminal *terminal, const struct run_screen *screen);
// In one line: the run, its combined peak, whether it is exact, and `what` is looked at.
void run_screen_print_context(const struct terminal *terminal, const struct run_screen *screen,
                              const char *what);
void run_screen_print_table(const struct terminal *terminal, const struct run_screen *screen);

// A row for each process. False without memory.
bool processes_answer(struct answer *answer, const struct run *run, const struct view_options *view,
                      struct error *error);

#endif
