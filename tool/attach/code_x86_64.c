// SPDX-License-Identifier: Apache-2.0
// Instructions of x86-64, decoded by Zydis.
#include "tool/attach/code.h"

#include <Zydis/Zydis.h>
#include <string.h>

enum { NEAR_JUMP = 0xe9, TWO_BYTES = 0x0f, NEAR_CONDITION = 0x80 };
enum { CONDITION_MASK = 0xf, BREAKPOINT = 0xcc, DISTANCE_BYTES = 4, RIP_RELATIVE_RM = 5 };

struct decoder {
    ZydisDecoder zydis;
    const struct code_function *function;
};

// One instruction of the function, and where it lies there.
struct instruction {
    ZydisDecodedInstruction decoded;
    size_t at, next;
};

static bool decoder_open(struct decoder *decoder, const struct code_function *function) {
    decoder->function = function;
    return ZYAN_SUCCESS(
        ZydisDecoderInit(&decoder->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

static bool decode(const struct decoder *decoder, size_t at, struct instruction *instruction) {
    const struct code_function *function = decoder->function;
    if (at >= function->available || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                                         &decoder->zydis, NULL, function->bytes + at,
                                         function->available - at, &instruction->decoded)))
        return false;
    instruction->at = at;
    instruction->next = at + instruction->decoded.length;
    return true;
}

// A branch whose destination is a part of the instruction.
static bool has_destination(const struct instruction *instruction) {
    return instruction->decoded.raw.imm[0].is_relative;
}

static uint64_t destination(const struct decoder *decoder, const struct instruction *instruction) {
    return decoder->function->address + instruction->next +
           (uint64_t)instruction->decoded.raw.imm[0].value.s;
}

static bool is_past(const struct instruction *instruction) {
    ZydisInstructionCategory kind = instruction->decoded.meta.category;
    return kind == ZYDIS_CATEGORY_UNCOND_BR || kind == ZYDIS_CATEGORY_RET ||
           instruction->decoded.mnemonic == ZYDIS_MNEMONIC_UD2;
}

static bool is_padding(const struct decoder *decoder, const struct instruction *instruction) {
    ZydisInstructionCategory kind = instruction->decoded.meta.category;
    return kind == ZYDIS_CATEGORY_NOP || kind == ZYDIS_CATEGORY_WIDENOP ||
           decoder->function->bytes[instruction->at] == BREAKPOINT;
}

// The bytes that the jump replaces are entered only at the first of them.
static bool check_jumps(const struct decoder *decoder, struct error *error) {
    const struct code_function *function = decoder->function;
    struct instruction instruction;
    for (size_t at = 0; at < function->size; at = instruction.next) {
        if (!decode(decoder, at, &instruction))
            return error_set(error, "the code at +%zu is none that is known", at);
        if (!has_destination(&instruction)) continue;
        uint64_t offset = destination(decoder, &instruction) - function->address;
        if (offset > 0 && offset < CODE_JUMP_BYTES)
            return error_set(error, "it jumps back into its first bytes");
    }
    return true;
}

static bool put(struct code_moved *moved, const void *bytes, size_t count) {
    if (moved->count + count > sizeof moved->bytes) return false;
    memcpy(moved->bytes + moved->count, bytes, count);
    moved->count += count;
    return true;
}

static bool put_distance(struct code_moved *moved, uint64_t to, uint64_t destination_address) {
    int64_t distance = (int64_t)(destination_address - (to + moved->count + DISTANCE_BYTES));
    int32_t word = (int32_t)distance;
    return word == distance && put(moved, &word, sizeof word);
}

static bool put_jump(struct code_moved *moved, uint64_t to, uint64_t destination_address) {
    const uint8_t code = NEAR_JUMP;
    return put(moved, &code, 1) && put_distance(moved, to, destination_address);
}

// Pushes an address, and leaves registers and flags alone: push rax twice; lea rax, it; mov
// [rsp+8], rax; pop rax.
static bool put_push(struct code_moved *moved, uint64_t to, uint64_t address) {
    static const uint8_t load[] = {0x50, 0x50, 0x48, 0x8d, 0x05};
    static const uint8_t store[] = {0x48, 0x89, 0x44, 0x24, 0x08, 0x58};
    return put(moved, load, sizeof load) && put_distance(moved, to, address) &&
           put(moved, store, sizeof store);
}

static bool put_branch(const struct decoder *decoder, const struct instruction *instruction,
                       uint64_t to, struct code_moved *moved, struct error *error) {
    const ZydisDecodedInstruction *decoded = &instruction->decoded;
    uint64_t there = destination(decoder, instruction);
    bool is_put = false;
    if (decoded->meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
        is_put = put_jump(moved, to, there);
    } else if (decoded->meta.category == ZYDIS_CATEGORY_CALL) {
        is_put = put_push(moved, to, decoder->function->address + instruction->next) &&
                 put_jump(moved, to, there);
    } else if (decoded->meta.category == ZYDIS_CATEGORY_COND_BR &&
               (decoded->opcode_map == ZYDIS_OPCODE_MAP_0F || decoded->opcode >> 4 == 7)) {
        const uint8_t code[] = {TWO_BYTES, NEAR_CONDITION | (decoded->opcode & CONDITION_MASK)};
        is_put = put(moved, code, sizeof code) && put_distance(moved, to, there);
    } else {
        return error_set(error, "it begins with a jump that cannot be moved");
    }
    return is_put || error_set(error, "a jump in its first bytes leads too far");
}

// What it names by its distance has another one from here.
static bool put_rip_relative(const struct decoder *decoder, const struct instruction *instruction,
                             uint64_t to, struct code_moved *moved, struct error *error) {
    const ZydisDecodedInstruction *decoded = &instruction->decoded;
    size_t start = moved->count;
    uint64_t there =
        decoder->function->address + instruction->next + (uint64_t)decoded->raw.disp.value;
    int64_t distance = (int64_t)(there - (to + start + decoded->length));
    int32_t word = (int32_t)distance;
    if (decoded->address_width != 64 || decoded->raw.disp.size != 32)
        return error_set(error, "it begins with an address that cannot be moved");
    if (word != distance ||
        !put(moved, decoder->function->bytes + instruction->at, decoded->length))
        return error_set(error, "an address in its first bytes is too far");
    memcpy(moved->bytes + start + decoded->raw.disp.offset, &word, sizeof word);
    return true;
}

static bool put_instruction(const struct decoder *decoder, const struct instruction *instruction,
                            uint64_t to, struct code_moved *moved, struct error *error) {
    const ZydisDecodedInstruction *decoded = &instruction->decoded;
    bool is_rip_relative = decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM &&
                           decoded->raw.modrm.mod == 0 && decoded->raw.modrm.rm == RIP_RELATIVE_RM;
    if (has_destination(instruction)) return put_branch(decoder, instruction, to, moved, error);
    if (decoded->meta.category == ZYDIS_CATEGORY_CALL)
        return error_set(error, "it begins with a call through a pointer");
    if (is_rip_relative) return put_rip_relative(decoder, instruction, to, moved, error);
    return put(moved, decoder->function->bytes + instruction->at, decoded->length) ||
           error_set(error, "its first instructions are too long");
}

bool code_move(const struct code_function *function, uint64_t to, struct code_moved *moved,
               struct error *error) {
    struct decoder decoder;
    struct instruction instruction;
    size_t at = 0;
    bool goes_on = true;
    moved->count = 0;
    if (!decoder_open(&decoder, function)) return error_set(error, "out of memory");
    if (!check_jumps(&decoder, error)) return false;
    for (; at < CODE_JUMP_BYTES; at = instruction.next) {
        if (!decode(&decoder, at, &instruction))
            return error_set(error, "it is too short for a jump");
        if (at < function->size) {
            if (!put_instruction(&decoder, &instruction, to, moved, error)) return false;
            goes_on = !is_past(&instruction);
        } else if (goes_on || !is_padding(&decoder, &instruction)) {
            return error_set(error, "it is too short for a jump");
        }
    }
    return !goes_on || put_jump(moved, to, function->address + at) ||
           error_set(error, "it is too far from free memory");
}

bool code_calls_others(const struct code_function *function) {
    struct decoder decoder;
    struct instruction instruction;
    if (!decoder_open(&decoder, function)) return false;
    for (size_t at = 0; at < function->size; at = instruction.next) {
        if (!decode(&decoder, at, &instruction)) return false;
        ZydisInstructionCategory kind = instruction.decoded.meta.category;
        bool is_branch = has_destination(&instruction) || kind == ZYDIS_CATEGORY_UNCOND_BR;
        uint64_t offset = destination(&decoder, &instruction) - function->address;
        bool is_inside = has_destination(&instruction) && offset < function->size;
        if (kind == ZYDIS_CATEGORY_CALL || (is_branch && !is_inside)) return true;
    }
    return false;
}

void code_thunk(uint8_t thunk[CODE_THUNK_BYTES], uint64_t hook) {
    // lea r9, [rip + what follows the thunk]; jmp *[rip + the hook]
    static const uint8_t way[] = {0x4c, 0x8d, 0x0d, CODE_THUNK_BYTES - 7,    0, 0,
                                  0,    0xff, 0x25, CAIRN_LEAD_HOOK_AT - 13, 0, 0,
                                  0};
    memset(thunk, BREAKPOINT, CODE_THUNK_BYTES);
    memcpy(thunk, way, sizeof way);
    memcpy(thunk + CAIRN_LEAD_HOOK_AT, &hook, sizeof hook);
}

void code_way(uint8_t thunk[CODE_THUNK_BYTES], uint64_t hook) {
    static const uint8_t way[] = {0xff, 0x25, CAIRN_LEAD_HOOK_AT - 6, 0, 0, 0};
    memset(thunk, BREAKPOINT, CODE_THUNK_BYTES);
    memcpy(thunk, way, sizeof way);
    memcpy(thunk + CAIRN_LEAD_HOOK_AT, &hook, sizeof hook);
}

bool code_jump(uint8_t jump[CODE_JUMP_BYTES], uint64_t from, uint64_t to) {
    struct code_moved moved = {.count = 0};
    if (!put_jump(&moved, from, to)) return false;
    memcpy(jump, moved.bytes, CODE_JUMP_BYTES);
    return true;
}
