// SPDX-License-Identifier: Apache-2.0
// The frame pointer is never loaded unless a rule needs it: the walk carries the address of the
// slot that holds it. Each new CFA must lie above the old one and inside the known range of the
// stack, so that a damaged stack ends the walk instead of the process.
#include "runtime/unwind/walk.h"

#include "format/format.h"
#include "runtime/sys/object.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/row.h"
#include "runtime/unwind/rule.h"

enum { WORD_BYTES = 8 };

struct walk {
    uintptr_t pc;
    uintptr_t stack;
    const uintptr_t *frame_slot;
    struct walk_range *range;
    bool is_guessed;
    bool has_new_code;
};

// The end of a step: go on, or the reason why not.
enum step { STEP_ON = 0, STEP_END = CAIRN_CUT_LIMIT };  // between them: enum cairn_cut

// Makes [range.low, end) known readable, or says that it is not.
static COLD bool range_extend_slow(struct walk_range *range, uintptr_t end) {
    const uintptr_t page_mask = SYS_PAGE_BYTES - 1;
    const uintptr_t largest_gap_bytes = 64u << 20;  // bigger frames than this are not believed
    uintptr_t high = range->high;
    if (end < range->low || end - high > largest_gap_bytes) return false;
    for (; high < end; high += SYS_PAGE_BYTES)
        if (!sys_is_readable((const void *)high)) return false;
    range->high = (high + page_mask) & ~page_mask;
    return true;
}

// True if the words in [low, high) of the stack may be read.
ALWAYS_INLINE bool range_holds(struct walk_range *range, uintptr_t low, uintptr_t high) {
    if (unlikely(low < range->low || high < low)) return false;
    return likely(high <= range->high) || range_extend_slow(range, high);
}

static void range_restart(struct walk_range *range, uintptr_t stack) {
    range->low = stack & ~(uintptr_t)(SYS_PAGE_BYTES - 1);
    range->high = range->low + SYS_PAGE_BYTES;
}

ALWAYS_INLINE void range_enter(struct walk_range *range, uintptr_t stack) {
    const uintptr_t page_mask = SYS_PAGE_BYTES - 1;
    const uintptr_t near_bytes = 1u << 20;
    if (likely(stack >= range->low && stack < range->high)) return;
    if (stack < range->low && range->low - stack < near_bytes)
        range->low = stack & ~page_mask;  // grown downwards: the pages between are in use
    else
        range_restart(range, stack);
}

static enum step step_to(struct walk *walk, uintptr_t cfa) {
    if (unlikely(cfa <= walk->stack || cfa % WORD_BYTES)) return (enum step)CAIRN_CUT_BAD_STACK;
    if (unlikely(!range_holds(walk->range, walk->stack, cfa)))
        return (enum step)CAIRN_CUT_BAD_STACK;
    walk->pc = *(const uintptr_t *)(cfa - WORD_BYTES);
    walk->stack = cfa;
    return STEP_ON;
}

static bool frame_read(const struct walk *walk, uintptr_t *value) {
    uintptr_t slot = (uintptr_t)walk->frame_slot;
    if (unlikely(slot < walk->range->low || slot + WORD_BYTES > walk->range->high) &&
        !(slot % WORD_BYTES == 0 && sys_is_readable((const void *)slot)))
        return false;
    *value = *walk->frame_slot;
    return true;
}

// Code without unwind information, mostly generated: if it keeps a frame pointer, the pair (old
// frame pointer, return address) lies where it points.
static COLD enum step step_guess(struct walk *walk) {
    uintptr_t frame = 0;
    if (walk->pc < SYS_PAGE_BYTES) return STEP_END;
    if (!frame_read(walk, &frame) || frame < walk->stack || frame % WORD_BYTES)
        return (enum step)CAIRN_CUT_NO_CFI;
    walk->is_guessed = true;
    if (step_to(walk, frame + 2 * WORD_BYTES) != STEP_ON || walk->pc < SYS_PAGE_BYTES)
        return (enum step)CAIRN_CUT_NO_CFI;
    walk->frame_slot = (const uintptr_t *)frame;
    return STEP_ON;
}

// Where a register rule says its value is stored; 0 if the form is unsupported.
static uintptr_t slot_of(const struct row_register *rule, const struct row_registers *registers,
                         uintptr_t cfa) {
    uintptr_t slot = 0;
    if (rule->how == ROW_AT_CFA) return cfa + (uintptr_t)rule->offset;
    if (rule->how == ROW_AT_EXPRESSION && row_evaluate(&rule->expression, registers, cfa, &slot))
        return slot;
    return 0;
}

static bool row_of(uintptr_t pc, struct row *row) {
    struct object object;
    if (!object_find(pc - 1, &object)) return false;
    struct row_source source = {(const uint8_t *)object.start, (const uint8_t *)object.end,
                                object.eh_frame_hdr};
    return row_find(&source, pc - 1, row);
}

static bool cfa_of(const struct row *row, const struct row_registers *registers, uintptr_t *cfa) {
    if (row->is_cfa_expression) return row_evaluate(&row->cfa_expression, registers, 0, cfa);
    if (row->cfa_register == REGISTER_STACK)
        *cfa = registers->stack + (uintptr_t)row->cfa_offset;
    else if (row->cfa_register == REGISTER_FRAME && registers->is_frame_known)
        *cfa = registers->frame + (uintptr_t)row->cfa_offset;
    else
        return false;
    return true;
}

// After a signal frame the stack may be another one: its memory becomes the range.
static bool walk_cross(struct walk *walk, uintptr_t cfa) {
    if (!sys_is_readable((const void *)cfa)) return false;
    if (cfa < walk->range->low || cfa >= walk->range->high) range_restart(walk->range, cfa);
    return true;
}

static COLD enum step step_by_row(struct walk *walk) {
    struct row row;
    uintptr_t cfa = 0;
    struct row_registers registers = {.pc = walk->pc - 1, .stack = walk->stack};
    if (!row_of(walk->pc, &row)) return (enum step)CAIRN_CUT_NO_CFI;
    registers.is_frame_known = frame_read(walk, &registers.frame);
    if (!cfa_of(&row, &registers, &cfa)) return (enum step)CAIRN_CUT_UNSUPPORTED;
    uintptr_t return_slot = slot_of(&row.ret, &registers, cfa);
    if (!return_slot || row.frame.how == ROW_UNSUPPORTED) return (enum step)CAIRN_CUT_UNSUPPORTED;
    if (!row.is_signal_frame && cfa <= walk->stack) return (enum step)CAIRN_CUT_BAD_STACK;
    if (return_slot % WORD_BYTES || !sys_is_readable((const void *)return_slot))
        return (enum step)CAIRN_CUT_BAD_STACK;
    if (row.frame.how == ROW_AT_CFA || row.frame.how == ROW_AT_EXPRESSION) {
        uintptr_t slot = slot_of(&row.frame, &registers, cfa);
        if (!slot) return (enum step)CAIRN_CUT_UNSUPPORTED;
        walk->frame_slot = (const uintptr_t *)slot;
    }
    walk->pc = *(const uintptr_t *)return_slot + (row.is_signal_frame ? 1 : 0);
    walk->stack = cfa;
    return walk_cross(walk, cfa) ? STEP_ON : (enum step)CAIRN_CUT_BAD_STACK;
}

static COLD enum step step_rare(struct walk *walk, uint64_t rule) {
    switch (rule_kind(rule)) {
    case RULE_SLOW:
        return step_by_row(walk);
    case RULE_NO_CFI:
        return step_guess(walk);
    }
    return STEP_END;
}

ALWAYS_INLINE enum step step_by_frame(struct walk *walk, uint64_t rule) {
    uintptr_t frame = 0;
    if (unlikely(!frame_read(walk, &frame))) return (enum step)CAIRN_CUT_BAD_STACK;
    return step_to(walk, frame + rule_cfa_offset(rule));
}

ALWAYS_INLINE enum step step_once(struct walk *walk) {
    uint64_t rule = rule_look_up(walk->pc);
    if (unlikely(rule_kind(rule) == RULE_NONE)) {
        rule = rule_find_slow(walk->pc);
        walk->has_new_code = true;
    }
    enum step step;
    if (likely(rule_kind(rule) <= RULE_STACK_SAVED))
        step = step_to(walk, walk->stack + rule_cfa_offset(rule));
    else if (likely(rule_kind(rule) <= RULE_FRAME_SAVED))
        step = step_by_frame(walk, rule);
    else
        return step_rare(walk, rule);
    if (rule_saved_offset(rule))
        walk->frame_slot = (const uintptr_t *)(walk->stack - rule_saved_offset(rule));
    return step;
}

struct walk_result walk_stack(const struct walk_start *start, struct walk_range *range,
                              uintptr_t *frames, uint32_t capacity) {
    struct walk walk = {start->pc, start->stack, start->frame_slot, range, false, false};
    uint32_t count = 0;
    enum step step = STEP_ON;
    range_enter(range, start->stack);
    while (step == STEP_ON && count < capacity - 1) {
        frames[count++] = walk.pc;
        step = step_once(&walk);
    }
    if (frames[count - 1] < SYS_PAGE_BYTES) count--;  // the zero that ends some stacks
    if (step == STEP_ON) step = (enum step)CAIRN_CUT_DEPTH;
    if (step == STEP_END && walk.is_guessed) step = (enum step)CAIRN_CUT_GUESSED;
    if (step != STEP_END) frames[count++] = (uintptr_t)step;
    return (struct walk_result){count, walk.has_new_code};
}
