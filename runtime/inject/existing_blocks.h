// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_INJECT_EXISTING_BLOCKS_H
#define RUNTIME_INJECT_EXISTING_BLOCKS_H

#include "format/attachment.h"

// Enters the blocks that were there before the recording began, as if an ended thread had allocated
// them: from then on their frees are recognised. Only while no other thread runs and before the
// first event. Result: enum cairn_attachment_result; what was entered stays, whatever it is.
int existing_blocks_take(const struct cairn_census *census);

#endif
