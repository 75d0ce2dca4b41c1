// SPDX-License-Identifier: Apache-2.0
// DWARF expressions as they occur in .eh_frame: PLT entries, realigned stacks, signal frames.
#include "runtime/sys/sys.h"
#include "runtime/unwind/eh_frame.h"
#include "runtime/unwind/read.h"

enum { STACK_DEPTH = 16 };

struct evaluation {
    uintptr_t stack[STACK_DEPTH];
    unsigned depth;
    const struct row_registers *registers;
};

enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_SWAP = 0x16,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_XOR = 0x27,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

static bool evaluation_push(struct evaluation *state, uint64_t value) {
    if (state->depth == STACK_DEPTH) return false;
    state->stack[state->depth++] = value;
    return true;
}

static bool evaluation_register(const struct row_registers *known, uint64_t number,
                                uintptr_t *value) {
    if (number == REGISTER_STACK) {
        *value = known->stack;
    } else if (number == REGISTER_FRAME && known->is_frame_known) {
        *value = known->frame;
    } else if (number == REGISTER_PC) {
        *value = known->pc;
    } else {
        return false;
    }
    return true;
}

static bool evaluation_push_register(struct evaluation *state, struct cursor *cursor,
                                     uint64_t number) {
    uintptr_t value = 0;
    int64_t offset = read_sleb(cursor);
    if (!evaluation_register(state->registers, number, &value)) return false;
    return evaluation_push(state, value + (uint64_t)offset);
}

static bool evaluation_binary(struct evaluation *state, uint8_t op) {
    if (state->depth < 2) return false;
    uint64_t right = state->stack[--state->depth];
    uint64_t *left = &state->stack[state->depth - 1];
    int64_t signed_left = (int64_t)*left, signed_right = (int64_t)right;
    const unsigned word_bits = 64;
    switch (op) {
    case OP_AND:
        *left &= right;
        return true;
    case OP_OR:
        *left |= right;
        return true;
    case OP_XOR:
        *left ^= right;
        return true;
    case OP_PLUS:
        *left += right;
        return true;
    case OP_MINUS:
        *left -= right;
        return true;
    case OP_MUL:
        *left *= right;
        return true;
    case OP_SHL:
        *left = right < word_bits ? *left << right : 0;
        return true;
    case OP_SHR:
        *left = right < word_bits ? *left >> right : 0;
        return true;
    case OP_EQ:
        *left = signed_left == signed_right;
        return true;
    case OP_NE:
        *left = signed_left != signed_right;
        return true;
    case OP_GE:
        *left = signed_left >= signed_right;
        return true;
    case OP_GT:
        *left = signed_left > signed_right;
        return true;
    case OP_LE:
        *left = signed_left <= signed_right;
        return true;
    case OP_LT:
        *left = signed_left < signed_right;
        return true;
    }
    return false;
}

static bool evaluation_unary(struct evaluation *state, struct cursor *cursor, uint8_t op) {
    if (state->depth < 1) return false;
    uintptr_t *top = &state->stack[state->depth - 1];
    switch (op) {
    case OP_DEREF:
        if (!sys_is_readable((void *)*top) || !sys_is_readable((void *)(*top + 7))) return false;
        *top = sys_read_word(*top);
        return true;
    case OP_DUP:
        return evaluation_push(state, *top);
    case OP_DROP:
        state->depth--;
        return true;
    case OP_NEG:
        *top = 0 - *top;
        return true;
    case OP_NOT:
        *top = ~*top;
        return true;
    case OP_PLUS_UCONST:
        *top += read_uleb(cursor);
        return true;
    case OP_SWAP: {
        if (state->depth < 2) return false;
        uintptr_t below = top[-1];
        top[-1] = *top;
        *top = below;
        return true;
    }
    }
    return evaluation_binary(state, op);
}

static bool evaluation_step(struct evaluation *state, struct cursor *cursor) {
    uint8_t op = (uint8_t)read_bytes(cursor, 1);
    if (op >= OP_LIT0 && op <= OP_LIT31) return evaluation_push(state, op - (uint64_t)OP_LIT0);
    if (op >= OP_BREG0 && op <= OP_BREG31)
        return evaluation_push_register(state, cursor, op - (uint64_t)OP_BREG0);
    switch (op) {
    case OP_NOP:
        return true;
    case OP_BREGX:
        return evaluation_push_register(state, cursor, read_uleb(cursor));
    case OP_CONST1U:
        return evaluation_push(state, read_bytes(cursor, 1));
    case OP_CONST1S:
        return evaluation_push(state, (uint64_t)(int64_t)(int8_t)read_bytes(cursor, 1));
    case OP_CONST2U:
        return evaluation_push(state, read_bytes(cursor, 2));
    case OP_CONST2S:
        return evaluation_push(state, (uint64_t)(int64_t)(int16_t)read_bytes(cursor, 2));
    case OP_CONST4U:
        return evaluation_push(state, read_bytes(cursor, 4));
    case OP_CONST4S:
        return evaluation_push(state, (uint64_t)(int64_t)(int32_t)read_bytes(cursor, 4));
    case OP_ADDR:
    case OP_CONST8U:
    case OP_CONST8S:
        return evaluation_push(state, read_bytes(cursor, 8));
    case OP_CONSTU:
        return evaluation_push(state, read_uleb(cursor));
    case OP_CONSTS:
        return evaluation_push(state, (uint64_t)read_sleb(cursor));
    }
    return evaluation_unary(state, cursor, op);
}

bool row_evaluate(const struct row_expression *expression, const struct row_registers *registers,
                  uintptr_t initial, uintptr_t *result) {
    struct evaluation state = {.stack = {initial}, .depth = 1, .registers = registers};
    struct cursor cursor = {expression->bytes, expression->bytes + expression->length, false};
    while (cursor.at < cursor.end)
        if (!evaluation_step(&state, &cursor) || cursor.is_broken) return false;
    if (state.depth == 0) return false;
    *result = state.stack[state.depth - 1];
    return true;
}
