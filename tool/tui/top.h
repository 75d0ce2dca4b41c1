// SPDX-License-Identifier: Apache-2.0
// The screen of `cairn top`: a running process, looked at again and again.
#ifndef TOOL_TUI_TOP_H
#define TOOL_TUI_TOP_H

#include "tool/tui/top_state.h"

enum top_action { TOP_MARK, TOP_SNAPSHOT, TOP_SWITCH, TOP_RATE };

// What the screen asks of the command that runs it. Functions that return false fill the error; it
// is shown at the foot, and the screen goes on.
struct top_host {
    void *context;
    // Looks at the process again. Sets view.over when it has ended.
    bool (*look)(void *context, struct top *top, struct error *error);
    // Names for `count` rows from `first` on; SIZE_MAX: for all stacks. Unless `is_wanted` (by a
    // key) it may be left for later, so as not to take too much time.
    bool (*find_names)(void *context, struct top *top, size_t first, size_t count, bool is_wanted,
                       struct error *error);
    // Does something to the process, and says so in top->message.
    bool (*act)(void *context, struct top *top, enum top_action action, const char *argument,
                struct error *error);
    // Fills top->processes with what is being recorded.
    bool (*list)(void *context, struct top *top, struct error *error);
    // Lists something else of the process (live_show), from what the last look read.
    bool (*show)(void *context, struct top *top, enum live_part_kind kind,
                 const struct live_set *of, struct error *error);
    // The key of the program's labels after that one (live_part_next_key), for free().
    bool (*next_key)(void *context, struct top *top, const char *key, char **next,
                     struct error *error);
    // Whether it has allocators by name.
    bool (*has_heaps)(void *context, struct top *top, bool *has_any, struct error *error);
    // Looks at this process from now on. On failure the old one stays.
    bool (*attach)(void *context, struct top *top, int pid, struct error *error);
};

// Returns when the user is done. False without memory.
bool top_run(struct top *top, const struct top_host *host, unsigned interval_ms,
             struct error *error);

#endif
