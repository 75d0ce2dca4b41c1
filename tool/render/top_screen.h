// SPDX-License-Identifier: Apache-2.0
// What `cairn top` shows of a running process, as lines of text: the same for its screen, for
// --once, and for tests.
#ifndef TOOL_RENDER_TOP_SCREEN_H
#define TOOL_RENDER_TOP_SCREEN_H

#include "tool/model/live.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct top_view {
    const struct live *live;
    const struct frame_names *names;
    enum live_measure by;
    bool are_survivors;    // only blocks that were allocated since the mark, and live
    bool is_frozen;        // no looks are taken
    bool has_all_frames;   // internal frames too
    bool is_plain_number;  // sizes in bytes
    int pid;
    uint64_t rss_bytes;  // 0: not known
    const char *over;    // how the process ended; NULL: it runs
    const char *search;  // stacks that match it; NULL: all
    const char *since;   // what growth is counted from: "the mark"
};

// What the list holds in all.
struct top_sums {
    size_t stack_count;
    int64_t bytes, blocks;
    struct estimate estimate;
};

// What a stack holds: all of it, or what is left since the mark.
struct held_now {
    int64_t bytes, blocks;
    struct estimate estimate;  // survivors have none: samples do not tell them apart
};
struct held_now top_held(const struct top_view *view, size_t stack);

// Name, state, and what matters most of the figures, in one line.
void top_print_title(const struct terminal *terminal, const struct top_view *view);
// All figures of the process, its timeline and how far they can be believed: below the list, whose
// rows come first.
void top_print_details(const struct terminal *terminal, const struct top_view *view);
// What the list is of: "555 stacks by what they hold now".
void top_print_what(const struct terminal *terminal, const struct top_view *view,
                    const struct top_sums *sums);
// The columns' names, and the line of a row. False without memory.
void top_print_columns(const struct terminal *terminal, const struct top_view *view);
bool top_print_row(const struct terminal *terminal, const struct top_view *view, size_t stack);
// The labels of a row that is a set of them, safe: values alone where all are of one key.
void top_set_name(const struct top_view *view, size_t row, char *name, size_t size);
// One stack alone: all figures, all frames. False without memory.
bool top_print_stack(const struct terminal *terminal, const struct top_view *view, size_t stack);

// A process that is being recorded.
struct top_process {
    int pid;
    char name[64];  // safe text
    struct measured live, peak;
    uint64_t age_ns;
    int run;  // pid of the `cairn run` that records it, 0: none
    bool is_off, is_sampled;
};
// Where one of them is sampled there are columns for intervals.
bool top_has_sampled(const struct top_process *processes, size_t count);
void top_print_process_columns(const struct terminal *terminal, bool has_sampled);
void top_print_process(const struct terminal *terminal, const struct top_process *process,
                       bool has_sampled);

#endif
