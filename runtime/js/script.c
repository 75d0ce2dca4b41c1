// SPDX-License-Identifier: Apache-2.0
// Positions count characters. A line ends with what ECMAScript calls a line terminator, \r\n being
// one.
#include "runtime/js/script.h"

#include <stdbool.h>

#include "runtime/js/engine.h"
#include "runtime/js/text.h"

enum { WORD = sizeof(uint64_t) };

int32_t script_id(struct memory_reader *memory, uint64_t script) {
    int32_t id;
    bool is_read = engine_read_number(memory, script, engine.script_line_ends + WORD, &id);
    return is_read ? id : -1;
}

// In the table of positions at which lines end; false: there is none.
static bool find_in_table(struct memory_reader *memory, uint64_t script, int32_t position,
                          uint32_t *line) {
    uint64_t table;
    int32_t count, end;
    if (!engine_read(memory, script, engine.script_line_ends, &table) ||
        engine_type(memory, table) != engine.type_array ||
        !engine_read_number(memory, table, engine.array_length, &count) || count <= 0 ||
        count > ENGINE_ELEMENTS_MOST)
        return false;
    int32_t low = 0, high = count - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (!engine_read_number(memory, table, engine.array_data + middle * WORD, &end))
            return false;
        if (end < position)
            low = middle + 1;
        else
            high = middle;
    }
    *line = (uint32_t)low;
    return true;
}

// The last character of a piece may be the first half of \r\n: where the second one is not known,
// it counts.
static bool is_end(const struct text *text, const uint8_t *piece, size_t index, size_t count) {
    const uint32_t line_separator = 0x2028, paragraph_separator = 0x2029;
    uint32_t character = text_character(text, piece, index);
    if (character == '\r')
        return index + 1 == count || text_character(text, piece, index + 1) != '\n';
    return character == '\n' || character == line_separator || character == paragraph_separator;
}

// Lines that end in a part of the source: from `first` on, `count` characters. It is read with one
// more, so that a piece's end does not part \r and \n.
static bool count_lines(const struct text *text, uint32_t first, uint32_t count, uint32_t *lines) {
    uint8_t piece[TEXT_PIECE_BYTES];
    const uint32_t step = TEXT_PIECE_BYTES / 4;
    for (uint32_t done = 0; done < count; done += step) {
        uint32_t wanted = count - done < step ? count - done : step;
        size_t there = text_read(text, first + done, piece);
        if (there < wanted) return false;
        for (uint32_t i = 0; i < wanted; i++) *lines += is_end(text, piece, i, there);
    }
    return true;
}

enum { MARK_STEP = 4096 };

// Counts all of a source once; false: there is no room for its marks.
static bool mark(struct script_reader *reader, struct script_seen *seen, const struct text *text) {
    uint32_t count = text->length / MARK_STEP + 1, lines = 0;
    if (count > SCRIPT_MARKS - reader->mark_count) return false;
    uint32_t *marks = reader->marks + reader->mark_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = i * MARK_STEP, left = text->length - first;
        marks[i] = lines;
        if (!count_lines(text, first, left < MARK_STEP ? left : MARK_STEP, &lines)) return false;
    }
    seen->length = 0;
    compiler_barrier();
    seen->first_mark = reader->mark_count;
    reader->mark_count += count;
    compiler_barrier();
    seen->length = text->length;
    return true;
}

static bool find_in_source(struct script_reader *reader, struct memory_reader *memory,
                           uint64_t script, uint32_t position, uint32_t *line) {
    uint64_t source;
    struct text text;
    if (!engine_read(memory, script, engine.script_source, &source) ||
        !text_find(memory, source, &text) || position > text.length || !text.length)
        return false;
    int32_t id = script_id(memory, script);
    struct script_seen *seen = &reader->seen[(uint32_t)id % SCRIPTS_SEEN];
    uint32_t from = 0;
    *line = 0;
    if (seen->length != text.length || seen->id != id) {
        seen->length = 0;
        compiler_barrier();
        seen->id = id;
        mark(reader, seen, &text);
    }
    if (seen->length) {
        *line = reader->marks[seen->first_mark + position / MARK_STEP];
        from = position / MARK_STEP * MARK_STEP;
    }
    return count_lines(&text, from, position - from, line);
}

uint32_t script_line(struct script_reader *reader, struct memory_reader *memory, uint64_t script,
                     int32_t position) {
    uint32_t line = 0;
    int32_t before = 0;  // lines of what the script is a part of
    if (position < 0) return 0;
    if (!find_in_table(memory, script, position, &line) &&
        !find_in_source(reader, memory, script, (uint32_t)position, &line))
        return 0;
    engine_read_number(memory, script, engine.script_name + WORD, &before);
    return before > 0 ? line + (uint32_t)before + 1 : line + 1;
}
