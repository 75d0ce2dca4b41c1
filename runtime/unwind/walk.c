// SPDX-License-Identifier: Apache-2.0
// The frame pointer is never loaded unless a rule needs it: the walk carries the address of the
// slot that holds it. Each new CFA must lie above the old one and inside the known range of the
// stack, so that a damaged stack ends the walk instead of the process.
#include "runtime/unwind/walk.h"

#include "format/format.h"
#include "runtime/sys/object.h"
#include "runtime/sys/sys.h"
#include "runtime/unwind/eh_frame.h"
#include "runtime/unwind/trace_cut.h"
#include "runtime/unwind/unwind_cache.h"
#include "runtime/unwind/walk_plain.h"
#include "runtime/unwind/walk_range.h"

enum { WORD_BYTES = 8 };

// frame.rule of frames whose step depends on more than the stack pointer; like FRAME_RULE_GUESSED
// no word of a rule.
#define NO_PLAIN_RULE UINT32_MAX

struct walk {
    uintptr_t pc;
    uintptr_t stack;
    const uintptr_t *frame_slot;
    struct walk_range *range;
    uintptr_t used_frame;  // the frame pointer that the last step used, or 0
    uint32_t plain_rule;   // of the last step, or one of the above
    bool is_slow;          // the last step cannot be verified by comparing
    bool is_guessed;
    uintptr_t guess_high;  // range->high before the first guess
    bool is_cut_sure;      // the words that were compared say that the way ends here
    bool has_new_code;
    bool is_search;  // may not lead along the stack of an event: no rule is remembered
    bool has_met_signal;
#if defined(__aarch64__)
    const uintptr_t *return_slot;  // that the last plain step read
    const uintptr_t *link_slot;    // the return address of an interrupted function without a frame
    bool is_stack_vague;           // guessed: the stack pointer may lie further out
#endif
};

// The end of a step: go on, or the reason why not.
enum step { STEP_ON = 0, STEP_END = CAIRN_CUT_LIMIT };  // between them: enum cairn_cut

static COLD bool is_step_possible_slow(struct walk *walk, uintptr_t cfa) {
    if (cfa <= walk->stack || cfa % WORD_BYTES) return false;
    return range_extend_slow(walk->range, cfa, walk->is_guessed);
}

// Where the last plain step found the return address, and what lay there.
#if defined(__aarch64__)
ALWAYS_INLINE bool step_note_return(struct walk *walk, uintptr_t slot) {
    if (unlikely(slot < walk->stack)) return false;
    walk->return_slot = (const uintptr_t *)slot;
    walk->link_slot = NULL;
    return true;
}
ALWAYS_INLINE const uintptr_t *step_return_slot(const struct walk *walk) {
    return walk->return_slot;
}
ALWAYS_INLINE uintptr_t step_return_word(const struct walk *walk) {
    return *walk->return_slot;
}
#else
ALWAYS_INLINE bool step_note_return(const struct walk *walk, uintptr_t slot) {
    (void)walk, (void)slot;
    return true;
}
ALWAYS_INLINE const uintptr_t *step_return_slot(const struct walk *walk) {
    return (const uintptr_t *)(walk->stack - WORD_BYTES);
}
ALWAYS_INLINE uintptr_t step_return_word(const struct walk *walk) {
    return walk->pc;
}
#endif

// To the frame whose stack begins at `cfa`, if that lies above the present one on readable memory;
// the return address lies `return_offset` below.
ALWAYS_INLINE enum step step_to(struct walk *walk, uintptr_t cfa, uintptr_t return_offset) {
    bool is_inside = cfa > walk->stack && cfa <= walk->range->high && cfa % WORD_BYTES == 0;
    if (unlikely(!is_inside) && !is_step_possible_slow(walk, cfa))
        return (enum step)CAIRN_CUT_BAD_STACK;
    if (!step_note_return(walk, cfa - return_offset)) return (enum step)CAIRN_CUT_BAD_STACK;
    walk->pc = processor_code_address(sys_read_word(cfa - return_offset));
    walk->stack = cfa;
    return STEP_ON;
}

ALWAYS_INLINE bool is_slot_readable(const struct walk *walk, uintptr_t slot) {
    const struct walk_range *range = walk->range;  // its size is at least a page, if it has any
    if (likely(slot >= range->low && slot < range->high && range->high - slot >= WORD_BYTES))
        return true;
    return slot % WORD_BYTES == 0 && sys_is_readable((const void *)slot);
}

static bool frame_read(const struct walk *walk, uintptr_t *value) {
    uintptr_t slot = (uintptr_t)walk->frame_slot;
    if (unlikely(!is_slot_readable(walk, slot))) return false;
    *value = sys_read_word(slot);
    return true;
}

// A guess depends on the frame pointer and on the word that it leads to, so it can be verified
// where that word is sure to be one of this stack: what lies elsewhere may be gone by then. Not so
// on aarch64: after the frame record there may be more of a frame, so after a guess only the frame
// pointer is sure. Functions that save a record keep the frame pointer on it: the CFA follows.
#if defined(__aarch64__)
static void step_end_guess(struct walk *walk, uintptr_t frame) {
    (void)frame;
    walk->is_stack_vague = true;
}
static void step_end_cut(struct walk *walk, uintptr_t frame) {
    (void)walk, (void)frame;
}
static COLD void step_make_sure_slow(struct walk *walk, uint64_t rule) {
    uintptr_t frame = 0;
    walk->is_stack_vague = false;
    if (rule_kind(rule) != RULE_STACK_SAVED || !frame_read(walk, &frame)) return;
    uintptr_t stack = frame + rule_record_offset(rule) - rule_cfa_offset(rule);
    if (frame >= walk->stack && stack >= walk->stack) walk->stack = stack;
}
ALWAYS_INLINE void step_make_sure(struct walk *walk, uint64_t rule) {
    if (unlikely(walk->is_stack_vague)) step_make_sure_slow(walk, rule);
}
#else
static inline void step_end_guess(struct walk *walk, uintptr_t frame) {
    if (frame + 2 * WORD_BYTES > walk->range->sure_high) return;
    walk->is_slow = false;
    walk->used_frame = frame;
}
static inline void step_end_cut(struct walk *walk, uintptr_t frame) {
    walk->is_cut_sure = frame != 0;  // 0 is no frame pointer that was used
    walk->is_slow = !walk->is_cut_sure;
    walk->used_frame = frame;
}
ALWAYS_INLINE void step_make_sure(struct walk *walk, uint64_t rule) {
    (void)walk, (void)rule;
}
#endif

static void walk_note_guess(struct walk *walk) {
    if (!walk->is_guessed) walk->guess_high = walk->range->high;
    walk->is_guessed = true;
}

// Memory that only guesses led to is believed to be stack if the way then went to the outermost
// frame. Otherwise no later guess goes there, since it may be gone by then.
static void walk_settle_guesses(const struct walk *walk, enum step step) {
    struct walk_range *range = walk->range;
    bool is_whole = step == STEP_END && walk->pc >= SYS_PAGE_LEAST;
    if (!walk->is_guessed || is_whole || range->high <= walk->guess_high) return;
    if (walk->guess_high > range->low)
        range->high = range->unreadable = walk->guess_high;
    else
        range->low = range->high = 0;  // another stack by now: it is asked for again
}

// Tells a guessed address that a module's code says is none. Its rule may be remembered: no stack
// holds it, so nobody waits for its code to be new.
static bool is_guess_false(const struct walk *walk) {
    uint64_t rule = rule_look_up(walk->pc);
    if (rule_kind(rule) != RULE_NONE) return rule_is_no_return(rule);
    if (!rule_is_no_return(rule_work_out(walk->pc))) return false;
    if (!walk->is_search) rule_find_slow(walk->pc);
    return true;
}

// Code without unwind information, mostly generated: if it keeps a frame pointer, the pair (old
// frame pointer, return address) lies where it points.
static COLD enum step step_guess(struct walk *walk) {
    uintptr_t frame = 0;
    if (walk->pc < SYS_PAGE_LEAST) return STEP_END;
    if (!frame_read(walk, &frame)) return (enum step)CAIRN_CUT_NO_CFI;
    if (frame < walk->stack || frame % WORD_BYTES) {
        step_end_cut(walk, frame);
        return (enum step)CAIRN_CUT_NO_CFI;
    }
    walk_note_guess(walk);
    if (step_to(walk, frame + 2 * WORD_BYTES, WORD_BYTES) != STEP_ON || walk->pc < SYS_PAGE_LEAST ||
        is_guess_false(walk))
        return (enum step)CAIRN_CUT_NO_CFI;
    step_end_guess(walk, frame);
    walk->plain_rule = FRAME_RULE_GUESSED;
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
    if (cfa >= walk->range->low && cfa < walk->range->high) return true;
    if (!sys_is_readable((const void *)cfa)) return false;
    range_restart(walk->range, cfa);
    return true;
}

// Where the return address of a frame that ends at `cfa` is; 0: unknown. aarch64: a function that
// calls nobody may leave it in the register and use no stack. That is on the way outwards only if a
// signal handler interrupted it.
static uintptr_t return_slot_of(struct walk *walk, const struct row *row,
                                const struct row_registers *registers, uintptr_t cfa) {
#if defined(__aarch64__)
    const uintptr_t *link_slot = walk->link_slot;
    walk->link_slot = NULL;
    if (row->ret.how == ROW_SAME) return (uintptr_t)link_slot;
#else
    (void)walk;
#endif
    return slot_of(&row->ret, registers, cfa);
}

static bool is_cfa_above(const struct walk *walk, const struct row *row, uintptr_t cfa) {
#if defined(__aarch64__)
    if (row->ret.how == ROW_SAME) return cfa >= walk->stack;
#endif
    return row->is_signal_frame || cfa > walk->stack;
}

static COLD enum step step_by_row(struct walk *walk) {
    struct row row;
    uintptr_t cfa = 0;
    struct row_registers registers = {.pc = walk->pc - 1, .stack = walk->stack};
    if (!row_of(walk->pc, &row)) return (enum step)CAIRN_CUT_NO_CFI;
    walk->has_met_signal |= row.is_signal_frame;
    registers.is_frame_known = frame_read(walk, &registers.frame);
    if (!cfa_of(&row, &registers, &cfa)) return (enum step)CAIRN_CUT_UNSUPPORTED;
    uintptr_t return_slot = return_slot_of(walk, &row, &registers, cfa);
    if (!return_slot || row.frame.how == ROW_UNSUPPORTED) return (enum step)CAIRN_CUT_UNSUPPORTED;
    if (!is_cfa_above(walk, &row, cfa)) return (enum step)CAIRN_CUT_BAD_STACK;
    if (return_slot % WORD_BYTES || !is_slot_readable(walk, return_slot))
        return (enum step)CAIRN_CUT_BAD_STACK;
    if (row.frame.how == ROW_AT_CFA || row.frame.how == ROW_AT_EXPRESSION) {
        uintptr_t slot = slot_of(&row.frame, &registers, cfa);
        if (!slot) return (enum step)CAIRN_CUT_UNSUPPORTED;
        if (slot % WORD_BYTES || !is_slot_readable(walk, slot))
            return (enum step)CAIRN_CUT_BAD_STACK;
        walk->frame_slot = (const uintptr_t *)slot;
    }
    walk->pc = processor_code_address(sys_read_word(return_slot)) +
               (row.is_signal_frame ? PROCESSOR_INSTRUCTION_BYTES : 0);
    walk->stack = cfa;
    return walk_cross(walk, cfa) ? STEP_ON : (enum step)CAIRN_CUT_BAD_STACK;
}

// Over the frame of a signal handler's caller, where the processor knows it without unwind
// information; false: it is none.
#if defined(__aarch64__)
static COLD bool step_signal(struct walk *walk, enum step *step) {
    struct processor_signal interrupted;
    if (!processor_is_signal(walk->pc, walk->stack, &interrupted)) return false;
    walk->has_met_signal = true;
    walk->pc = processor_code_address(interrupted.pc) + PROCESSOR_INSTRUCTION_BYTES;
    walk->frame_slot = interrupted.frame_slot;
    walk->link_slot = interrupted.link_slot;
    walk->stack = interrupted.stack;
    bool is_stack = walk->stack % WORD_BYTES == 0 && walk_cross(walk, walk->stack);
    *step = is_stack ? STEP_ON : (enum step)CAIRN_CUT_BAD_STACK;
    return true;
}
#else
static inline bool step_signal(struct walk *walk, enum step *step) {
    (void)walk, (void)step;
    return false;
}
#endif

static COLD enum step step_rare(struct walk *walk, uint64_t rule) {
    enum step step;
    walk->is_slow = rule_kind(rule) != RULE_END;
    if (walk->is_slow && step_signal(walk, &step)) return step;
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
    walk->used_frame = frame;
    return step_to(walk, frame + rule_cfa_offset(rule), rule_return_offset(rule));
}

// The mark comes first: a walk that is torn out here for good leaves a rule without its code noted.
static COLD uint64_t rule_of_new_code(struct walk *walk) {
    walk->has_new_code = true;
    if (walk->is_search) return rule_work_out(walk->pc);
    walk->range->has_new_code = true;
    compiler_barrier();
    return rule_find_slow(walk->pc);
}

ALWAYS_INLINE enum step step_once(struct walk *walk) {
    walk->used_frame = 0;
    walk->plain_rule = NO_PLAIN_RULE;
    uint64_t rule = rule_look_up(walk->pc);
    if (unlikely(rule_kind(rule) == RULE_NONE)) rule = rule_of_new_code(walk);
    enum step step;
    if (likely(rule_kind(rule) <= RULE_STACK_SAVED)) {
        walk->plain_rule = (uint32_t)rule;
        step_make_sure(walk, rule);
        step = step_to(walk, walk->stack + rule_cfa_offset(rule), rule_return_offset(rule));
    } else if (likely(rule_kind(rule) <= RULE_FRAME_SAVED))
        step = step_by_frame(walk, rule);
    else
        return step_rare(walk, rule);
    if (rule_saved_offset(rule))
        walk->frame_slot = (const uintptr_t *)(walk->stack - rule_saved_offset(rule));
    return step;
}

// A walk in progress over its thread's trace.
struct progress {
    struct walk walk;
    struct fresh_frame *fresh;  // frames met so far, innermost first
    uint32_t fresh_count;
    uint32_t slow_count;    // fresh_count when the outermost unverifiable frame was met
    uint32_t usable_count;  // of the old trace
    int64_t candidate;      // frame of the old trace to compare with next; negative: none left
    uint32_t differs;       // what checks_verify said of the candidate; 0: not asked
    int64_t hit;            // frame of the old trace from which on it holds; negative: none
};

// The rest of the fresh frame is set by the step that follows, unless the walk ends here.
ALWAYS_INLINE void progress_add(struct progress *progress, const struct walk *walk) {
    struct frame *frame = &progress->fresh[progress->fresh_count++].frame;
    frame->rule = NO_PLAIN_RULE;
    frame->stack = walk->stack;
    frame->pc = walk->pc;
    frame->frame_slot = walk->frame_slot;
}

// The frame `at` of the old trace as if it had been met afresh.
static struct fresh_frame fresh_again(const struct walk_trace *trace, uint32_t at) {
    struct fresh_frame fresh = {.frame = trace->frames[at]};
    uint32_t first = at ? trace->frames[at - 1].check_count : 0;
    for (uint32_t i = first; i < fresh.frame.check_count; i++) {
        const struct walk_check *check = &trace->checks[i];
        if (check->slot == fresh.frame.frame_slot) {
            fresh.used_frame = check->value;
        } else {
            fresh.read = *check;
        }
    }
    return fresh;
}

// Goes on from frame `at` of the old trace, whose inner neighbours up to `from` are as they were.
static void progress_reuse(struct progress *progress, const struct walk_trace *trace, uint32_t from,
                           uint32_t at) {
    const struct frame *frames = trace->frames;
    progress->candidate = -1;
    if (progress->fresh_count + (from - at) >= trace->limit) return;
    progress->fresh_count--;  // the frame just met is frame `from`
    for (uint32_t i = from + 1; i-- > at;) {
        progress->fresh[progress->fresh_count++] = fresh_again(trace, i);
        if (i > at && frames[i].rule == FRAME_RULE_GUESSED) walk_note_guess(&progress->walk);
    }
    progress->walk.pc = frames[at].pc;
    progress->walk.stack = frames[at].stack;
    progress->walk.frame_slot = frames[at].frame_slot;
    progress->candidate = (int64_t)at - 1;
}

// The frame whose step read the word number `check`, counted from 1: `at` or one further out. No
// step reads more than CHECKS_PER_FRAME words, so that half of the distance can be left out at
// once.
ALWAYS_INLINE uint32_t frame_of_check(const struct frame *frames, uint32_t at, uint32_t check) {
    uint32_t beyond = frames[at].check_count - check;
    for (; beyond >= CHECKS_PER_FRAME; beyond = frames[at].check_count - check)
        at -= beyond / CHECKS_PER_FRAME;
    while (at > 0 && frames[at - 1].check_count >= check) at--;
    return at;
}

// A stack with a guess ends in a mark, and no other does: the old trace from frame `at` on is the
// rest of this stack only if that is so of both together.
static COLD bool is_mark_right(const struct walk *walk, const struct walk_trace *trace,
                               int64_t at) {
    bool has_mark = trace->frames[0].pc == CAIRN_CUT_GUESSED;
    bool has_guess = trace->guessed_count && trace->guessed_count <= at + 1;
    return has_mark == (has_guess || walk->is_guessed);
}

// True if the rest of the stack is that of the old trace.
ALWAYS_INLINE bool progress_meets(struct progress *progress, struct walk_trace *trace) {
    const struct frame *frames = trace->frames;
    const struct walk *walk = &progress->walk;
    int64_t at = progress->candidate;
    while (at >= 0 && frames[at].stack < walk->stack) at--;
    progress->candidate = at;
    if (at < 0 || frames[at].stack != walk->stack || frames[at].pc != walk->pc) return false;
    if (unlikely(trace->guessed_count || walk->is_guessed) && !is_mark_right(walk, trace, at))
        return false;
    if (unlikely(frames[at].frame_slot != walk->frame_slot) &&
        !trace_move_slot(trace, (uint32_t)at, walk->frame_slot))
        return false;
    uint32_t differs = progress->differs;
    progress->differs = 0;
    if (!differs) differs = checks_verify(trace->checks, frames[at].check_count);
    if (likely(differs == 0)) {
        progress->hit = at;
        return true;
    }
    uint32_t from = (uint32_t)at;
    progress_reuse(progress, trace, from, frame_of_check(frames, from, differs));
    return false;
}

ALWAYS_INLINE enum step progress_step(struct progress *progress) {
    struct walk *walk = &progress->walk;
    struct fresh_frame *fresh = &progress->fresh[progress->fresh_count - 1];
    enum step step = step_once(walk);
    fresh->used_frame = walk->used_frame;
    fresh->read.slot = NULL;
    fresh->frame.rule = NO_PLAIN_RULE;
    if (likely(step == STEP_ON)) {
        fresh->frame.rule = walk->plain_rule;
        fresh->read = (struct walk_check){step_return_slot(walk), step_return_word(walk)};
    }
    if (unlikely(walk->is_slow)) {
        walk->is_slow = false;
        fresh->read.slot = NULL;
        progress->slow_count = progress->fresh_count;
        // A guessed stack goes on to its end, where the mark is put.
        progress->candidate = walk->is_guessed ? -1 : (int64_t)progress->usable_count - 1;
    }
    return step;
}

// Says how a walk ended that has no room for the frame at hand: a zero there is the end of the
// stack.
static COLD enum step step_at_limit(const struct walk_trace *trace, const struct walk *walk) {
    if (trace->limit != walk_cut_limit) return (enum step)CAIRN_CUT_DEPTH;
    return walk->pc < SYS_PAGE_LEAST ? STEP_END : (enum step)CAIRN_CUT_MAX_DEPTH;
}

// The end of a walk that met nothing known: takes away the zero that ends some stacks (the word
// that held it stays one to check), and puts a pseudo frame outermost if the stack was cut. One
// that was to be cut is as sure as the frames that it has, if none of these is guessed.
static void progress_finish(struct progress *progress, const struct walk_trace *trace,
                            enum step step) {
    if (unlikely(step == STEP_ON)) step = step_at_limit(trace, &progress->walk);
    if (progress->fresh[progress->fresh_count - 1].frame.pc < SYS_PAGE_LEAST)
        progress->fresh_count--;
    if (progress->slow_count > progress->fresh_count) progress->slow_count = progress->fresh_count;
    walk_settle_guesses(&progress->walk, step);
    if (step == STEP_END && !progress->walk.is_guessed && !progress->slow_count)
        progress->walk.range->sure_high = progress->walk.stack;
    if (step == STEP_END && progress->walk.is_guessed) step = (enum step)CAIRN_CUT_GUESSED;
    if (step == STEP_END) return;
    bool is_wanted = step == (enum step)CAIRN_CUT_MAX_DEPTH;
    uintptr_t stack = is_wanted ? progress->walk.stack : 0;
    progress->fresh[progress->fresh_count++] = (struct fresh_frame){
        .frame = {.pc = (uintptr_t)step, .rule = NO_PLAIN_RULE, .stack = stack}};
    bool is_sure = step == (enum step)CAIRN_CUT_GUESSED || progress->walk.is_cut_sure ||
                   (is_wanted && !progress->walk.is_guessed);
    if (!is_sure) progress->slow_count = progress->fresh_count;
}

// The old trace up to the hit, then the fresh frames: the new trace. Returns how many outer frames
// have the same addresses as before.
static uint32_t trace_rebuild(struct walk_trace *trace, const struct progress *progress) {
    struct frame *frames = trace->frames;
    struct walk_check *checks = trace->checks;
    uint32_t kept = (uint32_t)(progress->hit + 1), same = kept, old_count = trace->count;
    uint32_t fresh_count = progress->fresh_count - (kept ? 1 : 0);  // the last one is the hit
    uint32_t count = kept + fresh_count, check_count = kept ? frames[kept - 1].check_count : 0;
    const struct fresh_frame *fresh = &progress->fresh[fresh_count];
    if (trace->guessed_count > kept) trace->guessed_count = 0;
    for (uint32_t i = kept; i < count; i++) {
        fresh--;
        if (same == i && i < old_count && frames[i].pc == fresh->frame.pc) same++;
        check_count = checks_put(checks, check_count, fresh);
        if (unlikely(fresh->frame.rule == FRAME_RULE_GUESSED) && !trace->guessed_count)
            trace->guessed_count = i + 1;
        frames[i] = fresh->frame;
        frames[i].check_count = check_count;
    }
    trace->count = count;
    trace->usable_count = progress->slow_count ? count - progress->slow_count : count;
    return same;
}

static struct walk_result walk_fresh(struct walk_trace *trace, const struct walk_start *start,
                                     bool has_new_code);

static COLD struct walk_result walk_again(struct walk_trace *trace,
                                          const struct walk_start *start) {
    trace->count = trace->usable_count = 0;
    return walk_fresh(trace, start, true);
}

static bool trace_is_cut(const struct walk_trace *trace) {
    return trace->count && trace->frames[0].pc == CAIRN_CUT_MAX_DEPTH;
}

// The outer frames that a cut stack lacks which has become shallower, with the mark if there are
// still more: into fresh frames, innermost first, behind those of the walk. False: not all of them
// can be verified.
static bool walk_beyond(struct walk_trace *trace, const struct progress *progress,
                        struct progress *beyond) {
    const struct frame *outermost = &trace->frames[1];
    const uint32_t real = (uint32_t)progress->hit + progress->fresh_count - 1;
    const uint32_t wanted = trace->limit - real;  // with the outermost that is known
    *beyond = (struct progress){
        .walk = {outermost->pc, outermost->stack, outermost->frame_slot, &trace->range},
        .fresh = progress->fresh + progress->fresh_count,
        .candidate = -1,
        .hit = -1,
    };
    enum step step;
    do {
        progress_add(beyond, &beyond->walk);
        step = progress_step(beyond);
    } while (step == STEP_ON && beyond->fresh_count < wanted);
    progress_finish(beyond, trace, step);
    return !beyond->walk.is_guessed && !beyond->slow_count && !beyond->walk.has_new_code;
}

// Says of a trace that the next one may have another outer end.
static uint32_t trace_settle(struct walk_trace *trace, uint32_t keep) {
    bool is_cut = trace_is_cut(trace);
    trace->crowded = is_cut ? 0 : trace->limit - 1;
    if (is_cut) trace->guessed_count = UINT32_MAX;
    return keep;
}

// The part of the old trace that was met is the rest of the stack but for the number of its frames:
// outer ones go or come back, so that there are as many as may be. False: a full walk must say
// which, and the trace is as it was.
static bool trace_refit(struct walk_trace *trace, struct progress *progress, uint32_t *keep) {
    const bool was_cut = trace_is_cut(trace);
    const uint32_t total = (uint32_t)progress->hit + progress->fresh_count;
    const uint32_t real = total - was_cut, most = trace->limit - 1;
    struct trace_part part = {was_cut, (uint32_t)progress->hit};
    struct progress beyond;
    struct fresh_frame mark = {.frame = {.pc = CAIRN_CUT_MAX_DEPTH, .rule = NO_PLAIN_RULE}};
    uint32_t other;
    if (progress->slow_count || (!was_cut && trace->frames[0].pc < CAIRN_CUT_LIMIT)) return false;
    if (real > most) {
        part.first += real - most;
        mark.frame.stack = trace->frames[part.first - 1].stack;
        other = trace_exchange_outer(trace, part, &mark, 1);
        progress->hit = part.last - part.first + 1;
    } else {
        if (!walk_beyond(trace, progress, &beyond)) return false;
        const uint32_t more = beyond.fresh_count - 1;  // the first is the outermost known one
        other = trace_exchange_outer(trace, part, beyond.fresh + 1, more);
        progress->hit = part.last - part.first + more;
    }
    *keep = trace_rebuild(trace, progress);
    if (other <= progress->hit) *keep = other;
    return true;
}

// Handles a walk that leaves no room for another frame, or that has met a stack that was cut: it is
// done again if there is more room, or if it is the old trace and the fresh frames together that
// are too many: a full walk cuts them.
static NOINLINE struct walk_result walk_crowded(struct walk_trace *trace, struct progress *progress,
                                                const struct walk_start *start, bool has_new_code) {
    const int64_t count = progress->hit + progress->fresh_count;
    const bool is_cut_so = trace->limit == walk_cut_limit, was_cut = trace_is_cut(trace);
    if (!is_cut_so && count >= trace->limit - 1 && trace->deepen && trace->deepen(trace))
        return walk_again(trace, start);
    bool is_fit = progress->hit < 0 || (was_cut ? count == trace->limit : count < trace->limit);
    if (is_fit && (is_cut_so || count < trace->limit))
        return (struct walk_result){trace_settle(trace, trace_rebuild(trace, progress)),
                                    has_new_code};
    uint32_t keep;
    if (!is_cut_so || !trace_refit(trace, progress, &keep)) return walk_again(trace, start);
    return (struct walk_result){trace_settle(trace, keep), has_new_code};
}

// Goes on where a walk by plain rules has stopped.
static NOINLINE struct walk_result walk_rest(struct walk_trace *trace,
                                             const struct plain_walk *so_far, bool has_new_code) {
    struct progress progress = {
        .walk = {so_far->pc, so_far->stack, so_far->frame_slot, &trace->range},
        .fresh = trace->fresh,
        .fresh_count = so_far->fresh_count,
        .usable_count = trace->usable_count,
        .candidate = so_far->candidate,
        .differs = so_far->differs,
        .hit = -1,
    };
    enum step step = STEP_ON;
    do {
        progress_add(&progress, &progress.walk);
        if (progress_meets(&progress, trace)) break;
        step = progress_step(&progress);
    } while (step == STEP_ON && progress.fresh_count < trace->limit - 1);
    if (progress.hit < 0) progress_finish(&progress, trace, step);
    if (unlikely(progress.hit + progress.fresh_count >= trace->crowded))
        return walk_crowded(trace, &progress, so_far->start,
                            has_new_code || progress.walk.has_new_code);
    uint32_t keep = trace_rebuild(trace, &progress);
    return (struct walk_result){keep, has_new_code || progress.walk.has_new_code};
}

// Frames are new at least on the inside.
static struct walk_result walk_fresh(struct walk_trace *trace, const struct walk_start *start,
                                     bool has_new_code) {
    struct plain_walk walk = {.start = start};
    uint32_t keep = walk_plain(trace, &walk);
    if (likely(keep)) return (struct walk_result){keep, has_new_code};
    return walk_rest(trace, &walk, has_new_code);
}

// Steps outwards from frame `at` > 0 of the trace and enters what was read, if the caller's frame
// lies where it lay before. False: the trace does not fit, or the code has no rule yet. If one were
// remembered here and this proved to be no caller, the code would not be reported as new once it
// is.
static bool patch_step_slow(struct walk_trace *trace, uint32_t at) {
    struct frame *frame = &trace->frames[at], *outer = frame - 1;
    struct walk walk = {.pc = frame->pc,
                        .stack = frame->stack,
                        .frame_slot = frame->frame_slot,
                        .range = &trace->range,
                        .is_search = true};
    if (step_once(&walk) != STEP_ON || walk.is_slow || walk.has_new_code) return false;
    uint32_t check_count = frame->check_count - outer->check_count;
    if (walk.stack != outer->stack || walk.frame_slot != outer->frame_slot ||
        check_count != 1u + (walk.used_frame != 0))
        return false;
    if ((walk.plain_rule == FRAME_RULE_GUESSED) != (frame->rule == FRAME_RULE_GUESSED))
        return false;
    struct walk_check *checks = &trace->checks[outer->check_count];
    checks[0].value = step_return_word(&walk);
    if (walk.used_frame) checks[1] = (struct walk_check){frame->frame_slot, walk.used_frame};
    frame->rule = walk.plain_rule;
    trace->next_pc = walk.pc;
    return true;
}

// The word by which the step from a frame begins is not what it was: where that is the frame
// pointer, the other one lies elsewhere now.
ALWAYS_INLINE bool is_caller_changed(const struct walk_trace *trace, const struct frame *frame) {
    return frame != trace->frames && check_differs(&trace->checks[frame->check_count] - 1);
}

// Goes on outwards from frame `at` > 0 with another address in it, as long as frames are as is
// usual: by the same rule, which asks for nothing but the stack pointer, a frame leads from the
// same place to the same place, so only its return address is read, the only word that its step
// reads. Ends at a frame that is not so, at one from which on nothing need have changed, or at the
// outermost one, which it returns; `*pc` is its address. Each frame left behind has its own
// entered.
ALWAYS_INLINE uint32_t patch_usual(const struct walk_trace *trace, uint32_t at, uintptr_t *pc) {
    struct frame *frame = &trace->frames[at], *const outermost = trace->frames;
    struct walk_check *check = &trace->checks[frame->check_count];  // that of the step before
    uintptr_t now = *pc;
    while (frame != outermost) {
        if (unlikely(!rule_is_first(now, frame->rule))) break;
        frame->pc = now;
        frame--;
        check--;
        check->value = *check->slot;
        now = processor_code_address(check->value);
        if (frame->pc == now && !is_caller_changed(trace, frame)) break;
    }
    *pc = now;
    return (uint32_t)(frame - outermost);
}

// One step that may be unusual, from frame `at` > 0; the address of the next one. `is_same`: the
// frame's address is what it was, and so is its rule.
ALWAYS_INLINE bool patch_step(struct walk_trace *trace, uint32_t at, bool is_same) {
    const struct frame *frame = &trace->frames[at];
    bool is_usual =
        is_same ? rule_is_plain(frame->rule) : (uint32_t)rule_look_up(frame->pc) == frame->rule;
    if (unlikely(!is_usual)) return patch_step_slow(trace, at);
    struct walk_check *check = &trace->checks[frame[-1].check_count];
    check->value = *check->slot;
    trace->next_pc = processor_code_address(check->value);
    return true;
}

// Frame 0 was the mark of a cut stack, and is again: there are still frames beyond.
static COLD bool is_beyond_cut(struct walk_trace *trace, uintptr_t pc) {
    if (trace->guessed_count != UINT32_MAX || pc < SYS_PAGE_LEAST) return false;
    trace->frames[0].pc = CAIRN_CUT_MAX_DEPTH;
    return true;
}

// The most common change: frames lie where they lay, but some were called from other places. Their
// addresses are exchanged in place. False: the stack has another shape; what is left of the trace,
// `count` frames, still holds.
static bool trace_patch(struct walk_trace *trace, const struct walk_start *start, uint32_t differs,
                        struct walk_result *result) {
    struct frame *frames = trace->frames;
    uint32_t count = trace->count, at = count - 1, lowest = count;
    if (count == 0 || trace->usable_count != count || frames[at].stack != start->stack ||
        frames[at].frame_slot != start->frame_slot)
        return false;
    uintptr_t pc = start->pc;
    if (differs == WALK_ELSEWHERE) differs = 0;
    result->has_new_code = false;
    for (;;) {
        bool is_same = frames[at].pc == pc;
        if (!is_same) {
            uint32_t from = at;
            at = patch_usual(trace, at, &pc);
            if (at != from) lowest = at + 1;
            if (frames[at].pc == pc) continue;
            frames[at].pc = pc;
            lowest = at;
        } else {
            if (!differs) differs = checks_verify(trace->checks, frames[at].check_count);
            if (differs == 0) break;
            at = frame_of_check(frames, at, differs);
            differs = 0;
        }
        if (at == 0 && is_beyond_cut(trace, pc)) {
            result->keep = 1;
            return true;
        }
        if (at == 0 || !patch_step(trace, at, is_same)) {
            trace->count = trace->usable_count = lowest;
            return false;
        }
        pc = trace->next_pc;
        at--;
    }
    result->keep = lowest;
    return true;
}

struct walk_result walk_stack_from(struct walk_trace *trace, const struct walk_start *start,
                                   uint32_t differs) {
    struct walk_result patched = {0};
    uint32_t generation = rule_generation();
    if (unlikely(trace->generation != generation)) trace->count = trace->usable_count = 0;
    trace->generation = generation;
    range_enter(&trace->range, start->stack);
    if (trace_patch(trace, start, differs, &patched)) return patched;
    return walk_fresh(trace, start, false);
}

static bool search_is_in_code(const struct walk_search *search, uintptr_t pc) {
    return pc >= search->code_start && pc < search->code_end;
}

void walk_search(struct walk_search *search, const struct walk_start *start,
                 struct walk_range known) {
    struct walk walk = {.pc = start->pc,
                        .stack = start->stack,
                        .frame_slot = start->frame_slot,
                        .range = &known,
                        .is_search = true};
    enum step step = STEP_ON;
    range_enter(&known, start->stack);
    for (uint32_t i = 0; i < CAIRN_DEPTH_MAX && !search->has_met_code; i++) {
        uintptr_t stack = walk.stack;
        search->has_met_code = search_is_in_code(search, walk.pc);
        walk.is_slow = false;
        step = step_once(&walk);
        if (step != STEP_ON || walk.is_guessed) break;
        // A slow step may lead to another stack.
        if (!walk.is_slow && search->address >= stack && search->address < walk.stack)
            search->is_inside = true;
    }
    search->is_complete = step == STEP_END && rule_kind(rule_work_out(walk.pc)) == RULE_END;
    search->has_met_signal = walk.has_met_signal;
    search->end = walk.stack;
}
