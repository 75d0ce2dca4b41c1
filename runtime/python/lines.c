// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/lines.h"

#include <stdbool.h>

enum { UNIT_BYTES = 2 };

// Forms of an entry.
enum {
    FORM_ONE_LINE = 10,  // to 12: so many lines further, two columns of a byte
    FORM_NO_COLUMNS = 13,
    FORM_LONG = 14,
    FORM_NONE = 15,  // no line
};

struct table_reader {
    const uint8_t *at, *end;
};

static int64_t read_signed(struct table_reader *reader) {
    const unsigned bits = 6, most_bits = 60;
    uint64_t value = 0;
    for (unsigned shift = 0; reader->at < reader->end; shift += bits) {
        uint8_t byte = *reader->at++;
        if (shift < most_bits) value |= (uint64_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40)) break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

// How many lines the entry goes on; moves behind it.
static int64_t read_line_change(struct table_reader *reader, unsigned form) {
    const unsigned skipped_by_long = 3;
    int64_t change = 0;
    if (form == FORM_NONE) return 0;
    if (form == FORM_LONG || form == FORM_NO_COLUMNS) change = read_signed(reader);
    if (form == FORM_LONG)
        for (unsigned i = 0; i < skipped_by_long; i++) read_signed(reader);
    if (form >= FORM_NO_COLUMNS) return change;
    size_t columns = form >= FORM_ONE_LINE ? 2 : 1;
    size_t left = (size_t)(reader->end - reader->at);
    reader->at += columns < left ? columns : left;
    return form >= FORM_ONE_LINE ? form - FORM_ONE_LINE : 0;
}

static uint32_t line_of(int64_t line) {
    return line < 0 || line > UINT32_MAX ? 0 : (uint32_t)line;
}

static uint32_t find_by_positions(struct table_reader *reader, int64_t line, uint32_t instruction) {
    uint64_t end = 0;
    while (reader->at < reader->end) {
        uint8_t head = *reader->at++;
        unsigned form = head >> 3 & 0xf;
        end += ((uint64_t)(head & 7) + 1) * UNIT_BYTES;
        line += read_line_change(reader, form);
        if (instruction < end) return form == FORM_NONE ? 0 : line_of(line);
    }
    return 0;
}

// So many bytes of instructions, then so many lines further.
static uint32_t find_by_changes(struct table_reader *reader, int64_t line, uint32_t instruction) {
    uint64_t end = 0;
    for (; reader->end - reader->at >= 2; reader->at += 2) {
        end += reader->at[0];
        if (instruction < end) break;
        line += (int8_t)reader->at[1];
    }
    return line_of(line);
}

// So many lines further, or none, for so many bytes of instructions.
static uint32_t find_by_ranges(struct table_reader *reader, int64_t line, uint32_t instruction) {
    uint64_t end = 0;
    for (; reader->end - reader->at >= 2; reader->at += 2) {
        bool has_line = (int8_t)reader->at[1] != INT8_MIN;
        if (has_line) line += (int8_t)reader->at[1];
        end += reader->at[0];
        if (instruction < end) return has_line ? line_of(line) : 0;
    }
    return 0;
}

uint32_t lines_find(enum python_lines form, const uint8_t *table, size_t size, uint32_t first_line,
                    uint32_t instruction) {
    struct table_reader reader = {table, table + size};
    if (form == PYTHON_LINES_CHANGES) return find_by_changes(&reader, first_line, instruction);
    if (form == PYTHON_LINES_RANGES) return find_by_ranges(&reader, first_line, instruction);
    return find_by_positions(&reader, first_line, instruction);
}
