// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/unwind_made.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "tool/attach/code_frames.h"
#include "tool/attach/executable.h"

// DWARF's numbers of registers, and how entries are written.
enum { FRAME = 6, STACK = 7, CALLER = 16, WORD = 8, ENTRY_ALIGN = 8 };
enum { FUNCTION_MAX_BYTES = 1 << 16, UNSIZED_MAX_BYTES = 256 };

// What entries have in common: a version, "zR", steps of 1 and -8 bytes, the return address, and
// how addresses are written; at a function's beginning the CFA is right above the return address.
static const uint8_t common[] = {20,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 1,
                                 'z',
                                 'R',
                                 0,
                                 1,
                                 0x78,
                                 CALLER,
                                 1,
                                 DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                                 DW_CFA_def_cfa,
                                 STACK,
                                 WORD,
                                 DW_CFA_offset | CALLER,
                                 1,
                                 0,
                                 0};
// The same of the code that handlers return to, "zRS": the registers lie where the kernel puts
// them.
static const uint8_t common_signal[] = {20, 0, 0,    0,      0,   0,
                                        0,  0, 1,    'z',    'R', 'S',
                                        0,  1, 0x78, CALLER, 1,   DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                                        0,  0, 0,    0,      0,   0};
// Offsets from the stack pointer of RSP, RBP and RIP in the kernel's structure (LEB128).
static const uint8_t signal_rules[] = {
    DW_CFA_def_cfa_expression, 4,      DW_OP_breg7, 0xa0,        0x01, DW_OP_deref,
    DW_CFA_expression,         FRAME,  3,           DW_OP_breg7, 0xf8, 0x00,
    DW_CFA_expression,         CALLER, 3,           DW_OP_breg7, 0xa8, 0x01};
static const uint8_t end_rules[] = {DW_CFA_undefined, CALLER};

struct function {
    uint64_t start, end;
    const char *name;  // "" of the program's entry
};

struct making {
    struct unwind_index *index;
    size_t row_count;  // of those that the file has
    Elf *elf;
    ARRAY(struct function) functions;
    size_t common_at, signal_at;
    bool has_failed;  // no memory
};

static void put(struct making *making, const void *bytes, size_t count) {
    for (size_t i = 0; i < count && !making->has_failed; i++) {
        uint8_t *byte = array_push(&making->index->made);
        if (byte)
            *byte = ((const uint8_t *)bytes)[i];
        else
            making->has_failed = true;
    }
}

static void put_byte(struct making *making, unsigned value) {
    uint8_t byte = (uint8_t)value;
    put(making, &byte, 1);
}

static void put_leb(struct making *making, uint64_t value) {
    const unsigned bits = 7, goes_on = 0x80;
    for (; value >= goes_on; value >>= bits) put_byte(making, (unsigned)value | goes_on);
    put_byte(making, (unsigned)value);
}

static void put_word(struct making *making, uint32_t word) {
    put(making, &word, sizeof word);
}

// Begins an entry; its length is not known yet.
static size_t begin_entry(struct making *making, size_t common_at, uint64_t bytes) {
    size_t at = making->index->made.count;
    put_word(making, 0);
    put_word(making, (uint32_t)(making->index->made.count - common_at));
    put_word(making, 0);
    put_word(making, (uint32_t)bytes);
    put_byte(making, 0);
    return at;
}

static void end_entry(struct making *making, size_t at, uint64_t start, uint64_t end) {
    while (making->index->made.count % ENTRY_ALIGN && !making->has_failed)
        put_byte(making, DW_CFA_nop);
    struct unwind_row *row = making->has_failed ? NULL : array_push(&making->index->rows);
    making->has_failed |= !row;
    if (!row) return;
    *row = (struct unwind_row){start, end, at, true};
    uint32_t length = (uint32_t)(making->index->made.count - at - sizeof length);
    memcpy(making->index->made.items + at, &length, sizeof length);
}

static void add_plain(struct making *making, size_t common_at, uint64_t start, uint64_t end,
                      const uint8_t *rules, size_t count) {
    size_t at = begin_entry(making, common_at, end - start);
    put(making, rules, count);
    end_entry(making, at, start, end);
}

// ---- of code ------------------------------------------------------------------------------------

static void put_frame(struct making *making, const struct code_frame *frame,
                      const struct code_frame *before) {
    put_byte(making, DW_CFA_def_cfa);
    put_leb(making, frame->is_by_frame_pointer ? FRAME : STACK);
    put_leb(making, (uint64_t)frame->distance);
    if (frame->saved == before->saved) return;
    if (frame->saved) {
        put_byte(making, DW_CFA_offset | FRAME);
        put_leb(making, (uint64_t)frame->saved / WORD);
    } else {
        put_byte(making, DW_CFA_same_value);
        put_leb(making, FRAME);
    }
}

static bool is_equal(const struct code_frame *a, const struct code_frame *b) {
    return a->is_by_frame_pointer == b->is_by_frame_pointer && a->distance == b->distance &&
           a->saved == b->saved;
}

// One run of instructions that are known, from `from` on; returns its end.
static size_t add_run(struct making *making, const struct function *function,
                      const struct code_frame *frames, size_t from, size_t to) {
    struct code_frame now = {.saved = 0};
    size_t entry = begin_entry(making, making->common_at, to - from), since = from;
    for (size_t at = from; at < to; at++) {
        if (!frames[at].is_known || (at > from && is_equal(&frames[at], &now))) continue;
        if (at > from) {
            put_byte(making, DW_CFA_advance_loc4);
            put_word(making, (uint32_t)(at - since));
        }
        put_frame(making, &frames[at], &now);
        now = frames[at];
        since = at;
    }
    end_entry(making, entry, function->start + from, function->start + to);
    return to;
}

// Instructions have a frame at their first byte alone: what follows belongs to it, up to the next
// one or a gap that no instruction reaches.
static void add_function(struct making *making, const struct function *function) {
    struct code_function code;
    size_t count = (size_t)(function->end - function->start);
    struct code_frame *frames = calloc(count, sizeof *frames);
    making->has_failed |= !frames;
    bool is_found = frames && executable_code(making->elf, 0, function->start, count, &code) &&
                    code_frames_find(&code, frames) && frames[0].is_known;
    if (is_found) add_run(making, function, frames, 0, count);
    free(frames);
}

static bool is_covered(const struct making *making, const struct function *function) {
    const struct unwind_row *rows = making->index->rows.items;
    size_t low = 0, high = making->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].end <= function->start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < making->row_count && rows[low].start < function->end;
}

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static void add_one(struct making *making, const struct function *function) {
    static const char *const ends[] = {"", "__clone"};
    static const char *const returns[] = {"__restore", "__restore_rt"};
    if (is_covered(making, function)) return;
    if (is_one_of(function->name, returns, sizeof returns / sizeof *returns))
        // a return address is looked for by the byte before it
        add_plain(making, making->signal_at, function->start - 1, function->end, signal_rules,
                  sizeof signal_rules);
    else if (is_one_of(function->name, ends, sizeof ends / sizeof *ends))
        add_plain(making, making->common_at, function->start, function->end, end_rules,
                  sizeof end_rules);
    else
        add_function(making, function);
}

// ---- functions ----------------------------------------------------------------------------------

static void note_symbols(struct making *making, Elf_Scn *section, const GElf_Shdr *about) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
        const char *name = elf_strptr(making->elf, about->sh_link, symbol.st_name);
        struct function *function = name ? array_push(&making->functions) : NULL;
        making->has_failed |= name && !function;
        if (function)
            *function = (struct function){symbol.st_value, symbol.st_value + symbol.st_size, name};
    }
}

static int compare_functions(const void *one, const void *other) {
    const struct function *a = one, *b = other;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->end > b->end ? -1 : a->end < b->end;
}

static void list_functions(struct making *making) {
    GElf_Ehdr header;
    for (Elf_Scn *section = elf_nextscn(making->elf, NULL); section;
         section = elf_nextscn(making->elf, section)) {
        GElf_Shdr about;
        if (gelf_getshdr(section, &about) && about.sh_type == SHT_SYMTAB)
            note_symbols(making, section, &about);
    }
    struct function *entry =
        gelf_getehdr(making->elf, &header) ? array_push(&making->functions) : NULL;
    if (entry) *entry = (struct function){header.e_entry, header.e_entry, ""};
    if (making->functions.count)
        qsort(making->functions.items, making->functions.count, sizeof *making->functions.items,
              compare_functions);
}

// Assembler's functions often have no size: they go up to the next one.
static bool complete(const struct making *making, size_t number, struct function *function) {
    const struct function *all = making->functions.items;
    size_t next = number + 1;
    *function = all[number];
    if (number && all[number - 1].start == function->start && all[number - 1].end > function->start)
        return false;  // another name of it
    while (next < making->functions.count && all[next].start == function->start) next++;
    if (function->end == function->start && next < making->functions.count)
        function->end = all[next].start;
    uint64_t bytes = function->end - function->start;
    return bytes &&
           bytes <= (all[number].end > all[number].start ? FUNCTION_MAX_BYTES : UNSIZED_MAX_BYTES);
}

bool unwind_made_add(struct unwind_index *index, Elf *elf) {
    struct making making = {.index = index, .row_count = index->rows.count, .elf = elf};
    making.common_at = index->made.count;
    put(&making, common, sizeof common);
    making.signal_at = index->made.count;
    put(&making, common_signal, sizeof common_signal);
    list_functions(&making);
    for (size_t i = 0; i < making.functions.count && !making.has_failed; i++) {
        struct function function;
        if (complete(&making, i, &function)) add_one(&making, &function);
    }
    array_free(&making.functions);
    unwind_index_sort(index);
    return !making.has_failed;
}
