// SPDX-License-Identifier: Apache-2.0
// Instructions of aarch64, all of four bytes, by the Arm Architecture Reference Manual (C4, index
// by encoding). A jump replaces one of them, so no branch can lead into the middle of what it
// replaces.
#include "tool/attach/code.h"

#include <stdbool.h>
#include <string.h>

enum { INSTRUCTION_BYTES = 4, ADDRESS_BYTES = 8, LINK_REGISTER = 30, ARGUMENT_REGISTER = 5 };
enum { SCRATCH_REGISTER = 16, REGISTER_MASK = 31 };

#define BRANCH 0x14000000u
#define BRANCH_TO_SCRATCH (0xd61f0000u | SCRATCH_REGISTER << 5)
#define BREAKPOINT 0xd4200000u

enum kind {
    KIND_OTHER,
    KIND_BRANCH,         // b
    KIND_CALL,           // bl
    KIND_REGISTER_CALL,  // blr
    KIND_REGISTER_JUMP,  // br
    KIND_RETURN,         // ret
    KIND_CONDITION,      // b.cond, cbz, cbnz: 19 bits of words at bit 5
    KIND_TEST,           // tbz, tbnz: 14 bits of words at bit 5
    KIND_ADDRESS,        // adr
    KIND_PAGE,           // adrp
    KIND_LOAD,           // a load of what lies near the instruction
    KIND_LANDING,        // bti, paciasp, pacibsp: where an indirect branch may lead to
    KIND_UNDEFINED,      // udf
};

static const struct {
    uint32_t mask, value;
    enum kind kind;
} kinds[] = {
    {0xfc000000, BRANCH, KIND_BRANCH},
    {0xfc000000, 0x94000000, KIND_CALL},
    {0xfffffc1f, 0xd63f0000, KIND_REGISTER_CALL},
    {0xfffff800, 0xd63f0800, KIND_REGISTER_CALL},  // blraaz, blrabz
    {0xfffff800, 0xd73f0800, KIND_REGISTER_CALL},  // blraa, blrab
    {0xfffffc1f, 0xd61f0000, KIND_REGISTER_JUMP},
    {0xfffff800, 0xd61f0800, KIND_REGISTER_JUMP},
    {0xfffff800, 0xd71f0800, KIND_REGISTER_JUMP},
    {0xfffffc1f, 0xd65f0000, KIND_RETURN},
    {0xfffffbff, 0xd65f0bff, KIND_RETURN},  // retaa, retab
    {0xff000000, 0x54000000, KIND_CONDITION},
    {0x7e000000, 0x34000000, KIND_CONDITION},
    {0x7e000000, 0x36000000, KIND_TEST},
    {0x9f000000, 0x10000000, KIND_ADDRESS},
    {0x9f000000, 0x90000000, KIND_PAGE},
    {0x3b000000, 0x18000000, KIND_LOAD},
    {0xffffff3f, 0xd503241f, KIND_LANDING},
    {0xffffffbf, 0xd503233f, KIND_LANDING},
    {0xffff0000, 0x00000000, KIND_UNDEFINED},
};

static uint32_t instruction_at(const struct code_function *function, size_t at) {
    uint32_t code;
    memcpy(&code, function->bytes + at, sizeof code);
    return code;
}

static enum kind kind_of(uint32_t code) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((code & kinds[i].mask) == kinds[i].value) return kinds[i].kind;
    return KIND_OTHER;
}

// `bits` bits of `code` from bit `at` on, as a number with a sign.
static int64_t signed_bits(uint32_t code, unsigned at, unsigned bits) {
    return (int64_t)((uint64_t)code << (64 - at - bits)) >> (64 - bits);
}

static bool is_branch(enum kind kind) {
    return kind == KIND_BRANCH || kind == KIND_CALL || kind == KIND_CONDITION || kind == KIND_TEST;
}

// Where a branch leads to, or what adr and adrp make.
static uint64_t named_address(uint32_t code, uint64_t at) {
    const uint64_t page_mask = 4095;
    int64_t address = signed_bits(code, 5, 19) * 4 + (int64_t)(code >> 29 & 3);
    switch (kind_of(code)) {
    case KIND_CONDITION:
        return at + (uint64_t)(signed_bits(code, 5, 19) * INSTRUCTION_BYTES);
    case KIND_TEST:
        return at + (uint64_t)(signed_bits(code, 5, 14) * INSTRUCTION_BYTES);
    case KIND_ADDRESS:
        return at + (uint64_t)address;
    case KIND_PAGE:
        return (at & ~page_mask) + (uint64_t)address * (page_mask + 1);
    default:
        return at + (uint64_t)(signed_bits(code, 0, 26) * INSTRUCTION_BYTES);
    }
}

// ---- what is written ----------------------------------------------------------------------------

static bool put(struct code_moved *moved, const void *bytes, size_t count) {
    if (moved->count + count > sizeof moved->bytes) return false;
    memcpy(moved->bytes + moved->count, bytes, count);
    moved->count += count;
    return true;
}

static bool put_code(struct code_moved *moved, uint32_t code) {
    return put(moved, &code, sizeof code);
}

static bool put_branch(struct code_moved *moved, uint64_t to, uint64_t destination) {
    const unsigned bits = 26;
    int64_t words = (int64_t)(destination - (to + moved->count)) / INSTRUCTION_BYTES;
    int64_t limit = INT64_C(1) << (bits - 1);
    return words >= -limit && words < limit &&
           put_code(moved, BRANCH | ((uint32_t)words & ((1u << bits) - 1)));
}

// Loads a word that lies `words` instructions further on.
static uint32_t load_of(unsigned into, unsigned words) {
    return 0x58000000u | words << 5 | into;
}

// bl: the address that the call would have returned to, and a branch.
static bool put_call(struct code_moved *moved, uint64_t to, uint64_t destination,
                     uint64_t return_to) {
    return put_code(moved, load_of(LINK_REGISTER, 2)) && put_branch(moved, to, destination) &&
           put(moved, &return_to, sizeof return_to);
}

// The same condition, two instructions further on; one instruction before that the way back.
static bool put_condition(struct code_moved *moved, uint64_t to, uint32_t code, enum kind kind,
                          uint64_t destination, uint64_t back) {
    uint32_t distance = kind == KIND_TEST ? 0x3fffu << 5 : 0x7ffffu << 5;
    return put_code(moved, (code & ~distance) | 2u << 5) && put_branch(moved, to, back) &&
           put_branch(moved, to, destination);
}

// adr, adrp: the address itself, behind the way back.
static bool put_address(struct code_moved *moved, uint64_t to, uint32_t code, uint64_t address,
                        uint64_t back) {
    return put_code(moved, load_of(code & REGISTER_MASK, 2)) && put_branch(moved, to, back) &&
           put(moved, &address, sizeof address);
}

bool code_move(const struct code_function *function, uint64_t to, struct code_moved *moved,
               struct error *error) {
    moved->count = 0;
    if (function->size < INSTRUCTION_BYTES || function->available < INSTRUCTION_BYTES)
        return error_set(error, "it is too short for a jump");
    uint32_t code = instruction_at(function, 0);
    enum kind kind = kind_of(code);
    uint64_t back = function->address + INSTRUCTION_BYTES;
    uint64_t named = named_address(code, function->address);
    bool is_put;
    switch (kind) {
    case KIND_UNDEFINED:
        return error_set(error, "the code at +0 is none that is known");
    case KIND_LANDING:
        return error_set(error, "it begins with a place for indirect branches (BTI)");
    case KIND_LOAD:
        return error_set(error, "it begins with an address that cannot be moved");
    case KIND_REGISTER_CALL:
        return error_set(error, "it begins with a call through a pointer");
    case KIND_BRANCH:
        is_put = put_branch(moved, to, named);
        break;
    case KIND_CALL:
        is_put = put_call(moved, to, named, back);
        break;
    case KIND_CONDITION:
    case KIND_TEST:
        is_put = put_condition(moved, to, code, kind, named, back);
        break;
    case KIND_ADDRESS:
    case KIND_PAGE:
        is_put = put_address(moved, to, code, named, back);
        break;
    case KIND_RETURN:
    case KIND_REGISTER_JUMP:
        is_put = put_code(moved, code);
        break;
    default:
        is_put = put_code(moved, code) && put_branch(moved, to, back);
    }
    return is_put || error_set(error, "it is too far from free memory");
}

bool code_calls_others(const struct code_function *function) {
    for (size_t at = 0; at + INSTRUCTION_BYTES <= function->size; at += INSTRUCTION_BYTES) {
        uint32_t code = instruction_at(function, at);
        enum kind kind = kind_of(code);
        if (kind == KIND_CALL || kind == KIND_REGISTER_CALL || kind == KIND_REGISTER_JUMP)
            return true;
        uint64_t offset = named_address(code, function->address + at) - function->address;
        if (is_branch(kind) && offset >= function->size) return true;
    }
    return false;
}

void code_thunk(uint8_t thunk[CODE_THUNK_BYTES], uint64_t hook) {
    // adr x5, what follows the thunk; ldr x16, the hook; br x16
    const uint32_t way[] = {0x10000000u | CODE_THUNK_BYTES / 4 << 5 | ARGUMENT_REGISTER,
                            load_of(SCRATCH_REGISTER, CAIRN_LEAD_HOOK_AT / INSTRUCTION_BYTES - 1),
                            BRANCH_TO_SCRATCH, BREAKPOINT};
    _Static_assert(sizeof way == CAIRN_LEAD_HOOK_AT, "layout");
    _Static_assert(CODE_THUNK_BYTES == CAIRN_LEAD_HOOK_AT + ADDRESS_BYTES, "layout");
    memcpy(thunk, way, sizeof way);
    memcpy(thunk + CAIRN_LEAD_HOOK_AT, &hook, sizeof hook);
}

void code_way(uint8_t thunk[CODE_THUNK_BYTES], uint64_t hook) {
    const uint32_t way[] = {load_of(SCRATCH_REGISTER, CAIRN_LEAD_HOOK_AT / INSTRUCTION_BYTES),
                            BRANCH_TO_SCRATCH, BREAKPOINT, BREAKPOINT};
    _Static_assert(sizeof way == CAIRN_LEAD_HOOK_AT, "layout");
    memcpy(thunk, way, sizeof way);
    memcpy(thunk + CAIRN_LEAD_HOOK_AT, &hook, sizeof hook);
}

bool code_jump(uint8_t jump[CODE_JUMP_BYTES], uint64_t from, uint64_t to) {
    struct code_moved moved = {.count = 0};
    if (!put_branch(&moved, from, to)) return false;
    memcpy(jump, moved.bytes, INSTRUCTION_BYTES);
    return true;
}
