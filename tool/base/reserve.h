// SPDX-License-Identifier: Apache-2.0
// Memory put aside for a time in which an allocation must not fail: while a process is stopped. It
// is touched, so that the system has given it, and goes back to malloc when that time begins; the
// libraries that are called then have it too.
//
//     if (!reserve_take(&reserve, bytes)) return error_set(error, "out of memory");
//     reserve_use(&reserve, bytes);  // from here on malloc has so much without asking the system
//
// The blocks that it becomes may be needed later too: it is taken anew before each such time.
#ifndef TOOL_BASE_RESERVE_H
#define TOOL_BASE_RESERVE_H

#include "tool/base/array.h"

struct reserve {
    ARRAY(void *) pieces;
};

// Puts aside what is missing of so many bytes. False without memory; what there was is kept.
bool reserve_take(struct reserve *reserve, size_t bytes);
// Gives malloc so much of it, but never the uppermost piece, which keeps the others from going back
// to the system.
void reserve_use(struct reserve *reserve, size_t bytes);
void reserve_free(struct reserve *reserve);

#endif
