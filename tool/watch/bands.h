// SPDX-License-Identifier: Apache-2.0
// Checks the guard bands of all blocks of a running process (cairn run --guard).
//
// The process is asked to check them itself, which it does when it next allocates or frees a block.
// If it does not within a tenth of a second, its memory is read from outside: as long as it has not
// answered it calls no allocation function either, so that its blocks stay where they are.
//
// Nothing that is read from it is believed; blocks that have moved meanwhile are left out.
#ifndef TOOL_WATCH_BANDS_H
#define TOOL_WATCH_BANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"
#include "tool/watch/control.h"

struct bands_check {
    uint64_t checked_blocks;  // live ones that were looked at
    uint64_t overrun_blocks;  // found so far, by the process or the tool
};

// What is found is written into the recording, as the process would. False if the blocks have no
// bands, or if the process neither looks nor may be looked at.
bool bands_check(const struct control *control, pid_t pid, struct bands_check *check,
                 struct error *error);

#endif
