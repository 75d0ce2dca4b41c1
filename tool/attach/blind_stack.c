// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/blind_stack.h"

#include <string.h>
#include <sys/syscall.h>

#include "tool/proc/registers.h"

enum { CALL_BYTES_MAX = 8, CALL_NEAR = 0xe8, CALL_GROUP = 0xff, CALL_OF_GROUP = 2 };
// How far a signal handler's stack is searched, and how large the frames of an allocator may be,
// several times over.
#define STACK_BYTES (UINT64_C(1) << 20)
#define NEAR_BYTES (UINT64_C(8) << 10)

// --- code

// Bytes of an instruction 0xff with this operand, from that byte on.
static size_t group_bytes(const uint8_t *code) {
    enum { OPCODE_AND_OPERAND = 2, REGISTER = 3, SCALED = 4, NO_BASE = 5 };
    unsigned mode = code[1] >> 6, base = code[1] & 7;
    size_t bytes = OPCODE_AND_OPERAND;
    if (mode == REGISTER) return bytes;
    if (base == SCALED) base = code[bytes++] & 7;
    if (mode == 1) return bytes + 1;
    return mode || base == NO_BASE ? bytes + sizeof(uint32_t) : bytes;
}

static bool is_call(const uint8_t *code, size_t count) {
    if (code[0] == CALL_NEAR) return count == 1 + sizeof(uint32_t);
    return code[0] == CALL_GROUP && (code[1] >> 3 & 7) == CALL_OF_GROUP &&
           group_bytes(code) == count;
}

// A prefix before the call does not matter.
static bool follows_call(const struct blind_view *view, uint64_t address) {
    uint8_t code[CALL_BYTES_MAX];
    uint64_t word;
    if (!view->read(view->context, address - sizeof word, &word)) return false;
    memcpy(code, &word, sizeof word);
    for (size_t count = 2; count < CALL_BYTES_MAX; count++)
        if (is_call(code + sizeof code - count, count)) return true;
    return false;
}

// Where handlers return to.
static bool is_restorer(const struct blind_view *view, uint64_t address) {
#if defined(__x86_64__)
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t narrow[] = {0xb8, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
#else
    static const uint8_t code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};  // mov x8, #139; svc
#define narrow code
#endif
    uint64_t words[2];
    for (size_t i = 0; i < 2; i++)
        if (!view->read(view->context, address + i * sizeof *words, &words[i])) return false;
    return !memcmp(words, code, sizeof code) || !memcmp(words, narrow, sizeof narrow);
}

// --- system calls

static bool waits_elsewhere(const struct registers *registers) {
    static const uint16_t numbers[] = {
#if defined(SYS_poll)  // newer processors have the more general ones alone
        SYS_poll,
        SYS_select,
        SYS_epoll_wait,
        SYS_pause,
#endif
        SYS_read,
        SYS_readv,
        SYS_recvfrom,
        SYS_recvmsg,
        SYS_recvmmsg,
        SYS_write,
        SYS_writev,
        SYS_sendto,
        SYS_sendmsg,
        SYS_connect,
        SYS_accept,
        SYS_accept4,
        SYS_ppoll,
        SYS_pselect6,
        SYS_nanosleep,
        SYS_clock_nanosleep,
        SYS_wait4,
        SYS_rt_sigsuspend,
        SYS_rt_sigtimedwait,
        SYS_epoll_pwait,
        SYS_waitid,
        SYS_flock,
        SYS_msgrcv,
        SYS_semtimedop
    };
    if (!registers_are_in_system_call(registers)) return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (registers_system_call(registers) == numbers[i]) return true;
    return false;
}

static bool waits_for_lock(const struct registers *registers) {
    int64_t number = registers_system_call(registers);
    return registers_are_in_system_call(registers) &&
           (number == SYS_futex || number == SYS_restart_syscall);
}

// --- the stack

static void add(struct blind_stack *stack, uint64_t pc, enum blind_place place) {
    stack->is_full = stack->count == BLIND_FRAMES_MAX;
    if (!stack->is_full) stack->frames[stack->count++] = (struct blind_frame){pc, place};
}

// What may be a frame among the words from the stack pointer on.
static void read_near(struct blind_stack *stack, const struct blind_view *view, uint64_t at,
                      uint64_t bytes) {
    uint64_t word;
    for (uint64_t end = at + bytes; at < end && !stack->is_full; at += sizeof word) {
        if (!view->read(view->context, at, &word)) return;
        enum blind_place place = view->place(view->context, word);
        if (place != BLIND_NO_CODE && follows_call(view, word)) add(stack, word - 1, place);
    }
}

static bool is_in_handler(const struct blind_view *view, uint64_t at) {
    uint64_t word;
    for (uint64_t end = at + STACK_BYTES; at < end; at += sizeof word) {
        if (!view->read(view->context, at, &word)) return false;
        if (view->place(view->context, word) == BLIND_LIBC && is_restorer(view, word)) return true;
    }
    return false;
}

static bool is_called(const struct blind_view *view, const struct blind_frame *frame,
                      const char *start) {
    const char *name = view->name(view->context, frame->pc);
    return name && !strncmp(name, start, strlen(start));
}

// Of what may be a frame, what counts for a thread that waits: who waits, and the linker.
static bool keep_waiter(struct blind_stack *stack, const struct blind_view *view) {
    size_t kept = 1;
    for (size_t i = 1; i < stack->count; i++) {
        const struct blind_frame frame = stack->frames[i];
        bool is_waiter = frame.place == BLIND_PROGRAM;
        bool is_linker = frame.place == BLIND_LIBC && is_called(view, &frame, "dl");
        if (is_waiter || is_linker) stack->frames[kept++] = frame;
        if (!is_waiter) continue;
        stack->count = kept;
        return true;
    }
    return false;
}

// The same for a thread that runs the program's code.
static void keep_fork(struct blind_stack *stack, const struct blind_view *view) {
    size_t kept = 1;
    for (size_t i = 1; i < stack->count; i++) {
        const struct blind_frame frame = stack->frames[i];
        bool is_fork = frame.place == BLIND_OWN &&
                       (is_called(view, &frame, "fork") || is_called(view, &frame, "_Fork"));
        if (is_fork) stack->frames[kept++] = frame;
    }
    stack->count = kept;
}

void blind_stack_read(struct blind_stack *stack, const struct blind_view *view,
                      const struct stopped_thread *thread, bool is_for_calls) {
    uint64_t pc = registers_pc(&thread->registers), word_mask = sizeof(uint64_t) - 1;
    uint64_t at = registers_stack(&thread->registers) & ~word_mask;
    enum blind_place place = view->place(view->context, pc);
    bool is_handler = is_in_handler(view, at);
    *stack = (struct blind_stack){0};
    add(stack, pc, place);
    stack->is_known = !is_handler && place == BLIND_PROGRAM;
    if (stack->is_known && is_for_calls) return;
    read_near(stack, view, at, is_handler ? STACK_BYTES : NEAR_BYTES);
    if (stack->is_known) {
        keep_fork(stack, view);
        return;
    }
    bool is_waiter =
        waits_elsewhere(&thread->registers) || (is_for_calls && waits_for_lock(&thread->registers));
    stack->is_known = !is_handler && place == BLIND_LIBC && is_waiter && keep_waiter(stack, view);
}
