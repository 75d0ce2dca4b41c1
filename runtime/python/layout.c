// SPDX-License-Identifier: Apache-2.0
// A type's table of members has the offsets of its fields: what Python code can see of a code
// object (and of a frame, before 3.11) says itself where it is. The rest of the rows is from the
// headers of that version (tests/unit/runtime/python/layout_test.c compares where they are
// installed); a wrong one makes no code objects, which is checked at each.
#include "runtime/python/layout.h"

#include <string.h>

#include "runtime/managed/memory.h"

enum { MINOR_SHIFT = 16, FIRST_MINOR = 8, TABLE_END = 13 };

static const struct python_layout table[TABLE_END - FIRST_MINOR] = {
    {PYTHON_CHAIN_OBJECTS, PYTHON_LINES_CHANGES, 24, 176, 32, 24, 104, 0, 1, 40, 104, 112, 120, 0,
     48, 72, 0},
    {PYTHON_CHAIN_OBJECTS, PYTHON_LINES_CHANGES, 24, 176, 32, 24, 104, 0, 1, 40, 104, 112, 120, 0,
     48, 72, 0},
    {PYTHON_CHAIN_OBJECTS, PYTHON_LINES_RANGES, 24, 176, 32, 24, 96, 0, 2, 40, 104, 112, 120, 0, 48,
     72, 0},
    {PYTHON_CHAIN_CALLS, PYTHON_LINES_POSITIONS, 56, 152, 32, 48, 56, 68, 0, 72, 112, 128, 136, 184,
     48, 72, 0},
    {PYTHON_CHAIN_ENTRIES_BY_CALL, PYTHON_LINES_POSITIONS, 56, 0, 0, 8, 56, 70, 0, 68, 112, 128,
     136, 192, 40, 56, 0},
};

// Where _Py_DebugOffsets has what, in words of 8 bytes.
struct debug_words {
    uint8_t state_frame, frame_previous, frame_code, frame_instruction, frame_kind;
    uint8_t code_file, code_function, code_table, code_first_line, code_instructions;
    uint8_t object_type, bytes_length, bytes, text_state, text_length, text_ascii;
};

static const struct debug_words debug_words[] = {
    {23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70},
    {26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80},
    {26, 40, 41, 42, 44, 48, 50, 51, 52, 56, 59, 87, 88, 90, 91, 92},
};
enum { DEBUG_VERSIONS = sizeof debug_words / sizeof *debug_words, DEBUG_WORDS_MOST = 93 };

static bool read_word(uintptr_t address, uint64_t *word) {
    return address % sizeof *word == 0 && memory_read_carefully(address, word, sizeof *word);
}

// ---- what a type says of its objects ------------------------------------------------------------

// Of types. TYPE_MEMBERS is used before 3.13 alone, where no build has larger heads.
enum { TYPE_BASIC_SIZE = 32, TYPE_MEMBERS = 240, MEMBER_BYTES = 40, MEMBER_OFFSET = 16 };

// Texts of the interpreter's own: they are read up to the last byte that matters.
static bool is_named(uintptr_t text, const char *name) {
    char there[24];
    size_t size = strlen(name) + 1;
    return size <= sizeof there && memory_read_carefully(text, there, size) &&
           !memcmp(there, name, size);
}

// The offset of a member; -1: the type has none of that name.
static int64_t member_offset(uintptr_t type, const char *name) {
    const unsigned most = 64;
    uint64_t member, text, offset;
    if (!read_word(type + TYPE_MEMBERS, &member) || !member) return -1;
    for (unsigned i = 0; i < most; i++, member += MEMBER_BYTES) {
        if (!read_word(member, &text) || !text) return -1;
        if (is_named(text, name))
            return read_word(member + MEMBER_OFFSET, &offset) ? (int64_t)offset : -1;
    }
    return -1;
}

static bool has_size(uintptr_t type, uint64_t size, const struct python_layout *layout) {
    uint64_t there;
    return read_word(type + TYPE_BASIC_SIZE + layout->object_more, &there) && there == size;
}

// Objects of Python as all the versions here have them.
static bool has_usual_objects(const struct python_objects *objects,
                              const struct python_layout *layout) {
    return has_size(objects->bytes, PYTHON_BYTES + layout->object_more + 1, layout) &&
           has_size(objects->text, layout->text_compact + sizeof(void *), layout);
}

static bool agrees(const struct python_objects *objects, const struct python_layout *layout) {
    bool has_calls = layout->chain != PYTHON_CHAIN_OBJECTS;
    bool is_oldest = layout->lines == PYTHON_LINES_CHANGES;
    uintptr_t code = objects->code;
    return has_usual_objects(objects, layout) &&
           (!has_calls || has_size(code, layout->code_instructions, layout)) &&
           (has_calls || member_offset(objects->frame, "f_back") == layout->frame_previous) &&
           (has_calls || member_offset(objects->frame, "f_code") == layout->frame_code) &&
           member_offset(code, "co_firstlineno") == layout->code_first_line &&
           member_offset(code, "co_filename") == layout->code_file &&
           member_offset(code, has_calls ? "co_qualname" : "co_name") == layout->code_function &&
           member_offset(code, is_oldest ? "co_lnotab" : "co_linetable") == layout->code_table;
}

// ---- what a later version says of itself --------------------------------------------------------

enum { COOKIE, VERSION, FREE_THREADED };

struct debug_offsets {
    uint64_t words[DEBUG_WORDS_MOST];
};

static bool is_true_of(const struct debug_offsets *offsets, uint32_t version) {
    static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
    return !memcmp(&offsets->words[COOKIE], cookie, sizeof cookie) &&
           offsets->words[VERSION] >> MINOR_SHIFT == version >> MINOR_SHIFT;
}

// A field's offset; none is so large. Its place is a multiple of its size.
static bool take_offset(const struct debug_offsets *offsets, uint8_t word, unsigned align,
                        uint16_t *offset) {
    const uint64_t most = 4096;
    uint64_t value = offsets->words[word];
    *offset = (uint16_t)value;
    return value < most && value % align == 0;
}

static bool take_offsets(const struct debug_offsets *offsets, const struct debug_words *words,
                         struct python_layout *layout) {
    const unsigned pointer = sizeof(void *), number = sizeof(int);
    return take_offset(offsets, words->state_frame, pointer, &layout->state_frame) &&
           take_offset(offsets, words->frame_code, pointer, &layout->frame_code) &&
           take_offset(offsets, words->frame_previous, pointer, &layout->frame_previous) &&
           take_offset(offsets, words->frame_instruction, pointer, &layout->frame_instruction) &&
           take_offset(offsets, words->frame_kind, 1, &layout->frame_kind) &&
           take_offset(offsets, words->code_first_line, number, &layout->code_first_line) &&
           take_offset(offsets, words->code_file, pointer, &layout->code_file) &&
           take_offset(offsets, words->code_function, pointer, &layout->code_function) &&
           take_offset(offsets, words->code_table, pointer, &layout->code_table) &&
           take_offset(offsets, words->code_instructions, 2, &layout->code_instructions) &&
           take_offset(offsets, words->text_ascii, pointer, &layout->text_ascii);
}

// Heads of objects are those of this build.
static bool has_heads(const struct debug_offsets *offsets, const struct debug_words *words,
                      const struct python_layout *layout) {
    const uint64_t *of = offsets->words;
    unsigned more = layout->object_more;
    return of[words->object_type] == PYTHON_OBJECT_TYPE + more &&
           of[words->bytes_length] == PYTHON_OBJECT_LENGTH + more &&
           of[words->bytes] == PYTHON_BYTES + more &&
           of[words->text_length] == PYTHON_OBJECT_LENGTH + more &&
           of[words->text_state] == PYTHON_TEXT_STATE + more;
}

static bool find_by_debug_offsets(uint32_t version, const struct debug_words *words,
                                  const struct python_objects *objects,
                                  struct python_layout *layout) {
    struct debug_offsets offsets;
    *layout =
        (struct python_layout){.chain = PYTHON_CHAIN_ENTRIES, .lines = PYTHON_LINES_POSITIONS};
    const uint16_t utf8_bytes = 16;  // .utf8_length and .utf8
    bool is_read = memory_read_carefully(objects->runtime, &offsets, sizeof offsets) &&
                   is_true_of(&offsets, version) && take_offsets(&offsets, words, layout);
    if (!is_read) return false;
    layout->text_compact = (uint16_t)(layout->text_ascii + utf8_bytes);
    bool is_free_threaded = offsets.words[FREE_THREADED] != 0;
    if (is_free_threaded && words != debug_words) return false;
    if (is_free_threaded) layout->object_more = PYTHON_FREE_THREADED_MORE;
    return has_heads(&offsets, words, layout) && has_usual_objects(objects, layout);
}

bool layout_find(uint32_t version, const struct python_objects *objects,
                 struct python_layout *layout) {
    const uint32_t major = 3, major_shift = 24, minor_mask = 0xff;
    uint32_t minor = version >> MINOR_SHIFT & minor_mask;
    if (version >> major_shift != major || minor < FIRST_MINOR) return false;
    if (minor >= TABLE_END + DEBUG_VERSIONS) return false;
    if (minor >= TABLE_END)
        return find_by_debug_offsets(version, &debug_words[minor - TABLE_END], objects, layout);
    *layout = table[minor - FIRST_MINOR];
    return agrees(objects, layout);
}
