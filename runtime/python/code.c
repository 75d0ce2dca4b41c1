// SPDX-License-Identifier: Apache-2.0
// An instruction is found by its address in the thread's own cache, and believed if the fields of
// its code, and the hashes that Python keeps of the code's name and file, say what they said.
// Otherwise the record of the code is made up anew.
#include "runtime/python/code.h"

#include <string.h>

#include "format/format.h"
#include "runtime/managed/codes.h"
#include "runtime/managed/memory.h"
#include "runtime/python/lines.h"
#include "runtime/sys/frame.h"

struct python_objects code_types;
struct python_layout code_layout;

// Appends a character as UTF-8. A lone surrogate of the lower half is a byte that was no UTF-8.
static size_t put_character(uint8_t *out, uint32_t character) {
    if (character < 0x80) {
        out[0] = (uint8_t)character;
        return 1;
    }
    if (character >= 0xdc80 && character <= 0xdcff) {
        out[0] = (uint8_t)(character - 0xdc00);
        return 1;
    }
    unsigned more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (uint8_t)(heads[more] | character >> 6 * more);
    for (unsigned i = 1; i <= more; i++)
        out[i] = (uint8_t)(0x80 | (character >> 6 * (more - i) & 0x3f));
    return more + 1;
}

static uint32_t character_at(const uint8_t *text, size_t index, size_t width) {
    uint32_t character = 0;
    memcpy(&character, text + index * width, width);
    return character;
}

// The head of an object, up to and with its length.
struct head {
    uint64_t references, type, length;
};

static bool read_head(struct code_reader *reader, uintptr_t object, uintptr_t type,
                      struct head *head) {
    return memory_read(&reader->memory, object + code_layout.object_more, head, sizeof *head) &&
           head->type == type;
}

// Copies a text as UTF-8, cut to `most` bytes, and a NUL; the bytes written.
static size_t put_text(struct code_reader *reader, uintptr_t object, size_t most, uint8_t *out) {
    const size_t longest_character = 4;
    struct head head;
    uint64_t state = 0;
    size_t used = 0;
    bool is_read = read_head(reader, object, code_types.text, &head) &&
                   memory_read_word(&reader->memory,
                                    object + PYTHON_TEXT_STATE + code_layout.object_more, &state);
    size_t width = state >> PYTHON_TEXT_KIND_SHIFT & PYTHON_TEXT_KIND_MASK;
    bool is_known =
        is_read && state & PYTHON_TEXT_IS_COMPACT && (width == 1 || width == 2 || width == 4);
    size_t length = is_known && head.length < most ? head.length : is_known ? most : 0;
    bool is_ascii = state & PYTHON_TEXT_IS_ASCII;
    object += is_ascii ? code_layout.text_ascii : code_layout.text_compact;
    if (!memory_read(&reader->memory, object, reader->text, length * width)) length = 0;
    for (size_t i = 0; i < length && used + longest_character < most; i++) {
        uint32_t character = character_at(reader->text, i, width);
        if (character) used += put_character(out + used, character);
    }
    out[used] = 0;
    return used + 1;
}

// The part of a code object that says what it is.
struct code_fields {
    uint64_t file, function, table;
    uint32_t first_line;
};

static bool read_fields(struct memory_reader *memory, uintptr_t code, struct code_fields *fields) {
    const struct python_layout *layout = &code_layout;
    return memory_read_word(memory, code + layout->code_file, &fields->file) &&
           memory_read_word(memory, code + layout->code_function, &fields->function) &&
           memory_read_word(memory, code + layout->code_table, &fields->table) &&
           memory_read_part(memory, code + layout->code_first_line, UINT32_MAX,
                            &fields->first_line);
}

// Makes up the record; its bytes.
static size_t make_record(struct code_reader *reader, const struct code_fields *fields) {
    struct cairn_code head = {.first_line = fields->first_line};
    uint8_t *out = (uint8_t *)reader->record;
    size_t used = sizeof head, before = used;
    used += put_text(reader, fields->function, CODE_FUNCTION_BYTES, out + used);
    head.function_bytes = (uint32_t)(used - before);
    before = used;
    used += put_text(reader, fields->file, CODE_FILE_BYTES, out + used);
    head.file_bytes = (uint32_t)(used - before);
    for (; used % CAIRN_CODE_ALIGN; used++) out[used] = 0;
    head.bytes = (uint32_t)used;
    memcpy(out, &head, sizeof head);
    return used;
}

// What Python remembers of a text: its length and hash.
static uint64_t text_facts(struct code_reader *reader, uintptr_t text) {
    uint64_t facts[2] = {0, 0};
    _Static_assert(PYTHON_TEXT_HASH == PYTHON_OBJECT_LENGTH + sizeof facts[0],
                   "they are neighbours");
    uintptr_t place = text + PYTHON_OBJECT_LENGTH + code_layout.object_more;
    memory_read(&reader->memory, place, facts, sizeof facts);
    return codes_mix(facts[0], facts[1]);
}

static uint64_t facts_of(struct code_reader *reader, const struct code_fields *fields) {
    uint64_t hash = fields->first_line;
    hash = codes_mix(hash, fields->file);
    hash = codes_mix(hash, fields->function);
    hash = codes_mix(hash, fields->table);
    hash = codes_mix(hash, text_facts(reader, fields->function));
    return codes_mix(hash, text_facts(reader, fields->file));
}

static uint32_t code_number(struct code_reader *reader, uintptr_t code,
                            const struct code_fields *fields, uint64_t facts) {
    const unsigned low_bits = 4, high_bits = 14;
    struct code_seen *seen = &reader->codes[(code >> low_bits ^ code >> high_bits) % CODES_SEEN];
    if (seen->code == code && seen->facts == facts) return seen->number;
    uint32_t number = codes_intern(reader->record, make_record(reader, fields));
    if (!number) reader->is_nameless = true;
    seen->code = 0;
    compiler_barrier();
    seen->facts = facts;
    seen->number = number;
    compiler_barrier();
    if (number) seen->code = code;
    return number;
}

// 0: unknown.
static uint32_t code_line(struct code_reader *reader, const struct code_fields *fields,
                          uintptr_t offset) {
    uintptr_t object = fields->table;
    struct head head;
    if (!read_head(reader, object, code_types.bytes, &head)) return 0;
    size_t size = head.length < CODE_TABLE_BYTES ? head.length : CODE_TABLE_BYTES;
    uintptr_t bytes = object + PYTHON_BYTES + code_layout.object_more;
    if (!memory_read(&reader->memory, bytes, reader->text, size)) return 0;
    if (offset > UINT32_MAX) offset = 0;  // not begun yet: before the first one
    return lines_find(code_layout.lines, reader->text, size, fields->first_line, (uint32_t)offset);
}

static COLD uintptr_t code_find_slow(struct code_reader *reader, struct line_seen *seen,
                                     uintptr_t code, uintptr_t instruction,
                                     const struct code_fields *fields, uint64_t facts) {
    uint32_t number = code_number(reader, code, fields, facts);
    if (number == CODE_UNKNOWN) return frame_python(CODE_UNKNOWN, 0);
    uintptr_t offset = instruction - code - code_layout.code_instructions;
    uintptr_t pc = frame_python(number, code_line(reader, fields, offset));
    seen->instruction = 0;
    compiler_barrier();
    seen->facts = facts;
    seen->pc = pc;
    compiler_barrier();
    seen->instruction = instruction;
    return pc;
}

// Stands for a call of __init__ that the interpreter has built into itself (from 3.12 on): named by
// one text for all, in no line.
static bool is_shim(const struct code_fields *fields) {
    return fields->function == fields->file && !fields->first_line;
}

// On its way out: what it points to may be gone. (Of the count of references the upper half is
// another's in later versions. The free-threaded build has two counts, the shared one with two bits
// of state.)
static bool is_dying(struct code_reader *reader, uintptr_t code, uint64_t references) {
    enum { LOCAL_COUNT = 12, STATE_BITS = 2 };
    uint32_t local = 0;
    if (likely(!code_layout.object_more)) return !(uint32_t)references;
    return !(references >> STATE_BITS) &&
           !(memory_read_part(&reader->memory, code + LOCAL_COUNT, UINT32_MAX, &local) && local);
}

uintptr_t code_find(struct code_reader *reader, uintptr_t code, uintptr_t instruction) {
    const unsigned low_bits = 1, high_bits = 13;
    struct line_seen *seen =
        &reader->lines[(instruction >> low_bits ^ instruction >> high_bits) % LINES_SEEN];
    struct {
        uint64_t references, type;
    } head;
    struct code_fields fields;
    bool is_code =
        memory_read(&reader->memory, code + code_layout.object_more, &head, sizeof head) &&
        head.type == code_types.code && read_fields(&reader->memory, code, &fields);
    if (!is_code) return frame_python(CODE_UNKNOWN, 0);
    bool is_here = seen->instruction == instruction;
    if (unlikely(is_dying(reader, code, head.references)))
        return is_here ? seen->pc : frame_python(CODE_UNKNOWN, 0);
    if (unlikely(is_shim(&fields))) return 0;
    uint64_t facts = facts_of(reader, &fields);
    if (likely(is_here && seen->facts == facts)) return seen->pc;
    return code_find_slow(reader, seen, code, instruction, &fields, facts);
}
