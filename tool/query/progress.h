// SPDX-License-Identifier: Apache-2.0
// A bar on the terminal for work that takes more than a second, or a line for work on much memory.
// Neither is shown where stderr is no terminal.
#ifndef TOOL_QUERY_PROGRESS_H
#define TOOL_QUERY_PROGRESS_H

#include <stdint.h>

#include "tool/symbol/symbol.h"

struct progress {
    const char *what;  // "looking up names"
    uint64_t start_ns;
    bool is_shown;
};

struct symbol_progress progress_start(struct progress *progress, const char *what);
// Shows none from now on: the terminal belongs to a screen.
void progress_hide(void);
// Takes the bar away.
void progress_end(struct progress *progress);

// Says what is being done with so much memory, until the end of it; only the outermost one does,
// and little memory takes no time.
void progress_wait(const char *what, uint64_t bytes);
void progress_wait_end(void);

#endif
