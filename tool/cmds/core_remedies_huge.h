// SPDX-License-Identifier: Apache-2.0
// Lists the stacks whose live blocks lie on transparent huge pages of a recorded process.
#ifndef TOOL_CMDS_CORE_REMEDIES_HUGE_H
#define TOOL_CMDS_CORE_REMEDIES_HUGE_H

#include "tool/heap/huge_pages.h"
#include "tool/query/heap_views.h"
#include "tool/query/merged.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct huge_stack {
    uint64_t live_bytes;  // on huge pages
    uint64_t huge_bytes;  // of the pages on which it has blocks
    uint64_t last_unit;   // that was counted
    uint32_t stack;
};

struct huge_live {
    uint64_t live_bytes, huge_bytes;
    ARRAY(struct huge_stack) stacks;  // with the most pages first
    struct opened *opened;            // the recording that they are of
};

// Sums up the live blocks of a look, whose recording is open, by stack. It stays empty of a sample,
// or if nothing lies on such pages. False without memory.
bool huge_live_find(const struct heap_look *look, struct opened *opened,
                    const struct huge_pages *pages, struct huge_live *live);
void huge_live_free(struct huge_live *live);

// Prints a line for all of them and one for each of the first stacks; nothing if there are none.
void huge_live_print(const struct huge_live *live, const struct terminal *terminal);

// Fills in the frames of a stack; NULL without memory.
const struct frame_list *huge_live_frames(const struct huge_live *live, size_t number,
                                          struct frame_list *frames);

#endif
