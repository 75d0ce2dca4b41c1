// SPDX-License-Identifier: Apache-2.0
// The blocks that a fork found when it began, or that were there before cairn attached. They are
// nobody's calls: a recording counts them in cells that no thread owns, and frees of them in cells
// that refer to those. In a fork they are copies of blocks of another process.
#ifndef TOOL_MODEL_INHERITED_H
#define TOOL_MODEL_INHERITED_H

#include "tool/model/decode.h"

struct inherited {
    uint64_t blocks, bytes;
    int64_t peak_blocks, peak_bytes;  // of these: still there at the peak ...
    int64_t exit_blocks, exit_bytes;  // ... and at the end of the recording
};

void inherited_add(struct inherited *sum, const struct inherited *added);

// The cell counts such blocks and nothing else, if the recording has any.
bool inherited_is_cell(const struct recording *recording, size_t cell);
// The cell counts such blocks, or frees of them.
bool inherited_is_about(const struct recording *recording, size_t cell,
                        const struct record *record);

// Of a whole recording, without its stacks and without what was there at the peak.
struct inherited inherited_of(const struct recording *recording);

#endif
