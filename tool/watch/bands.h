// SPDX-License-Identifier: Apache-2.0
// A look at the guard bands of all blocks of a process that runs (cairn run --guard).
//
// It is asked to look itself, which it does as it next allocates or frees something. If it does not
// in the time of a blink, its memory is read from outside: as long as it takes up no wish it calls
// no allocation function either, so that its blocks stay where they are.
//
// Nothing that is read from it is believed; of what lies elsewhere by then the look knows nothing.
#ifndef TOOL_WATCH_BANDS_H
#define TOOL_WATCH_BANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/error.h"
#include "tool/watch/control.h"

struct bands_check {
    uint64_t checked_blocks;  // live ones that were looked at
    uint64_t damaged_blocks;  // found so far, by whoever and whenever
};

// What is found is written into the recording, as the process would. False if the blocks have no
// bands, or if the process neither looks nor may be looked at.
bool bands_check(const struct control *control, pid_t pid, struct bands_check *check,
                 struct error *error);

#endif
