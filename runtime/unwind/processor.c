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

bool processor_is_behind_call(uintptr_t pc, uintptr_t start, uintptr_t end) {
    const uint32_t direct = 0x94000000, direct_mask = 0xfc000000;
    const uint32_t by_register = 0xd63f0000, by_register_mask = 0xfefff000;  // signed ones too
    uint32_t code;
    (void)start, (void)end;
    if (pc % PROCESSOR_INSTRUCTION_BYTES) return false;
    __builtin_memcpy(&code, (const void *)(pc - PROCESSOR_CALL_BYTES), sizeof code);
    return (code & direct_mask) == direct || (code & by_register_mask) == by_register;
}
#else
// The bytes of a call by a register or by memory, from its operation on; 0: it is none.
static unsigned indirect_call_bytes(const uint8_t *code) {
    enum { OPERATION = 0xff, CALL = 2, BY_REGISTER = 3, WITH_INDEX = 4, NO_BASE = 5 };
    const unsigned mode = code[1] >> 6, base = code[1] & 7;
    const bool has_index = mode != BY_REGISTER && base == WITH_INDEX;
    const unsigned bytes = 2u + has_index;
    if (code[0] != OPERATION || (code[1] >> 3 & 7) != CALL) return 0;
    if (mode == 1) return bytes + sizeof(int8_t);
    if (mode == 2) return bytes + sizeof(int32_t);
    const bool is_far = mode == 0 && (has_index ? code[2] & 7 : base) == NO_BASE;
    return is_far ? bytes + sizeof(int32_t) : bytes;
}

bool processor_is_behind_call(uintptr_t pc, uintptr_t start, uintptr_t end) {
    enum { DIRECT_CALL = 0xe8, DIRECT_BYTES = 5 };
    const uint8_t *after = (const uint8_t *)pc;
    int32_t distance;
    __builtin_memcpy(&distance, after - sizeof distance, sizeof distance);
    const uintptr_t target = pc + (uintptr_t)(intptr_t)distance;
    if (after[-DIRECT_BYTES] == DIRECT_CALL && target >= start && target < end) return true;
    for (unsigned bytes = 2; bytes <= PROCESSOR_CALL_BYTES; bytes++)
        if (indirect_call_bytes(after - bytes) == bytes) return true;
    return false;
}
#endif
