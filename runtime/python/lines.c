// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/lines.h"

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

uint32_t lines_find(const uint8_t *table, size_t size, uint32_t first_line, uint32_t instruction) {
    struct table_reader reader = {table, table + size};
    int64_t line = first_line;
    uint64_t end = 0;
    while (reader.at < reader.end) {
        uint8_t head = *reader.at++;
        unsigned form = head >> 3 & 0xf;
        end += ((uint64_t)(head & 7) + 1) * UNIT_BYTES;
        line += read_line_change(&reader, form);
        if (instruction >= end) continue;
        return form == FORM_NONE || line < 0 || line > UINT32_MAX ? 0 : (uint32_t)line;
    }
    return 0;
}
