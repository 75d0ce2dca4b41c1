// SPDX-License-Identifier: Apache-2.0
// The outer end of a trace that is cut at a number of frames: where the stack grows, frames leave
// it there; where it shrinks, some come back.
#ifndef RUNTIME_UNWIND_TRACE_CUT_H
#define RUNTIME_UNWIND_TRACE_CUT_H

#include <stdint.h>

#include "runtime/unwind/walk.h"

// Frames of a trace that stay, by number.
struct trace_part {
    uint32_t first, last;
};

// Puts `count` frames, innermost first, in the place of all that lie outside of a part, which then
// begins at frame `count`; what lies inside of it stays where it was, and is not to be used but for
// its addresses. Returns the first frame up to the end of the part whose address is not what it
// was; the number behind the part: all are.
uint32_t trace_exchange_outer(struct walk_trace *trace, struct trace_part part,
                              const struct fresh_frame *outer, uint32_t count);

// Says of frame `at` and of those further out that see the same frame pointer that it is stored at
// another place: what has called them is unchanged, and what they have called is not. False: there
// is no word, and all is as it was.
bool trace_move_slot(struct walk_trace *trace, uint32_t at, const uintptr_t *slot);

// Appends the words that the step from a fresh frame read to a list; its new length.
ALWAYS_INLINE uint32_t checks_put(struct walk_check *checks, uint32_t count,
                                  const struct fresh_frame *fresh) {
    if (fresh->read.slot) checks[count++] = fresh->read;
    if (unlikely(!rule_is_plain(fresh->frame.rule)) && fresh->used_frame)
        checks[count++] = (struct walk_check){fresh->frame.frame_slot, fresh->used_frame};
    return count;
}

#endif
