// SPDX-License-Identifier: Apache-2.0
// What changed between recordings, on a screen: figures, stacks, groups, a tree.
#ifndef TOOL_RENDER_DIFF_SCREEN_H
#define TOOL_RENDER_DIFF_SCREEN_H

#include "tool/answer/claims.h"
#include "tool/render/diff.h"
#include "tool/render/terminal.h"

struct diff_screen {
    const struct terminal *terminal;
    const struct diff *diff;
    const struct view_options *view;
    const char *noun[2];  // "stack", "stacks"
    bool has_places;      // rows are lines of source: named by where they are now
    bool is_sampled;      // some recordings are samples: differences have intervals
};

// What a row that is no stack is called.
const char *diff_label(const struct diff_screen *screen, const struct diff_row *row);

// "+1.8 MiB", "-12 B", "+1,024"; a size where `is_bytes`.
struct unit_text diff_delta_text(int64_t delta, bool is_bytes, bool is_plain_number);

// "  peak heap    13.3 MiB → 15.1 MiB   +1.8 MiB (+13 %)": one line; values and variances as
// diff_change takes them.
void diff_print_figure(const struct diff_screen *screen, const char *name, const int64_t *values,
                       const struct diff_estimate *estimates, bool is_bytes);

// The claim about the rows that changed in a way, not CHANGE_NONE, with the largest of them. False:
// there are none.
bool diff_claim(const struct diff *diff, enum change_kind kind, struct claim *claim);

// Member "claims": one for each way in which rows changed.
void diff_claims_put_json(struct json *json, const struct diff *diff);

// How many rows are new, gone and so on.
void diff_print_counts(const struct diff_screen *screen);

// False without memory.
bool diff_print_stacks(const struct diff_screen *screen, struct error *error);
bool diff_print_groups(const struct diff_screen *screen, struct error *error);
// The lines of one source file as it is now, with what changed beside them; `wanted` as in
// annotate.h.
bool diff_print_annotated(const struct diff_screen *screen, const char *wanted,
                          struct error *error);
bool diff_print_tree(const struct diff_screen *screen, struct error *error);  // rows are stacks

#endif
