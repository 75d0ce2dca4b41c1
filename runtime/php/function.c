// SPDX-License-Identifier: Apache-2.0
// A place in the code is found by its address in the thread's own cache, and believed if the words
// of its function, and of the texts that name it, say what they said. Otherwise its record is made
// up anew.
#include "runtime/php/function.h"

#include <string.h>

#include "format/format.h"
#include "runtime/managed/codes.h"
#include "runtime/sys/frame.h"

// ---- texts --------------------------------------------------------------------------------------

struct text {
    uint64_t references, hash, length;
};
_Static_assert(sizeof(struct text) == PHP_TEXT_WORDS * sizeof(uint64_t), "zend_string");

static bool read_text(struct php_function_reader *reader, uint64_t address, struct text *text) {
    return memory_read(&reader->memory, address, text, sizeof *text);
}

// A sum of the bytes themselves.
static COLD uint64_t hash_bytes(struct php_function_reader *reader, uint64_t address,
                                uint64_t length) {
    uint64_t words[32] = {0}, hash = length;
    uint64_t size = length < sizeof words ? length : sizeof words;
    if (!memory_read(&reader->memory, address + PHP_TEXT, words, size)) return 0;
    for (uint64_t i = 0; i * sizeof *words < size; i++) hash = codes_mix(hash, words[i]);
    return hash;
}

// A hash that goes on with a text: by PHP's own hash of it, where that is known.
ALWAYS_INLINE uint64_t mix_text(struct php_function_reader *reader, uint64_t hash,
                                uint64_t address) {
    struct text text;
    hash = codes_mix(hash, address);
    if (!address || !read_text(reader, address, &text)) return hash;
    if (unlikely(!text.hash)) return codes_mix(hash, hash_bytes(reader, address, text.length));
    return codes_mix(hash, text.hash);
}

// Copies a text up to a NUL (behind which the name of a class without one says where it is), cut to
// `most` bytes; the bytes written.
static size_t put_text(struct php_function_reader *reader, uint64_t address, size_t most,
                       uint8_t *out) {
    struct text text;
    if (!address || !read_text(reader, address, &text)) return 0;
    size_t length = text.length < most ? text.length : most;
    if (!memory_read(&reader->memory, address + PHP_TEXT, out, length)) return 0;
    return strnlen((const char *)out, length);
}

static size_t put_literal(const char *text, uint8_t *out) {
    size_t length = strlen(text);
    memcpy(out, text, length);
    return length;
}

// ---- functions ----------------------------------------------------------------------------------

// A function as far as it differs from others.
struct function {
    uint64_t type, name, class;
    uint64_t class_name, file;
    uint64_t place;
    uint32_t line;
};

// The line and code of the instruction at an address.
static bool read_line(struct php_function_reader *reader, uint64_t opline, uint32_t *line,
                      uint8_t *code) {
    const unsigned code_shift = 32;
    uint64_t word;
    if (!memory_read_word(&reader->memory, opline + PHP_OP_LINE, &word)) return false;
    *line = (uint32_t)word;
    *code = (uint8_t)(word >> code_shift);
    return true;
}

// While an exception is on its way, the frames say so instead of where they are.
static COLD void find_line_before(struct php_function_reader *reader, uint64_t address,
                                  struct function *function) {
    const struct php_layout *layout = &engine_php.layout;
    uint64_t before = 0;
    uint8_t code;
    memory_read_word(&reader->memory, engine_php.globals + layout->globals_before, &before);
    if (before && read_line(reader, before, &function->line, &code)) {
        function->place = before;
        return;
    }
    function->place = 0;
    function->line = 0;
    memory_read_part(&reader->memory, address + layout->function_last_line, UINT32_MAX,
                     &function->line);
}

// The function that an instruction calls without a frame.
static COLD uint64_t find_built_in(struct php_function_reader *reader, uint64_t opline) {
    uint64_t table, address;
    uint32_t index;
    if (!engine_php.frameless ||
        !memory_read_part(&reader->memory, opline + PHP_OP_EXTENDED, UINT32_MAX, &index) ||
        !memory_read_word(&reader->memory, engine_php.frameless, &table) ||
        !memory_read_word(&reader->memory, table + index * sizeof table, &address))
        return 0;
    return address;
}

static bool read_place(struct php_function_reader *reader, uint64_t opline, uint64_t address,
                       struct function *function) {
    uint8_t code;
    function->place = opline;
    if (!read_line(reader, opline, &function->line, &code)) return false;
    if (unlikely(code == PHP_OP_HANDLE_EXCEPTION)) find_line_before(reader, address, function);
    if (unlikely((uint8_t)(code - PHP_OP_FRAMELESS) < PHP_OP_FRAMELESS_FORMS))
        reader->built_in = find_built_in(reader, opline);
    return memory_read_word(&reader->memory, address + engine_php.layout.function_file,
                            &function->file);
}

static bool read_function(struct php_function_reader *reader, const uint64_t *frame,
                          struct function *function, uint8_t *type) {
    uint64_t address = frame[PHP_FRAME_FUNCTION];
    *function = (struct function){.place = address};
    if (!memory_read(&reader->memory, address, function, PHP_FUNCTION_WORDS * sizeof(uint64_t)))
        return false;
    *type = (uint8_t)function->type;
    if (function->class &&
        !memory_read_word(&reader->memory, function->class + PHP_CLASS_NAME, &function->class_name))
        return false;
    switch (*type) {
    case PHP_FUNCTION_INTERNAL:
        return function->name;  // what has none is PHP's own
    case PHP_FUNCTION_USER:
    case PHP_FUNCTION_CODE:
        return read_place(reader, frame[PHP_FRAME_OPLINE], address, function);
    default:
        return false;
    }
}

// A function that lies where it is until the request ends, at the line that its frame says.
static bool is_lasting(const struct function *function, const uint64_t frame[PHP_FRAME_WORDS]) {
    uint64_t flags = function->type >> PHP_FUNCTION_FLAGS_SHIFT;
    if (!function->name || flags & (PHP_FUNCTION_IS_CLOSURE | PHP_FUNCTION_IS_MADE_UP))
        return false;
    return (uint8_t)function->type == PHP_FUNCTION_INTERNAL ||
           ((uint8_t)function->type == PHP_FUNCTION_USER &&
            function->place == frame[PHP_FRAME_OPLINE]);
}

static uint64_t facts_of(struct php_function_reader *reader, const struct function *function) {
    uint64_t hash = codes_mix(function->line, (uint8_t)function->type);
    hash = mix_text(reader, hash, function->name);
    if (function->class) hash = mix_text(reader, hash, function->class_name);
    return function->file ? mix_text(reader, hash, function->file) : hash;
}

// "Class::method"; the code of a file has no name.
static size_t put_name(struct php_function_reader *reader, const struct function *function,
                       uint8_t *out) {
    const size_t most = PHP_NAME_BYTES / 2 - 2;
    size_t used = 0;
    if (!function->name) return put_literal("{main}", out);
    if (function->class_name) used = put_text(reader, function->class_name, most, out);
    if (used) used += put_literal("::", out + used);
    return used + put_text(reader, function->name, most, out + used);
}

static uint32_t make_record(struct php_function_reader *reader, const struct function *function) {
    struct cairn_code head = {0};
    uint8_t *out = (uint8_t *)reader->record;
    size_t used = sizeof head;
    head.function_bytes = (uint32_t)put_name(reader, function, out + used) + 1;
    out[used + head.function_bytes - 1] = 0;
    used += head.function_bytes;
    head.file_bytes =
        (uint32_t)put_text(reader, function->file, PHP_FILE_BYTES - 1, out + used) + 1;
    out[used + head.file_bytes - 1] = 0;
    used += head.file_bytes;
    for (; used % CAIRN_CODE_ALIGN; used++) out[used] = 0;
    head.bytes = (uint32_t)used;
    memcpy(out, &head, sizeof head);
    return codes_intern(reader->record, used);
}

static COLD uintptr_t find_slow(struct php_function_reader *reader, struct php_function_seen *seen,
                                const struct function *function, uint64_t facts) {
    uint32_t number = make_record(reader, function);
    if (!number) reader->is_nameless = true;
    if (!number) return frame_python(CODE_UNKNOWN, 0);
    uintptr_t pc = frame_python(number, function->line);
    seen->place = 0;
    compiler_barrier();
    seen->facts = facts;
    seen->pc = pc;
    compiler_barrier();
    seen->place = function->place;
    return pc;
}

uintptr_t php_function_find(struct php_function_reader *reader,
                            const uint64_t frame[PHP_FRAME_WORDS], uint8_t *type) {
    const unsigned low_bits = 5, high_bits = 17;
    struct function function;
    reader->built_in = 0;
    if (!read_function(reader, frame, &function, type)) return 0;
    uint64_t facts = facts_of(reader, &function), place = function.place;
    reader->is_lasting = is_lasting(&function, frame) && !reader->built_in;
    struct php_function_seen *seen =
        &reader->seen[(place >> low_bits ^ place >> high_bits) % PHP_FUNCTIONS_SEEN];
    if (likely(seen->place == place && seen->facts == facts)) return seen->pc;
    uintptr_t pc = find_slow(reader, seen, &function, facts);
    if (pc == frame_python(CODE_UNKNOWN, 0)) reader->is_lasting = false;
    return pc;
}
