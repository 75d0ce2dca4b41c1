// SPDX-License-Identifier: Apache-2.0
// What a step of a walk has to know about the processor, apart from where registers are saved,
// which unwind information tells.
//
// aarch64: a function may sign its return address before saving it (PAC): the signature lies above
// the address, in bits that are 0 in all code of a program. It is taken off and never checked. The
// kernel's way back from a signal handler is described by no unwind information that would lead to
// the interrupted instruction, so it is known by its two instructions, as debuggers know it, and
// the registers are read from the frame that the kernel has written.
#ifndef RUNTIME_UNWIND_PROCESSOR_H
#define RUNTIME_UNWIND_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

#if defined(__aarch64__)
enum { PROCESSOR_ADDRESS_BITS = 48 };

// Rules are those of the byte before an address. For an interrupted instruction that is to be a
// byte of its own, and code addresses are multiples of this.
enum { PROCESSOR_INSTRUCTION_BYTES = 4 };

// The return address that a saved word stands for.
ALWAYS_INLINE uintptr_t processor_code_address(uintptr_t word) {
    return word & (((uintptr_t)1 << PROCESSOR_ADDRESS_BITS) - 1);
}

// Where the kernel has put the registers of what a signal handler interrupted.
struct processor_signal {
    uintptr_t pc, stack;
    const uintptr_t *frame_slot, *link_slot;
};

// True if `pc` is the kernel's way back from a handler; `stack` is the stack pointer there.
bool processor_is_signal(uintptr_t pc, uintptr_t stack, struct processor_signal *interrupted);
enum { PROCESSOR_CALL_BYTES = 4 };
#else
enum { PROCESSOR_ADDRESS_BITS = 47 };
enum { PROCESSOR_INSTRUCTION_BYTES = 1 };
ALWAYS_INLINE uintptr_t processor_code_address(uintptr_t word) {
    return word;
}
enum { PROCESSOR_CALL_BYTES = 7 };  // of the longest call, but for prefixes
#endif

// Tells that the bytes before `pc` can be read as a call; one that names its target leads into
// [start, end). PROCESSOR_CALL_BYTES before it and the byte there are readable.
bool processor_is_behind_call(uintptr_t pc, uintptr_t start, uintptr_t end);

#endif
