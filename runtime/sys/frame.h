// SPDX-License-Identifier: Apache-2.0
// One frame of a walked stack, as the unwinder leaves it and the interner reads it.
#ifndef RUNTIME_SYS_FRAME_H
#define RUNTIME_SYS_FRAME_H

#include <stdint.h>

// The address of a frame of Python code, which no native code has: the number of the code's record
// and the line.
#define FRAME_PYTHON ((uintptr_t)1 << 63)
static inline uintptr_t frame_python(uint32_t code, uint32_t line) {
    return FRAME_PYTHON | (uintptr_t)code << 32 | line;
}

// Pseudo addresses of no code: the region of the program that a stack was seen in, ORed with its
// scope id. Not canonical and below those of Python, so that no return address is like it.
#define FRAME_REGION 0x4A15000000000000u

// frame.rule where the way from there on is guessed: code without unwind information is believed to
// keep a frame pointer.
#define FRAME_RULE_GUESSED (UINT32_MAX - 1)

struct frame {
    uintptr_t stack;              // stack pointer in this frame; the word below it holds pc
    uintptr_t pc;                 // return address, or a pseudo address (enum cairn_cut)
    const uintptr_t *frame_slot;  // where the frame pointer that this frame sees is stored
    uint32_t check_count;         // the unwinder's: words that decide the way on from here
    uint32_t rule;                // the same: how the way goes on, if by the stack pointer alone
};

#endif
