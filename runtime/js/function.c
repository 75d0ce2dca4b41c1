// SPDX-License-Identifier: Apache-2.0
// What is met for the first time is read by system calls, and made a record of; what tells it from
// others is read directly: a function that a frame of this thread runs is kept by V8.
#include "runtime/js/function.h"

#include <string.h>

#include "format/format.h"
#include "runtime/js/engine.h"
#include "runtime/js/positions.h"
#include "runtime/js/text.h"
#include "runtime/managed/codes.h"
#include "runtime/sys/frame.h"

enum { WORD = sizeof(uint64_t) };

// ---- what a function is -------------------------------------------------------------------------

// The version from which on functions keep their code where programs do not reach, with other
// layouts.
enum { FIRST_TRUSTED = 13 << 8 };

static bool is_trusted(void) {
    return engine.version >= FIRST_TRUSTED;
}

// Fields of BytecodeArray behind its length: constants, handlers, positions. Later ones: a wrapper,
// positions.
static int32_t positions_offset(void) {
    const int32_t before = is_trusted() ? 1 : 2;
    return engine.array_data + before * WORD;
}

static uint64_t script_of(const uint64_t words[ENGINE_SHARED_WORDS]) {
    return words[engine.shared_script / WORD];
}

// False: there is no such object. The table of positions counts, which comes later.
static bool read_facts(struct function_reader *reader, uint64_t shared, uint64_t bytecodes,
                       uint64_t words[ENGINE_SHARED_WORDS], uint64_t *facts) {
    uint64_t positions = 0;
    if (!engine_is_object(shared) || !memory_read(&reader->memory, shared - ENGINE_OBJECT_TAG,
                                                  words, ENGINE_SHARED_WORDS * sizeof *words))
        return false;
    if (bytecodes && !engine_read(&reader->memory, bytecodes, positions_offset(), &positions))
        return false;
    uint64_t hash = codes_mix(bytecodes, positions);
    for (unsigned i = 0; i < ENGINE_SHARED_WORDS; i++) hash = codes_mix(hash, words[i]);
    *facts = codes_mix(hash, (uint64_t)script_id(&reader->memory, script_of(words)));
    return true;
}

uint64_t function_bytecodes(struct function_reader *reader, uint64_t shared) {
    const int32_t of_interpreter_data = WORD, of_code = is_trusted() ? WORD : 2 * WORD;
    const int steps_most = 3;
    uint64_t data;
    if (!engine_read(&reader->memory, shared, ENGINE_SHARED_DATA, &data)) return 0;
    for (int i = 0; i < steps_most; i++) {
        int32_t type = engine_type(&reader->memory, data);
        if (type == engine.type_bytecodes) return data;
        bool is_code = type == engine.type_code;
        if (!is_code && type != engine.type_interpreter_data) return 0;
        int32_t offset = is_code ? of_code : of_interpreter_data;
        if (!engine_read(&reader->memory, data, offset, &data)) return 0;
    }
    return 0;
}

uint32_t function_read_bytes(struct function_reader *reader, uint64_t array, int32_t first) {
    int32_t length;
    if (!engine_read_number(&reader->memory, array, engine.array_length, &length) || length <= 0)
        return 0;
    uint32_t size =
        (uint32_t)length < FUNCTION_BUFFER_BYTES ? (uint32_t)length : FUNCTION_BUFFER_BYTES;
    uint64_t at = array - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)first;
    return memory_read_carefully(at, reader->buffer, size) ? size : 0;
}

// ---- its scope ----------------------------------------------------------------------------------

// Where its name and its first character are.
struct scope {
    uint64_t name, inferred_name;  // strings, or other words
    int32_t start;                 // -1: not known
};

// A ScopeInfo: flags, numbers of parameters and of variables, later ones their positions, the names
// of the variables and what they are, and then what the flags say, among it earlier ones'
// positions.
enum {
    SCOPE_FLAGS = 8,
    SCOPE_LOCALS = 24,
    SCOPE_REST = 32,
    SCOPE_REST_TRUSTED = 48,
    SCOPE_TYPE_MASK = 15,
    SCOPE_IS_MODULE = 3,
    SCOPE_IS_MODULE_TRUSTED = 5,
    SCOPE_HAS_CLASS = 1 << 10,
    SCOPE_HAS_NAME = 3 << 12,
    SCOPE_HAS_INFERRED_NAME = 1 << 14,
    SCOPE_NAMES_END = 75,  // so many or more are in a table of their own
};

// Those of later ones are no number of V8's.
static bool read_flags(struct memory_reader *memory, uint64_t object, uint32_t *flags) {
    int32_t number;
    if (is_trusted()) return engine_read_half(memory, object, SCOPE_FLAGS, flags);
    if (!engine_read_number(memory, object, SCOPE_FLAGS, &number)) return false;
    *flags = (uint32_t)number;
    return true;
}

static bool read_scope(struct memory_reader *memory, uint64_t object, struct scope *scope) {
    uint32_t flags, module = is_trusted() ? SCOPE_IS_MODULE_TRUSTED : SCOPE_IS_MODULE;
    int32_t count, at = is_trusted() ? SCOPE_REST_TRUSTED : SCOPE_REST;
    *scope = (struct scope){.start = -1};
    if (!read_flags(memory, object, &flags) ||
        !engine_read_number(memory, object, SCOPE_LOCALS, &count) || count < 0 ||
        count > UINT16_MAX)
        return false;
    if ((flags & SCOPE_TYPE_MASK) == module) at += WORD;
    at += (count < SCOPE_NAMES_END ? count : 1) * WORD + count * WORD;
    if (flags & SCOPE_HAS_CLASS) at += WORD;
    if (flags & SCOPE_HAS_NAME) {
        if (!engine_read(memory, object, at, &scope->name)) return false;
        at += 2 * WORD;
    }
    if (flags & SCOPE_HAS_INFERRED_NAME) {
        if (!engine_read(memory, object, at, &scope->inferred_name)) return false;
        at += WORD;
    }
    if (is_trusted()) at = SCOPE_REST;
    if (!engine_read_number(memory, object, at, &scope->start)) scope->start = -1;
    return true;
}

// ---- its record ---------------------------------------------------------------------------------

// "file:///app/main.mjs" is /app/main.mjs.
static size_t put_file(struct memory_reader *memory, uint64_t script, uint8_t *out) {
    static const char scheme[] = "file://";
    const size_t length = sizeof scheme - 1;
    uint64_t name = 0;
    engine_read(memory, script, engine.script_name, &name);
    size_t size = text_put(memory, name, out, FUNCTION_FILE_BYTES);
    if (size <= length || memcmp(out, scheme, length) != 0) return size;
    memmove(out, out + length, size - length);
    return size - length;
}

static size_t put_name(struct memory_reader *memory, const struct scope *scope, uint8_t *out) {
    static const char nameless[] = "<anonymous>";
    size_t size = text_put(memory, scope->name, out, FUNCTION_NAME_BYTES);
    if (size == 1) size = text_put(memory, scope->inferred_name, out, FUNCTION_NAME_BYTES);
    if (size > 1) return size;
    memcpy(out, nameless, sizeof nameless);
    return sizeof nameless;
}

static uint32_t make_record(struct function_reader *reader, const struct scope *scope,
                            uint64_t script) {
    struct cairn_code head = {0};
    uint8_t *out = (uint8_t *)reader->record;
    size_t used = sizeof head;
    head.first_line = script_line(&reader->scripts, &reader->memory, script, scope->start);
    head.function_bytes = (uint32_t)put_name(&reader->memory, scope, out + used);
    used += head.function_bytes;
    head.file_bytes = (uint32_t)put_file(&reader->memory, script, out + used);
    used += head.file_bytes;
    for (; used % CAIRN_CODE_ALIGN; used++) out[used] = 0;
    head.bytes = (uint32_t)used;
    memcpy(out, &head, sizeof head);
    return codes_intern(reader->record, used);
}

static uint32_t line_at(struct function_reader *reader, uint64_t script, uint64_t bytecodes,
                        int32_t offset) {
    uint64_t table;
    if (!bytecodes || offset == FUNCTION_NO_OFFSET ||
        !engine_read(&reader->memory, bytecodes, positions_offset(), &table) ||
        engine_type(&reader->memory, table) != engine.type_bytes)
        return 0;
    uint32_t size = function_read_bytes(reader, table, engine.array_data);
    return script_line(&reader->scripts, &reader->memory, script,
                       positions_find(reader->buffer, size, offset));
}

// 0: it is no function.
static uintptr_t make_frame(struct function_reader *reader, uint64_t shared, uint64_t bytecodes,
                            int32_t offset, const uint64_t words[ENGINE_SHARED_WORDS]) {
    struct memory_reader *memory = &reader->memory;
    uint64_t name = words[engine.shared_name / WORD], script = script_of(words);
    struct scope scope = {.name = name, .start = -1};
    if (engine_type(memory, shared) != engine.type_shared) return 0;
    if (engine_type(memory, name) == engine.type_scope) read_scope(memory, name, &scope);
    if (engine_type(memory, script) != engine.type_script) script = 0;
    uint32_t number = make_record(reader, &scope, script);
    if (!number) reader->is_nameless = true;
    if (!number) return frame_python(CODE_UNKNOWN, 0);
    return frame_python(number, line_at(reader, script, bytecodes, offset));
}

static COLD uintptr_t find_slow(struct function_reader *reader, struct function_seen *seen,
                                uint64_t shared, uint64_t bytecodes, int32_t offset) {
    uint64_t words[ENGINE_SHARED_WORDS], facts;
    uintptr_t pc = 0;
    bool was_careful = reader->memory.is_careful;
    reader->memory.is_careful = true;
    if (read_facts(reader, shared, bytecodes, words, &facts))
        pc = make_frame(reader, shared, bytecodes, offset, words);
    reader->memory.is_careful = was_careful;
    if (!pc || reader->is_nameless) return pc;
    seen->shared = 0;
    compiler_barrier();
    seen->facts = facts;
    seen->offset = offset;
    seen->pc = pc;
    compiler_barrier();
    seen->shared = shared;
    return pc;
}

uintptr_t function_find(struct function_reader *reader, uint64_t shared, uint64_t bytecodes,
                        int32_t offset) {
    const unsigned low_bits = 3, high_bits = 15;
    const uint32_t spread = 31;
    uint64_t hash = shared >> low_bits ^ shared >> high_bits ^ (uint64_t)(uint32_t)offset * spread;
    struct function_seen *seen = &reader->seen[hash % FUNCTIONS_SEEN];
    uint64_t words[ENGINE_SHARED_WORDS], facts;
    if (likely(seen->shared == shared && seen->offset == offset) &&
        read_facts(reader, shared, bytecodes, words, &facts) && likely(seen->facts == facts))
        return seen->pc;
    return find_slow(reader, seen, shared, bytecodes, offset);
}
