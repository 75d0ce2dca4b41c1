// SPDX-License-Identifier: Apache-2.0
// Unwind information for functions that have none, as musl's: made of their instructions. Each way
// through a function is followed from its first instruction, with what has been pushed so far;
// where two ways disagree, or something is not understood, the function gets none.
#ifndef TOOL_ATTACH_CODE_FRAMES_H
#define TOOL_ATTACH_CODE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/attach/code.h"

// Finds the caller's frame (CFA) from a register, while an instruction has yet to be executed.
struct code_frame {
    bool is_known, is_by_frame_pointer;  // else by the stack pointer
    int32_t distance;                    // the CFA is so far above that
    int32_t saved;                       // the caller's frame pointer is so far below; 0: unchanged
};

// Fills in a frame for each byte of the function: those of its instructions are known where they
// are at an instruction's first byte. False: nothing can be said.
bool code_frames_find(const struct code_function *function, struct code_frame *frames);

#endif
