// SPDX-License-Identifier: Apache-2.0
// Call frame information: how to find the caller's registers from a code address. One row of the
// table that .eh_frame encodes (DWARF 5 section 6.4, and the Linux Standard Base for the .eh_frame
// differences), reduced to what a walk needs: the CFA, the return address and the frame pointer.
//
// Input is memory of a loaded module and is not trusted: every read is checked against the module's
// range, so that a wrong byte ends in `false`. tests/fuzz/cfi_fuzz.c feeds it garbage.
#ifndef RUNTIME_UNWIND_EH_FRAME_H
#define RUNTIME_UNWIND_EH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

// DWARF register numbers (System V ABI, AMD64 figure 3.36; ARM aadwarf64 section 4.1).
#if defined(__x86_64__)
enum { REGISTER_FRAME = 6, REGISTER_STACK = 7, REGISTER_PC = 16 };
#elif defined(__aarch64__)
enum { REGISTER_FRAME = 29, REGISTER_STACK = 31, REGISTER_PC = 32 };
#endif

enum row_how {
    ROW_SAME,           // unchanged from the callee (also: not mentioned)
    ROW_UNDEFINED,      // not recoverable; of the return address: this is the outermost frame
    ROW_AT_CFA,         // saved at CFA + offset
    ROW_AT_EXPRESSION,  // saved at the address that the expression gives
    ROW_UNSUPPORTED,    // any other form
};

// A DWARF expression: `length` bytes inside the module.
struct row_expression {
    const uint8_t *bytes;
    uint32_t length;
};

struct row_register {
    enum row_how how;
    int64_t offset;
    struct row_expression expression;
};

struct row {
    bool is_signal_frame;  // the caller was interrupted, not calling
    bool is_cfa_expression;
    uint32_t cfa_register;
    int64_t cfa_offset;
    struct row_expression cfa_expression;
    struct row_register frame;  // the frame pointer register
    struct row_register ret;    // the return address
};

// The module that covers the code, as far as parsing needs it.
struct row_source {
    const uint8_t *start, *end;  // readable range of the module
    const uint8_t *eh_frame_hdr;
};

// The row for the instruction at `pc`. False: no information covers it, or it is malformed.
bool row_find(const struct row_source *source, uintptr_t pc, struct row *row);

// The code of the function, or of its part, around `pc`. False: no information covers it.
bool row_find_code(const struct row_source *source, uintptr_t pc, uintptr_t *start, uintptr_t *end);

// What an expression may use. Registers other than these end evaluation.
struct row_registers {
    uintptr_t pc, stack, frame;
    bool is_frame_known;
};

// Evaluates with `initial` on the stack (the CFA, for register rules). Memory is read through
// sys_is_readable. False: unsupported operation, register or unreadable memory.
bool row_evaluate(const struct row_expression *expression, const struct row_registers *registers,
                  uintptr_t initial, uintptr_t *result);

#endif
