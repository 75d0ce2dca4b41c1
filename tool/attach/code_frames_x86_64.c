// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/code_frames.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, UNKNOWN = INT32_MIN, STACK = 4, FRAME = 5, REGISTER_MODE = 3 };
enum { OPCODE_PUSH_FRAME = 0x55, OPCODE_POP_FRAME = 0x5d, OPCODE_LOAD_ADDRESS = 0x8d };
enum { OPCODE_GROUP_BYTE = 0x83, OPCODE_GROUP = 0x81, GROUP_ADD = 0, GROUP_AND = 4, GROUP_SUB = 5 };
enum { OPCODE_STORE = 0x89, OPCODE_LOAD = 0x8b, DISTANCE_MAX = 1 << 20 };

// How far below the CFA the two registers point, and where the frame pointer was saved; UNKNOWN.
struct place {
    int32_t stack, frame, saved;
};

struct follow {
    ZydisDecoder zydis;
    const struct code_function *function;
    struct place *places;  // by offset; `stack` and `frame` UNKNOWN: not reached
    uint8_t *lengths;      // of instructions that were reached; 0
    size_t *queue, *later;
    size_t queued, laters;
    struct place of_switch;
    bool has_switch, is_broken;
};

static const struct place nowhere = {UNKNOWN, UNKNOWN, 0};

static bool is_reached(const struct place *place) {
    return place->stack != UNKNOWN || place->frame != UNKNOWN;
}

static bool is_same(const struct place *a, const struct place *b) {
    return a->stack == b->stack && a->frame == b->frame && a->saved == b->saved;
}

// Two ways that meet have pushed the same.
static void reach(struct follow *follow, uint64_t offset, const struct place *place) {
    if (offset >= follow->function->size) return;
    struct place *there = &follow->places[offset];
    if (is_reached(there)) {
        follow->is_broken |= !is_same(there, place);
        return;
    }
    *there = *place;
    follow->queue[follow->queued++] = offset;
}

static bool is_on_stack_pointer(const ZydisDecodedInstruction *decoded) {
    return decoded->raw.modrm.mod == REGISTER_MODE && decoded->raw.modrm.rm == STACK &&
           !decoded->raw.rex.B;
}

static void move(int32_t *place, int64_t by) {
    if (*place == UNKNOWN) return;
    int64_t moved = *place + by;
    *place = moved < WORD || moved > DISTANCE_MAX ? UNKNOWN : (int32_t)moved;
}

static void change_by_group(struct place *place, const ZydisDecodedInstruction *decoded) {
    if (!is_on_stack_pointer(decoded)) return;
    int64_t value = decoded->raw.imm[0].value.s;
    if (decoded->raw.modrm.reg == GROUP_SUB)
        move(&place->stack, value);
    else if (decoded->raw.modrm.reg == GROUP_ADD)
        move(&place->stack, -value);
    else if (decoded->raw.modrm.reg <= GROUP_AND + 2)
        place->stack = UNKNOWN;
}

static void change_by_move(struct place *place, unsigned to, unsigned from) {
    if (to == STACK && from == FRAME)
        place->stack = place->frame;
    else if (to == FRAME && from == STACK)
        place->frame = place->stack;
    else if (to == STACK)
        place->stack = UNKNOWN;
    else if (to == FRAME)
        place->frame = UNKNOWN;
}

static void change_by_address(struct place *place, const ZydisDecodedInstruction *decoded) {
    unsigned to = decoded->raw.modrm.reg | (decoded->raw.rex.R ? WORD : 0);
    unsigned base = decoded->raw.modrm.rm | (decoded->raw.rex.B ? WORD : 0);
    int64_t by = decoded->raw.disp.value;
    bool has_index = base == STACK && (decoded->raw.sib.index != STACK || decoded->raw.rex.X);
    if (to == FRAME) place->frame = UNKNOWN;
    if (to != STACK) return;
    if (base == FRAME && decoded->raw.modrm.mod) place->stack = place->frame;
    if ((base != FRAME && base != STACK) || has_index || !decoded->raw.modrm.mod)
        place->stack = UNKNOWN;
    move(&place->stack, -by);
}

static void pop_frame(struct place *place) {
    place->frame = UNKNOWN;
    place->saved = 0;
}

static void change(struct place *place, const ZydisDecodedInstruction *decoded) {
    bool is_usual = decoded->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
    unsigned code = is_usual ? decoded->opcode : 0;
    unsigned reg = decoded->raw.modrm.reg | (decoded->raw.rex.R ? WORD : 0);
    unsigned rm = decoded->raw.modrm.rm | (decoded->raw.rex.B ? WORD : 0);
    bool is_between = decoded->raw.modrm.mod == REGISTER_MODE;
    if (decoded->meta.category == ZYDIS_CATEGORY_PUSH) {
        move(&place->stack, WORD);
        bool is_frame = code == OPCODE_PUSH_FRAME && !decoded->raw.rex.B;
        if (is_frame && !place->saved && place->frame == UNKNOWN && place->stack != UNKNOWN)
            place->saved = place->stack;
    } else if (decoded->meta.category == ZYDIS_CATEGORY_POP) {
        move(&place->stack, -WORD);
        if (code == OPCODE_POP_FRAME && !decoded->raw.rex.B) pop_frame(place);
    } else if (decoded->mnemonic == ZYDIS_MNEMONIC_LEAVE) {
        place->stack = place->frame;
        move(&place->stack, -WORD);
        pop_frame(place);
    } else if (code == OPCODE_GROUP || code == OPCODE_GROUP_BYTE) {
        change_by_group(place, decoded);
    } else if (code == OPCODE_STORE && is_between) {
        change_by_move(place, rm, reg);
    } else if (code == OPCODE_LOAD) {
        change_by_move(place, reg, is_between ? rm : 2 * WORD);
    } else if (code == OPCODE_LOAD_ADDRESS) {
        change_by_address(place, decoded);
    } else if (decoded->mnemonic == ZYDIS_MNEMONIC_SUB || decoded->mnemonic == ZYDIS_MNEMONIC_ADD ||
               decoded->mnemonic == ZYDIS_MNEMONIC_XCHG) {
        if (is_between && (rm == STACK || reg == STACK)) place->stack = UNKNOWN;
    }
}

// Reaches what lies behind a call, which may never return: another way's code may be there, or
// nothing, so that all other ways count first.
static void reach_later(struct follow *follow, size_t offset, const struct place *place) {
    if (offset >= follow->function->size || is_reached(&follow->places[offset])) return;
    follow->places[offset] = *place;
    follow->later[follow->laters++] = offset;
}

static void go_on(struct follow *follow, size_t at, bool is_later) {
    const struct code_function *function = follow->function;
    struct place place = follow->places[at];
    ZydisDecodedInstruction decoded;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&follow->zydis, NULL, function->bytes + at,
                                                    function->size - at, &decoded))) {
        follow->is_broken = true;
        return;
    }
    ZydisInstructionCategory kind = decoded.meta.category;
    bool is_direct = decoded.raw.imm[0].is_relative;
    size_t next = at + decoded.length;
    uint64_t there = next + (uint64_t)decoded.raw.imm[0].value.s;
    if (is_later && (kind == ZYDIS_CATEGORY_NOP || kind == ZYDIS_CATEGORY_WIDENOP)) {
        follow->places[at] = nowhere;  // what lies before the next way's code
        reach_later(follow, next, &place);
        return;
    }
    follow->lengths[at] = decoded.length;
    change(&place, &decoded);
    if (!is_reached(&place)) return;
    if (kind == ZYDIS_CATEGORY_RET || decoded.mnemonic == ZYDIS_MNEMONIC_UD2 ||
        decoded.mnemonic == ZYDIS_MNEMONIC_HLT)
        return;
    if (is_direct && kind != ZYDIS_CATEGORY_CALL) reach(follow, there, &place);
    if (kind == ZYDIS_CATEGORY_UNCOND_BR) {
        // through a table, unless everything was given back: then to another function
        bool is_switch = !is_direct && place.stack != WORD;
        if (is_switch) follow->of_switch = place;
        follow->has_switch |= is_switch;
    } else if (kind == ZYDIS_CATEGORY_CALL) {
        reach_later(follow, next, &place);
    } else {
        reach(follow, next, &place);
    }
}

static void follow_all(struct follow *follow) {
    while (!follow->is_broken && (follow->queued || follow->laters)) {
        bool is_later = !follow->queued;
        size_t at = is_later ? follow->later[--follow->laters] : follow->queue[--follow->queued];
        if (!follow->lengths[at]) go_on(follow, at, is_later);
    }
}

// Code that only a table leads to.
static void follow_switches(struct follow *follow) {
    size_t at = 0;
    follow_all(follow);
    while (!follow->is_broken && follow->has_switch && at < follow->function->size) {
        if (!follow->lengths[at]) reach_later(follow, at, &follow->of_switch);
        follow_all(follow);
        at += follow->lengths[at] ? follow->lengths[at] : 1;
    }
}

static struct code_frame frame_of(const struct place *place) {
    struct code_frame frame = {.is_known = is_reached(place), .saved = place->saved};
    frame.is_by_frame_pointer = place->stack == UNKNOWN;
    frame.distance = frame.is_by_frame_pointer ? place->frame : place->stack;
    return frame;
}

bool code_frames_find(const struct code_function *function, struct code_frame *frames) {
    const struct place entry = {WORD, UNKNOWN, 0};
    size_t count = function->size;
    struct follow follow = {.function = function};
    follow.places = calloc(count, sizeof *follow.places);
    follow.lengths = calloc(count, 1);
    follow.queue = calloc(2 * count + 1, sizeof *follow.queue);
    follow.later = calloc(count + 1, sizeof *follow.later);
    bool is_ok = count && follow.places && follow.lengths && follow.queue && follow.later &&
                 ZYAN_SUCCESS(ZydisDecoderInit(&follow.zydis, ZYDIS_MACHINE_MODE_LONG_64,
                                               ZYDIS_STACK_WIDTH_64));
    for (size_t i = 0; is_ok && i < count; i++) follow.places[i] = nowhere;
    if (is_ok) {
        reach(&follow, 0, &entry);
        follow_switches(&follow);
        is_ok = !follow.is_broken;
    }
    for (size_t i = 0; is_ok && i < count; i++)
        frames[i] = follow.lengths[i] ? frame_of(&follow.places[i]) : (struct code_frame){0};
    free(follow.places);
    free(follow.lengths);
    free(follow.queue);
    free(follow.later);
    return is_ok;
}
