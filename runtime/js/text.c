// SPDX-License-Identifier: Apache-2.0
#include "runtime/js/text.h"

#include "runtime/js/engine.h"

// What a string is made of, as its type says.
static bool find_plain(uint64_t string, int32_t type, struct text *text) {
    bool is_one_byte = (type & engine.string_width_mask) == engine.one_byte;
    int32_t offset = is_one_byte ? engine.string_one_byte : engine.string_two_byte;
    text->width = is_one_byte ? 1 : 2;
    text->at = string - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)offset;
    return true;
}

// The program's own memory; where it is, is kept behind the resource.
static bool find_external(struct memory_reader *memory, uint64_t string, int32_t type,
                          struct text *text) {
    const int32_t is_uncached = 0x10;
    bool is_one_byte = (type & engine.string_width_mask) == engine.one_byte;
    text->width = is_one_byte ? 1 : 2;
    return !(type & is_uncached) &&
           engine_read(memory, string, engine.string_resource + (int32_t)sizeof string, &text->at);
}

// A string that stands for another one, or for a part of it.
static bool follow(struct memory_reader *memory, int32_t form, uint64_t *string, uint32_t *first) {
    int32_t offset;
    uint64_t second;
    uint32_t rest;
    if (form == engine.form_thin) return engine_read(memory, *string, engine.string_actual, string);
    if (form == engine.form_cons)
        return engine_read(memory, *string, engine.string_second, &second) &&
               engine_read_half(memory, second, engine.string_length, &rest) && !rest &&
               engine_read(memory, *string, engine.string_first, string);
    if (form != engine.form_sliced ||
        !engine_read_number(memory, *string, engine.string_offset, &offset) || offset < 0)
        return false;
    *first += (uint32_t)offset;
    return engine_read(memory, *string, engine.string_parent, string);
}

bool text_find(struct memory_reader *memory, uint64_t string, struct text *text) {
    const int steps_most = 8;
    const uint32_t length_most = 1u << 30;
    uint32_t first = 0;
    if (!engine_read_half(memory, string, engine.string_length, &text->length)) return false;
    for (int i = 0; i < steps_most; i++) {
        int32_t type = engine_type(memory, string);
        if (type < 0 || type >= engine.first_non_string || text->length > length_most) return false;
        int32_t form = type & engine.string_form_mask;
        bool is_plain = form == engine.form_plain, is_external = form == engine.form_external;
        if (!is_plain && !is_external) {
            if (!follow(memory, form, &string, &first)) return false;
            continue;
        }
        if (is_plain ? !find_plain(string, type, text) : !find_external(memory, string, type, text))
            return false;
        text->at += (uint64_t)first * text->width;
        return true;
    }
    return false;
}

size_t text_read(const struct text *text, uint32_t first, uint8_t piece[TEXT_PIECE_BYTES]) {
    if (first >= text->length) return 0;
    size_t left = text->length - first, most = TEXT_PIECE_BYTES / text->width;
    size_t count = left < most ? left : most;
    uint64_t at = text->at + (uint64_t)first * text->width;
    return memory_read_carefully(at, piece, count * text->width) ? count : 0;
}

// A lone half of a pair becomes three bytes, as WTF-8 has it.
static size_t put_character(uint8_t *out, uint32_t character) {
    const uint32_t one = 0x80, two = 0x800, three = 0x10000;
    if (character < one) {
        out[0] = (uint8_t)character;
        return 1;
    }
    unsigned more = character < two ? 1 : character < three ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (uint8_t)(heads[more] | character >> 6 * more);
    for (unsigned i = 1; i <= more; i++)
        out[i] = (uint8_t)(0x80 | (character >> 6 * (more - i) & 0x3f));
    return more + 1;
}

// The character at an index, of two halves where they are a pair.
static uint32_t whole_character(const struct text *text, const uint8_t *piece, size_t count,
                                size_t *index) {
    const uint32_t high = 0xd800, low = 0xdc00, half_mask = 0xfc00, base = 0x10000, bits = 10;
    uint32_t character = text_character(text, piece, (*index)++);
    if ((character & half_mask) != high || *index >= count) return character;
    uint32_t next = text_character(text, piece, *index);
    if ((next & half_mask) != low) return character;
    ++*index;
    return base + ((character - high) << bits | (next - low));
}

// Appends one piece of a string; the bytes written.
static size_t put_piece(const struct text *text, uint8_t *out, size_t most) {
    const size_t longest_character = 4;
    uint8_t piece[TEXT_PIECE_BYTES];
    size_t used = 0, count = text_read(text, 0, piece);
    for (size_t i = 0; i < count && used + longest_character < most;) {
        uint32_t character = whole_character(text, piece, count, &i);
        if (character) used += put_character(out + used, character);
    }
    return used;
}

// Strings that were put together are a tree of their parts: those that are still to come wait.
size_t text_put(struct memory_reader *memory, uint64_t string, uint8_t *out, size_t most) {
    enum { WAITING_MOST = 16, STEPS_MOST = 64 };
    uint64_t waiting[WAITING_MOST] = {string};
    size_t used = 0, count = 1;
    for (int step = 0; count && step < STEPS_MOST; step++) {
        uint64_t next = waiting[--count];
        struct text text;
        if (text_find(memory, next, &text)) {
            used += put_piece(&text, out + used, most - used);
            continue;
        }
        int32_t type = engine_type(memory, next);
        bool is_tree = type >= 0 && type < engine.first_non_string &&
                       (type & engine.string_form_mask) == engine.form_cons;
        if (!is_tree || count + 2 > WAITING_MOST ||
            !engine_read(memory, next, engine.string_second, &waiting[count]) ||
            !engine_read(memory, next, engine.string_first, &waiting[count + 1]))
            break;
        count += 2;
    }
    out[used] = 0;
    return used + 1;
}
