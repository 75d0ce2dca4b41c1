// SPDX-License-Identifier: Apache-2.0
// What memray's records say of stacks. Python's frames are pushed and popped thread by thread, so
// each thread has the nodes of its frames. Native frames come as a tree of addresses, from the
// allocation outwards through the interpreter: those up to its first frame are inside of the
// innermost Python frame, and the ones further out are those Python frames again, in C.
//
// Python's tables of lines are as its documentation has them (Objects/locations.md for 3.11 and
// later, PEP 626 for 3.10, lnotab before that).
#include "tool/import/memray.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

enum { PYTHON_3_11 = 0x030b0000, PYTHON_3_10 = 0x030a0000, NATIVE_DEPTH_MAX = 4096 };
enum { VARINT_BITS = 6, VARINT_MASK = 63, VARINT_MORE = 64, NO_LINE = -128 };

static uint32_t find_number(const struct memray_numbers *numbers, uint64_t key) {
    struct index_probe probe =
        index_probe_start(&numbers->table, hash_mix(index_table_seed(), key));
    for (uint32_t index; index_probe_next(&numbers->table, &probe, &index);)
        if (numbers->keys.items[index] == key) return index;
    return IMPORT_NONE;
}

// The index that the caller's array has next.
static bool add_number(struct memray_numbers *numbers, uint64_t key) {
    uint64_t *slot = array_push(&numbers->keys);
    if (!slot) return false;
    *slot = key;
    return index_table_insert(&numbers->table, hash_mix(index_table_seed(), key),
                              (uint32_t)numbers->keys.count - 1);
}

static void free_numbers(struct memray_numbers *numbers) {
    index_table_free(&numbers->table);
    array_free(&numbers->keys);
}

void memray_stacks_free(struct memray_stacks *stacks) {
    for (size_t i = 0; i < stacks->codes.count; i++) {
        free(stacks->codes.items[i].function);
        free(stacks->codes.items[i].file);
        free(stacks->codes.items[i].lines);
    }
    for (size_t i = 0; i < stacks->threads.count; i++) array_free(&stacks->threads.items[i].nodes);
    array_free(&stacks->codes);
    array_free(&stacks->frames);
    array_free(&stacks->threads);
    array_free(&stacks->natives);
    array_free(&stacks->native_nodes);
    free_numbers(&stacks->code_numbers);
    free_numbers(&stacks->frame_numbers);
    free_numbers(&stacks->thread_numbers);
}

bool memray_add_code(struct memray_stacks *stacks, uint64_t id, const struct memray_code *code) {
    struct memray_code *slot = array_push(&stacks->codes);
    if (slot) *slot = *code;
    return slot && add_number(&stacks->code_numbers, id);
}

static uint32_t place_of(struct imported *imported, const char *function, const char *file,
                         int64_t line) {
    char *text = NULL;
    if (asprintf(&text, "%s (%s:%d)", function, file,
                 line > 0 && line <= INT32_MAX ? (int)line : 0) < 0)
        return IMPORT_NONE;
    uint32_t place = import_place_of_text(imported, text);
    free(text);
    return place;
}

bool memray_add_frame_at(struct memray_stacks *stacks, uint64_t id, uint32_t place) {
    uint32_t *slot = place == IMPORT_NONE ? NULL : array_push(&stacks->frames);
    if (slot) *slot = place;
    return slot && add_number(&stacks->frame_numbers, id);
}

bool memray_add_frame(struct memray_stacks *stacks, uint64_t id, const char *function,
                      const char *file, int64_t line) {
    return memray_add_frame_at(stacks, id, place_of(stacks->imported, function, file, line));
}

uint32_t memray_frame_place(const struct memray_stacks *stacks, uint64_t id) {
    uint32_t index = find_number(&stacks->frame_numbers, id);
    return index == IMPORT_NONE ? IMPORT_NONE : stacks->frames.items[index];
}

struct memray_thread *memray_thread_of(struct memray_stacks *stacks, uint64_t tid) {
    uint32_t index = find_number(&stacks->thread_numbers, tid);
    if (index != IMPORT_NONE) return &stacks->threads.items[index];
    struct memray_thread *thread = array_push(&stacks->threads);
    if (!thread) return NULL;
    *thread = (struct memray_thread){.tid = tid};
    return add_number(&stacks->thread_numbers, tid) ? thread : NULL;
}

struct table {
    const uint8_t *at, *end;
};

static uint64_t take_varint(struct table *table) {
    uint64_t value = 0;
    for (unsigned shift = 0; table->at < table->end && shift < 60; shift += VARINT_BITS) {
        uint8_t byte = *table->at++;
        value |= (uint64_t)(byte & VARINT_MASK) << shift;
        if (!(byte & VARINT_MORE)) break;
    }
    return value;
}

static int64_t take_signed(struct table *table) {
    uint64_t value = take_varint(table);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

// An entry: its code in bits 3 to 6, the length in units of code in bits 0 to 2, less 1.
static void take_entry(struct table *table, int64_t *line, uint64_t *length) {
    enum { ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    uint8_t first = *table->at++;
    unsigned code = first >> 3 & 15;
    *length = (first & 7) + 1u;
    size_t columns = code < ONE_LINE ? 1 : code <= ONE_LINE_LAST ? 2 : 0;
    if (code >= ONE_LINE && code <= ONE_LINE_LAST) *line += code - ONE_LINE;
    if (code == NO_COLUMNS || code == LONG) *line += take_signed(table);
    for (int i = 0; code == LONG && i < 3; i++) take_varint(table);
    if (columns > (size_t)(table->end - table->at)) columns = (size_t)(table->end - table->at);
    table->at += columns;
}

static int64_t line_of(const struct memray_code *code, uint32_t version, int64_t instruction) {
    struct table table = {code->lines, code->lines + code->line_bytes};
    int64_t line = code->first_line;
    uint64_t at = 0, wanted = instruction < 0 ? 0 : (uint64_t)instruction, length;
    if (version >= PYTHON_3_11) {
        for (wanted /= 2; table.at < table.end && *table.at; at += length) {
            take_entry(&table, &line, &length);
            if (wanted < at + length) break;
        }
        return line;
    }
    if (version >= PYTHON_3_10) wanted *= 2;
    for (; table.end - table.at >= 2; table.at += 2) {
        int8_t delta = (int8_t)table.at[1];
        at += table.at[0];
        if (version < PYTHON_3_10 && at > wanted) break;
        line += delta == NO_LINE && version >= PYTHON_3_10 ? 0 : delta;
        if (at > wanted) break;
    }
    return line;
}

uint32_t memray_code_place(const struct memray_stacks *stacks, uint64_t id, int64_t instruction) {
    uint32_t index = find_number(&stacks->code_numbers, id);
    if (index == IMPORT_NONE) return place_of(stacks->imported, "?", "", 0);
    const struct memray_code *code = &stacks->codes.items[index];
    return place_of(stacks->imported, code->function, code->file,
                    line_of(code, stacks->python_version, instruction));
}

bool memray_push(struct memray_stacks *stacks, struct memray_thread *thread, uint32_t place) {
    bool is_own = thread->tid == stacks->main_tid && !thread->nodes.count &&
                  thread->skipped < stacks->skip_count;
    if (is_own) {
        thread->skipped++;
        return true;
    }
    uint32_t node,
        parent = thread->nodes.count ? thread->nodes.items[thread->nodes.count - 1] : TREE_ROOT;
    uint32_t *slot = array_push(&thread->nodes);
    if (!slot || !tree_child(&stacks->imported->tree, parent, place, &node)) return false;
    *slot = node;
    return true;
}

bool memray_pop(struct memray_thread *thread, uint64_t count) {
    uint64_t inner = count < thread->nodes.count ? count : thread->nodes.count;
    thread->nodes.count -= inner;
    count -= inner;
    if (count > thread->skipped) return false;
    thread->skipped -= count;
    return true;
}

// python3.13, libpython3.13.so.1.0
static bool is_interpreter(const struct imported *imported, uint64_t address) {
    for (size_t i = imported->mappings.count; i-- > 0;) {
        const struct import_mapping *mapping = &imported->mappings.items[i];
        if (address < mapping->start || address >= mapping->end) continue;
        const char *name =
            text_base_name(imported->strings.list.items[imported->modules.items[mapping->module]]);
        return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
    }
    return false;
}

bool memray_stack_of(struct memray_stacks *stacks, uint32_t python_node, uint64_t native,
                     uint32_t *node) {
    stacks->native_nodes.count = 0;
    *node = python_node;
    // a native frame's caller has a lower number, so that this ends
    while (native && native <= stacks->natives.count &&
           stacks->native_nodes.count < NATIVE_DEPTH_MAX) {
        const struct memray_native *frame = &stacks->natives.items[native - 1];
        if (is_interpreter(stacks->imported, frame->address)) break;
        uint32_t place = import_address(stacks->imported, frame->address ? frame->address - 1 : 0);
        uint32_t *slot = place == IMPORT_NONE ? NULL : array_push(&stacks->native_nodes);
        if (!slot) return false;
        *slot = place;
        native = frame->caller < native ? frame->caller : 0;
    }
    for (size_t i = stacks->native_nodes.count; i-- > 0;)
        if (!tree_child(&stacks->imported->tree, *node, stacks->native_nodes.items[i], node))
            return false;
    return true;
}
