// SPDX-License-Identifier: Apache-2.0
// What the browser shows: a tree, which of its nodes are unfolded, and the lines that follow from
// that. Knows no terminal, so that tests can drive it.
#ifndef TOOL_TUI_BROWSER_STATE_H
#define TOOL_TUI_BROWSER_STATE_H

#include "tool/base/text.h"
#include "tool/render/calls.h"

struct browser_line {
    uint32_t node;
    uint32_t level;
};

struct browser {
    const struct profile *profile;
    const struct frame_names *names;
    struct view_options view;
    struct calls calls;
    uint8_t *are_open;  // by node
    ARRAY(struct browser_line) lines;
    size_t selected;     // line
    struct frame pivot;  // callers or callees of it, if view.pivot is set ...
    bool was_inverted;   // ... and how the whole tree was shown before
};

// False without memory. What is open is closed by browser_close, whatever came back.
bool browser_open(struct browser *browser, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error);
void browser_close(struct browser *browser);

// Builds the tree anew after a change of browser->view. False without memory.
bool browser_rebuild(struct browser *browser, struct error *error);

// NULL: there is no line.
const struct call *browser_call(const struct browser *browser);

// The frame whose source says most: the selected one, else its first caller of the program's own,
// else what it calls most; NULL: there is none.
const struct frame *browser_source(const struct browser *browser);

// Each of these leaves lines and selection right; false without memory.
bool browser_unfold(struct browser *browser);       // or goes to the first child
bool browser_fold(struct browser *browser);         // or goes to the caller's line
bool browser_unfold_path(struct browser *browser);  // the largest child, as long as it is half
void browser_move(struct browser *browser, long lines);
// The next node behind the selected one whose name matches, unfolding what is above it;
// `is_found` false: there is none.
bool browser_search(struct browser *browser, const struct pattern *pattern, bool *is_found);
// Callers (`has_callers`) or callees of the selected function alone; NULL frame: stays as it is.
bool browser_pivot(struct browser *browser, bool has_callers, struct error *error);
// The whole tree again.
bool browser_whole(struct browser *browser, struct error *error);

#endif
