// SPDX-License-Identifier: Apache-2.0
// Machine code: the first instructions of a function moved elsewhere, so that a jump fits where
// they were. What was moved does what it did, and then jumps back behind the place of the jump. A
// file for each processor: code_x86_64.c, code_aarch64.c.
//
// Instructions that name a place relative to their own are written anew for where they are now. A
// call leaves the address that it would have returned to, so that no return address ever lies in
// moved code, for which there is no unwind information. All of it names places by their distance:
// it depends on where it lies from the function, not on where both are.
#ifndef TOOL_ATTACH_CODE_H
#define TOOL_ATTACH_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "format/attachment.h"
#include "tool/base/error.h"

// A jump; the most that moved code can take; what may follow a function.
enum { CODE_JUMP_BYTES = CAIRN_LEAD_JUMP_BYTES, CODE_MOVED_MAX = 72, CODE_PADDING_MAX = 16 };

// The way to a hook, which lies before what was moved.
enum { CODE_THUNK_BYTES = CAIRN_LEAD_CODE_BYTES - CODE_MOVED_MAX };

// A function as it lies in memory.
struct code_function {
    const uint8_t *bytes;
    size_t size;       // of the function itself
    size_t available;  // with what follows it, CODE_PADDING_MAX bytes at most
    uint64_t address;
};

struct code_moved {
    uint8_t bytes[CODE_MOVED_MAX];
    size_t count;
};

// Moves what lies in the first CODE_JUMP_BYTES to the address `to`. False, with a clause that says
// why, for a function whose code does not allow it: it jumps back into these bytes, is shorter
// without anything behind it that may be overwritten, or begins with an instruction that cannot be
// moved.
bool code_move(const struct code_function *function, uint64_t to, struct code_moved *moved,
               struct error *error);

// Whether it calls other functions. Compilers let callers in the same file count on which registers
// a function leaves alone (GCC's -fipa-ra), and something else in its place would not do so; but
// one that calls functions elsewhere leaves none for sure.
bool code_calls_others(const struct code_function *function);

// The way from an entry to a hook. The hook gets the address of what was moved, right behind this,
// in the register of a sixth argument.
void code_thunk(uint8_t thunk[CODE_THUNK_BYTES], uint64_t hook);

// The same without the address: every register comes there as the caller left it. The hook finds
// out what was moved by where it is entered.
void code_way(uint8_t thunk[CODE_THUNK_BYTES], uint64_t hook);

// A jump from `from` to `to`; false: too far.
bool code_jump(uint8_t jump[CODE_JUMP_BYTES], uint64_t from, uint64_t to);

#endif
