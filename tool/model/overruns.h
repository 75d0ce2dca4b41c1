// SPDX-License-Identifier: Apache-2.0
// Blocks that were written past, as guard bands showed (cairn run --guard).
#ifndef TOOL_MODEL_OVERRUNS_H
#define TOOL_MODEL_OVERRUNS_H

#include <stdbool.h>

#include "format/guard.h"
#include "tool/base/array.h"
#include "tool/model/decode.h"
#include "tool/model/reader.h"

struct overrun {
    struct cairn_overrun entry;
    uint32_t node;        // of the stack that allocated the block; TREE_ROOT: not known
    uint32_t found_node;  // of the stack that freed it, or that called realloc
};

struct overruns {
    struct cairn_guard guard;  // zeros: no block had bands
    ARRAY(struct overrun) list;
};

// What is not complete is left out. False without memory.
bool overruns_read(struct overruns *overruns, struct recording *recording, struct decoder *decoder);
void overruns_free(struct overruns *overruns);

// Offset from the block's start of the first changed byte before it, and behind it.
int64_t overrun_before(const struct overrun *overrun);
int64_t overrun_behind(const struct overrun *overrun);

#endif
