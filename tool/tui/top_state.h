// SPDX-License-Identifier: Apache-2.0
// What the screen of `cairn top` shows: which stacks or contexts in which order, which of them is
// selected, on which page. Knows no terminal, so that tests can drive it.
#ifndef TOOL_TUI_TOP_STATE_H
#define TOOL_TUI_TOP_STATE_H

#include "tool/base/text.h"
#include "tool/render/top_screen.h"

enum top_page { TOP_LIST, TOP_STACK, TOP_PROCESSES, TOP_HELP };

struct top_row {
    int64_t value;
    uint32_t stack;
};

struct top {
    struct top_view view;
    enum top_page page;
    ARRAY(struct top_row) rows;  // highest value first
    struct top_sums sums;
    size_t selected;              // row
    uint32_t shown;               // the stack of the page TOP_STACK
    bool is_followed;             // the selection stays with its stack when the order changes
    size_t first;                 // row, or line of a page, that is shown first
    struct pattern *pattern;      // stacks through what matches it; NULL: all
    ARRAY(uint8_t) node_matches;  // by node: it or something further out matches
    size_t named_nodes;           // nodes below this one have their names
    ARRAY(struct top_process) processes;
    size_t selected_process;
    int list_lines;  // rows that there was room for when it was last drawn
    bool is_failed;  // no memory for what is shown
    char search[128];
    char since[64];
    char whole_since[64];        // of all stacks, while a part is listed
    char key[CAIRN_LABEL_TEXT];  // contexts are listed by its values; "": by whole sets of labels
    char message[512];           // at the foot; "": none
};

// `live` and `names` may be exchanged by top_attach; NULL: no process is looked at yet.
void top_start(struct top *top, enum live_measure by);
void top_close(struct top *top);

// Another process is looked at from now on: with what it brings, nothing of the old one stays.
void top_attach(struct top *top, const struct live *live, const struct frame_names *names, int pid);

// Lists the rows anew after a look or a change of what is shown. False without memory.
bool top_list(struct top *top);

void top_move(struct top *top, long lines);  // of the list or the page
void top_sort(struct top *top, enum live_measure by);
// The stack that is selected; false: the list is empty.
bool top_selected(const struct top *top, uint32_t *stack);
// The selected stack alone; nothing happens without one.
void top_enter(struct top *top);
// Only stacks through functions, files or modules that match; "" is all. False with the reason if
// the expression is wrong. Stacks whose names are not known yet (named_nodes) follow when they are.
bool top_search(struct top *top, const char *text, struct error *error);
// Growth and survivors are counted from a mark that was just set.
void top_marked(struct top *top);
// What is listed has changed (live_show): its selection, and since when growth is counted.
void top_shown(struct top *top);
// Keeps the selected row within `lines` lines from `first` on.
void top_keep_in_view(struct top *top, size_t lines);

#endif
