// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/processor.h"

#if defined(__aarch64__)
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

// What the kernel puts at the stack pointer of a handler's caller.
struct signal_frame {
    siginfo_t info;
    ucontext_t context;
};

static bool is_word_readable(uintptr_t address) {
    return address % sizeof address == 0 && sys_is_readable((const void *)address);
}

// The address is a multiple of 4: each instruction lies in one aligned word.
static bool has_instruction(uintptr_t address, uint32_t wanted) {
    uint32_t found;
    if (!sys_is_readable((const void *)address)) return false;
    __builtin_memcpy(&found, (const void *)address, sizeof found);
    return found == wanted;
}

bool processor_is_signal(uintptr_t pc, uintptr_t stack, struct processor_signal *interrupted) {
    const uint32_t move_to_x8 = 0xd2801168, system_call = 0xd4000001;  // 139: rt_sigreturn
    enum { FRAME = 29, LINK = 30 };
    if (pc % PROCESSOR_INSTRUCTION_BYTES || !has_instruction(pc, move_to_x8) ||
        !has_instruction(pc + PROCESSOR_INSTRUCTION_BYTES, system_call))
        return false;
    const struct signal_frame *frame = (const struct signal_frame *)stack;
    const mcontext_t *saved = &frame->context.uc_mcontext;
    if (!is_word_readable((uintptr_t)&saved->regs[FRAME]) ||
        !is_word_readable((uintptr_t)&saved->pc))
        return false;
    interrupted->pc = (uintptr_t)saved->pc;
    interrupted->stack = (uintptr_t)saved->sp;
    interrupted->frame_slot = (const uintptr_t *)&saved->regs[FRAME];
    interrupted->link_slot = (const uintptr_t *)&saved->regs[LINK];
    return true;
}
#endif
