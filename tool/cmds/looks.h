// SPDX-License-Identifier: Apache-2.0
// `cairn run --look` and `--unreachable`: looks at the memory of a process while it runs and at its
// end. It is copied while the process stands, and studied by the thread that writes recordings,
// with the recording as a file, which keeps what was found (format/looks.h, format/reachability.h).
#ifndef TOOL_CMDS_LOOKS_H
#define TOOL_CMDS_LOOKS_H

#include "tool/watch/watched.h"

enum looks_wish {
    LOOKS_AT_HEAP = 1,      // at most three while it runs, each when resident memory is a quarter
                            // higher than at the last one, and one at the end
    LOOKS_UNREACHABLE = 2,  // at the end: what nothing leads to
};

// `wish`: of enum looks_wish.
struct last_look looks_of(unsigned wish);

#endif
