// SPDX-License-Identifier: Apache-2.0
#include "runtime/unwind/unwind_cache.h"

#include <string.h>

#include "runtime/sys/linker.h"
#include "runtime/sys/object.h"
#include "runtime/unwind/eh_frame.h"

struct rule_cache rule_cache;

static size_t cache_bytes(void) {
    return sizeof(uint64_t[RULE_WAYS]) * RULE_SETS;
}

bool rule_init(void) {
    rule_cache.words = sys_reserve(cache_bytes());
    rule_cache.set_mask = (1u << RULE_LEAST_BITS) - 1;
    return rule_cache.words != NULL;
}

uint64_t rule_touched_bytes(void) {
    unsigned char pages[sizeof(uint64_t[RULE_WAYS]) * RULE_SETS / SYS_PAGE_LEAST];
    uint64_t touched = 0;
    if (!sys_find_touched(rule_cache.words, cache_bytes() / sys_page_bytes(), pages)) return 0;
    for (size_t i = 0; i < cache_bytes() / sys_page_bytes(); i++)
        if (pages[i] & 1) touched += sys_page_bytes();
    return touched;
}

void rule_release(void) {
    if (rule_cache.words) sys_release(rule_cache.words, cache_bytes());
    rule_cache.words = NULL;
}

void rule_forget_all(void) {
    uint64_t *words = rule_cache.words;
    for (size_t i = 0; i < cache_bytes() / sizeof *words; i++)
        if (__atomic_load_n(&words[i], __ATOMIC_RELAXED))
            __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&rule_cache.generation, 1, __ATOMIC_RELEASE);
}

static bool fits(int64_t value, unsigned bits) {
    return value >= 0 && value % 8 == 0 && value / 8 < (int64_t)1 << bits;
}

static uint64_t rule_pack(enum rule_kind kind, int64_t cfa, int64_t saved) {
    return (uint64_t)kind | (uint64_t)cfa / 8 << RULE_CFA_SHIFT |
           (uint64_t)saved / 8 << RULE_SAVED_SHIFT;
}

#if defined(__aarch64__)
// The frame record lies inside the frame, its words side by side; or the return address alone does.
static uint64_t rule_with_return(const struct row *row, bool is_stack, bool is_frame_kept) {
    const int64_t word_bytes = 8;
    int64_t at = is_frame_kept ? row->ret.offset : row->frame.offset;
    int64_t below = (int64_t)(0 - (uint64_t)at);
    if (!fits(below, RULE_SAVED_BITS) || below < word_bytes || below > row->cfa_offset)
        return RULE_SLOW;
    if (is_frame_kept) return rule_pack(is_stack ? RULE_STACK : RULE_FRAME, row->cfa_offset, below);
    if (row->ret.offset != at + word_bytes) return RULE_SLOW;
    return rule_pack(is_stack ? RULE_STACK_SAVED : RULE_FRAME_SAVED, row->cfa_offset, below);
}
#else
// Where the return address is stored, as an offset from the CFA, in the common form.
enum { RETURN_OFFSET = -8 };

static uint64_t rule_with_return(const struct row *row, bool is_stack, bool is_frame_kept) {
    if (row->ret.offset != RETURN_OFFSET) return RULE_SLOW;
    if (is_frame_kept) return rule_pack(is_stack ? RULE_STACK : RULE_FRAME, row->cfa_offset, 0);
    if (!fits((int64_t)(0 - (uint64_t)row->frame.offset), RULE_SAVED_BITS)) return RULE_SLOW;
    return rule_pack(is_stack ? RULE_STACK_SAVED : RULE_FRAME_SAVED, row->cfa_offset,
                     -row->frame.offset);
}
#endif

static uint64_t rule_from_row(const struct row *row) {
    bool is_stack = row->cfa_register == REGISTER_STACK;
    bool is_frame = row->cfa_register == REGISTER_FRAME;
    bool is_frame_kept = row->frame.how == ROW_SAME || row->frame.how == ROW_UNDEFINED;
    if (row->ret.how == ROW_UNDEFINED) return RULE_END;
    if (row->is_signal_frame || row->is_cfa_expression || !(is_stack || is_frame)) return RULE_SLOW;
    if (row->ret.how != ROW_AT_CFA || !fits(row->cfa_offset, RULE_CFA_BITS)) return RULE_SLOW;
    if (is_stack && row->cfa_offset == 0) return RULE_SLOW;
    if (!is_frame_kept && row->frame.how != ROW_AT_CFA) return RULE_SLOW;
    return rule_with_return(row, is_stack, is_frame_kept);
}

// The newest rule goes first, the one before it is kept. True: there was one.
static bool word_put(uint32_t number, uint64_t word) {
    uint64_t *set = &rule_cache.words[number];
    uint64_t first = __atomic_load_n(set, __ATOMIC_RELAXED);
    if (first) __atomic_store_n(set + RULE_SETS, first, __ATOMIC_RELAXED);
    __atomic_store_n(set, word, __ATOMIC_RELAXED);
    return first != 0;
}

// The address that a word of this set is for.
static uintptr_t word_address(uint32_t number, uint64_t word) {
    const uintptr_t low_mask = ((uintptr_t)1 << RULE_LEAST_BITS) - 1;
    uintptr_t high = word >> RULE_BITS;
    return high << RULE_LEAST_BITS | ((number ^ high) & low_mask);
}

// Moves what lies in the first so many sets, and now belongs into others. A rule that another
// thread enters meanwhile may be lost.
static void words_spread(uint32_t set_count) {
    for (uint32_t i = 0; i < set_count * RULE_WAYS; i++) {
        uint32_t number = i / RULE_WAYS;
        uint64_t *place = &rule_cache.words[number + i % RULE_WAYS * RULE_SETS];
        uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);
        uint32_t wanted = word ? rule_set(word_address(number, word)) : number;
        if (wanted == number) continue;
        word_put(wanted, word);
        __atomic_store_n(place, 0, __ATOMIC_RELAXED);
    }
}

// An eighth of the sets hold two rules, so half as many rules as sets are known.
static COLD void sets_widen(void) {
    const uint32_t share = 8, times = 4;
    uint32_t mask = __atomic_load_n(&rule_cache.set_mask, __ATOMIC_RELAXED), now = mask;
    uint32_t full = __atomic_add_fetch(&rule_cache.full_count, 1, __ATOMIC_RELAXED);
    if (mask == RULE_SETS - 1 || full <= mask / share) return;
    uint32_t wider = times * mask + times - 1;
    if (wider > RULE_SETS - 1) wider = RULE_SETS - 1;
    if (!__atomic_compare_exchange_n(&rule_cache.set_mask, &now, wider, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&rule_cache.full_count, 0, __ATOMIC_RELAXED);
    words_spread(mask + 1);
}

static void rule_remember(uintptr_t pc, uint64_t rule) {
    if (word_put(rule_set(pc), rule_tag(pc) | rule)) sets_widen();
}

// The row at the first instruction of a function. On aarch64 glibc's does not say so: it has the
// return address still in its register, where no caller has put one.
static bool is_never_called(const struct row *row) {
#if defined(__aarch64__)
    if (row->ret.how == ROW_SAME) return true;
#endif
    return row->ret.how == ROW_UNDEFINED;
}

COLD bool rule_find_code(uintptr_t pc, uintptr_t *start, uintptr_t *end) {
    struct object object;
    if (pc >> PROCESSOR_ADDRESS_BITS || pc < SYS_PAGE_LEAST) return false;
    if (!object_find(pc - 1, &object)) return false;
    struct row_source source = {(const uint8_t *)object.start, (const uint8_t *)object.end,
                                object.eh_frame_hdr};
    return row_find_code(&source, pc - 1, start, end);
}

// A fiber of Boost.Context has no caller: the return address of its function leads to code without
// unwind information that ends the process, _exit(0) and a halt.
static bool is_end_of_fiber(uintptr_t pc, const struct object *object) {
#if defined(__x86_64__)
    static const uint8_t no_status_and_call[] = {0x48, 0x31, 0xff, 0xe8};
    enum { HALT = 0xf4, HALT_AT = 8 };
    const uint8_t *code = (const uint8_t *)pc;
    return object->end - pc > HALT_AT && sys_is_readable(code + HALT_AT) &&
           !memcmp(code, no_status_and_call, sizeof no_status_and_call) && code[HALT_AT] == HALT;
#else
    (void)pc, (void)object;
    return false;
#endif
}

// The dynamic linker's entry, where every process begins, has no unwind information; nor have its
// data, whose addresses lie on stacks.
static bool is_linker_entry(const struct object *object, uintptr_t pc) {
    const uintptr_t entry_bytes = 256;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)object->start;
    if (!linker_is_in(object->start, object->end)) return false;
    return pc - (object->bias + header->e_entry) < entry_bytes;
}

static const Elf64_Phdr *segment_find(const struct object *object, uintptr_t pc) {
    for (uint32_t i = 0; object->segments && i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD && pc - object->bias - segment->p_vaddr < segment->p_memsz)
            return segment;
    }
    return NULL;
}

// True of data, and of code that no call lies before.
static bool is_no_return(const struct object *object, uintptr_t pc) {
    const Elf64_Phdr *segment = segment_find(object, pc);
    if (!segment) return false;
    const uintptr_t start = object->bias + segment->p_vaddr, first = pc - PROCESSOR_CALL_BYTES;
    if (!(segment->p_flags & PF_X)) return true;
    return first >= start && sys_is_readable((const void *)first) &&
           sys_is_readable((const void *)pc) &&
           !processor_is_behind_call(pc, start, start + segment->p_memsz);
}

COLD uint64_t rule_work_out(uintptr_t pc) {
    struct object object;
    struct row row;
    uint64_t rule = RULE_NO_CFI;
    if (pc >> PROCESSOR_ADDRESS_BITS || pc < SYS_PAGE_LEAST) return RULE_NO_CFI;
    if (object_find(pc - 1, &object)) {
        struct row_source source = {(const uint8_t *)object.start, (const uint8_t *)object.end,
                                    object.eh_frame_hdr};
        if (row_find(&source, pc - 1, &row))
            rule = rule_from_row(&row);
        else if (row_find(&source, pc, &row) && is_never_called(&row))
            rule = RULE_END;  // so the byte before is not its own (makecontext)
        else if (is_linker_entry(&object, pc) || is_end_of_fiber(pc, &object))
            rule = RULE_END;
        else if (is_no_return(&object, pc))
            rule = RULE_NO_RETURN;
    }
    return rule;
}

COLD uint64_t rule_find_slow(uintptr_t pc) {
    uint64_t rule = rule_work_out(pc);
    if (!(pc >> PROCESSOR_ADDRESS_BITS) && pc >= SYS_PAGE_LEAST) rule_remember(pc, rule);
    return rule;
}
