// SPDX-License-Identifier: Apache-2.0
// Instructions lie in an object behind its head, at a multiple of 32 bytes: that is looked for
// backwards from the address. Which frames an instruction of optimized code stands for, the tables
// say by which V8 leaves it for the interpreter (the safe points of its calls); baseline code has
// one that counts bytecodes.
#include "runtime/js/jit.h"

#include <string.h>

#include "runtime/js/bytecodes.h"
#include "runtime/js/engine.h"
#include "runtime/js/positions.h"
#include "runtime/js/translation.h"
#include "runtime/managed/codes.h"
#include "runtime/sys/object.h"

enum { WORD = sizeof(uint64_t) };

// Where a version has what no constant says. Offsets in Code, and in the object of its
// instructions that of the Code (0: they are one); elements of the data for deoptimization; words
// of 4 bytes before the number of safe points.
struct version {
    uint16_t version;
    int32_t code_of_stream, flags, size, deopt, table;
    uint8_t literals, entries, before_points;
};

static const struct version versions[] = {
    {.version = 10 << 8 | 2,
     .flags = 48,
     .size = 40,
     .deopt = 16,
     .table = 24,
     .literals = 2,
     .entries = 11},
    {.version = 11 << 8 | 3,
     .code_of_stream = 8,
     .flags = 48,
     .size = 56,
     .deopt = 16,
     .table = 24,
     .literals = 2,
     .entries = 11},
    {.version = 13 << 8 | 6,
     .code_of_stream = 8,
     .flags = 52,
     .size = 56,
     .deopt = 8,
     .table = 16,
     .literals = 3,
     .entries = 12,
     .before_points = 1},
};

static const struct version *version_find(uint16_t version) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (versions[i].version == version) return &versions[i];
    return NULL;
}

bool jit_is_known(uint16_t version) {
    return version_find(version) && translation_is_known(version) && bytecodes_is_known(version);
}

// ---- which --------------------------------------------------------------------------------------

struct compiled {
    uint64_t stream, code;  // objects
    uint64_t start, size;   // of the instructions
    int32_t kind;
    uint32_t tries;  // objects that were looked at
};

static bool read_code(struct memory_reader *memory, const struct version *version, uint64_t stream,
                      uint64_t *code) {
    if (version->code_of_stream) return engine_read(memory, stream, version->code_of_stream, code);
    *code = stream;
    return true;
}

// False if the object is none whose instructions reach beyond `pc`.
static bool is_code_of(struct memory_reader *memory, const struct version *version, uintptr_t pc,
                       struct compiled *compiled) {
    uint32_t flags, size;
    if (engine_type(memory, compiled->stream) != engine.type_stream ||
        !read_code(memory, version, compiled->stream, &compiled->code) ||
        engine_type(memory, compiled->code) != engine.type_code ||
        !engine_read_half(memory, compiled->code, version->flags, &flags) ||
        !engine_read_half(memory, compiled->code, version->size, &size))
        return false;
    compiled->start = compiled->stream - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)engine.stream_start;
    compiled->size = size;
    compiled->kind = (int32_t)flags & engine.kind_mask;
    return pc > compiled->start && pc - compiled->start <= size;
}

enum { INSTRUCTIONS_ALIGN = 32, LOOK_BYTES = 4096, LOOKS_MOST = 256, TRIES_MOST = 4096 };

// In a piece of memory of LOOK_BYTES at `from`: an object, the last one, whose instructions reach
// beyond `pc`.
static bool find_in_piece(struct jit_reader *reader, const struct version *version, uintptr_t pc,
                          uint64_t from, struct compiled *compiled) {
    struct memory_reader *memory = &reader->functions.memory;
    uint64_t words[LOOK_BYTES / WORD];
    if (!memory_read_carefully(from, words, sizeof words)) return false;
    for (size_t i = LOOK_BYTES / WORD; i-- > 0;) {
        uint64_t at = from + i * WORD;
        bool may_be = (at + (uint64_t)engine.stream_start) % INSTRUCTIONS_ALIGN == 0 && at < pc &&
                      engine_is_object(words[i]);
        if (!may_be) continue;
        compiled->stream = at + ENGINE_OBJECT_TAG;
        if (++compiled->tries > TRIES_MOST) return false;
        if (is_code_of(memory, version, pc, compiled)) return true;
    }
    return false;
}

static bool find_compiled(struct jit_reader *reader, const struct version *version, uintptr_t pc,
                          struct compiled *compiled) {
    struct object object;
    uint64_t from = pc / LOOK_BYTES * LOOK_BYTES;
    compiled->tries = 0;
    if (object_find(pc, &object)) return false;
    for (int i = 0; i < LOOKS_MOST && from >= LOOK_BYTES; i++, from -= LOOK_BYTES)
        if (find_in_piece(reader, version, pc, from, compiled)) return true;
    return false;
}

// ---- baseline code ------------------------------------------------------------------------------

// How many bytecodes are compiled before the one whose code returns to `pc`; -1: it is before all.
static int32_t count_bytecodes(struct function_reader *reader, const struct version *version,
                               const struct compiled *compiled, uintptr_t pc) {
    uint64_t table, end = 0;
    if (!engine_read(&reader->memory, compiled->code, version->table, &table) ||
        engine_type(&reader->memory, table) != engine.type_bytes)
        return FUNCTION_NO_OFFSET;
    uint32_t size = function_read_bytes(reader, table, engine.array_data);
    struct positions_numbers numbers = {reader->buffer, reader->buffer + size};
    for (int32_t count = -1; numbers.at < numbers.end; count++) {
        end += positions_read(&numbers);
        if (end >= pc - compiled->start) return count;
    }
    return FUNCTION_NO_OFFSET;
}

// Where the bytecode of that number begins. The first two are prefixes, for operands of twice and
// four times the size.
static int32_t bytecode_offset(struct function_reader *reader, uint64_t bytecodes, int32_t number) {
    enum { PREFIXES = 2 };
    uint8_t sizes[BYTECODES_SIZES];
    uint32_t at = 0, count = bytecodes_read_sizes(engine.version, engine.bytecode_sizes, sizes);
    uint32_t end = function_read_bytes(reader, bytecodes, engine.bytecodes_data);
    for (; number > 0; number--) {
        uint32_t scale = 0, code = at < end ? reader->buffer[at] : count;
        if (code < PREFIXES && at + 1 < end) {
            scale = code + 1;
            code = reader->buffer[++at];
        }
        if (code >= count) return FUNCTION_NO_OFFSET;
        at += sizes[scale * count + code];
    }
    return at < end ? (int32_t)at : FUNCTION_NO_OFFSET;
}

static void add_baseline(struct jit_reader *reader, const struct version *version,
                         const struct compiled *compiled, struct jit_seen *seen, uint64_t shared,
                         uint64_t bytecodes) {
    struct function_reader *functions = &reader->functions;
    int32_t offset = count_bytecodes(functions, version, compiled, seen->pc);
    if (offset > 0) offset = bytecode_offset(functions, bytecodes, offset);
    seen->frames[0] = function_find(functions, shared, bytecodes, offset);
    seen->count = seen->frames[0] != 0;
}

// ---- optimized code -----------------------------------------------------------------------------

// The table of safe points, behind the instructions: a head, and so many entries. Maglev's has a
// word more at the end of its head, and a byte more in each entry.
struct safe_points {
    uint32_t count, form;
};

// Two compilers follow the baseline's; the first is Maglev, of which earlier versions have none.
static bool is_of_maglev(const struct version *version, const struct compiled *compiled) {
    return version->before_points && compiled->kind == engine.kind_baseline + 1;
}

static uint32_t number_at(const uint8_t *bytes, uint32_t size) {
    uint32_t number = 0;
    memcpy(&number, bytes, size);
    return number;
}

// Which of its deoptimizations belongs to the call that returns to `pc`; -1: none. Where the code
// was found wrong meanwhile, the call returns elsewhere: to the second address of the entry.
static int32_t find_deopt(struct function_reader *reader, const struct version *version,
                          const struct compiled *compiled, uintptr_t pc) {
    const unsigned bits = 7;  // of a size
    const uint32_t size_most = sizeof(uint32_t), has_deopt = 1;
    bool has_more = is_of_maglev(version, compiled);
    struct safe_points head;
    uint64_t at = compiled->start + compiled->size + version->before_points * sizeof(uint32_t);
    if (!memory_read_carefully(at, &head, sizeof head) || !(head.form & has_deopt)) return -1;
    uint32_t registers = head.form >> 1 & bits, pc_size = head.form >> 4 & bits;
    uint32_t index_size = head.form >> 7 & bits;
    uint32_t step = 2 * pc_size + index_size + registers + has_more;
    at += sizeof head + has_more * sizeof(uint32_t);
    if (pc_size > size_most || index_size > size_most || registers > size_most || !step) return -1;
    if (head.count > FUNCTION_BUFFER_BYTES / step ||
        !memory_read_carefully(at, reader->buffer, (size_t)head.count * step))
        return -1;
    uint32_t wanted = (uint32_t)(pc - compiled->start);
    for (uint32_t i = 0; i < head.count; i++) {
        const uint8_t *entry = reader->buffer + (size_t)i * step;
        bool is_its = number_at(entry, pc_size) == wanted ||
                      number_at(entry + pc_size + index_size, pc_size) == wanted + 1;
        if (is_its) return (int32_t)number_at(entry + pc_size, index_size) - 1;
    }
    return -1;
}

// Elements of the data for deoptimization.
enum {
    DEOPT_TRANSLATIONS = 0,
    DEOPT_ENTRY_WORDS = 3,
    DEOPT_ENTRY_TRANSLATION = 1,
};

static bool read_element(struct memory_reader *memory, uint64_t array, uint32_t index,
                         uint64_t *word) {
    int32_t length;
    return engine_read_number(memory, array, engine.array_length, &length) &&
           index < (uint32_t)length && index <= ENGINE_ELEMENTS_MOST &&
           engine_read(memory, array, engine.array_data + (int32_t)index * WORD, word);
}

static uint32_t read_frames(struct function_reader *reader, const struct version *version,
                            uint64_t deopt, int32_t index,
                            struct translation_frame frames[TRANSLATION_FRAMES]) {
    uint64_t table, at;
    uint32_t entry =
        version->entries + (uint32_t)index * DEOPT_ENTRY_WORDS + DEOPT_ENTRY_TRANSLATION;
    if (index < 0 || !read_element(&reader->memory, deopt, DEOPT_TRANSLATIONS, &table) ||
        !read_element(&reader->memory, deopt, entry, &at) || !engine_is_number(at))
        return 0;
    uint32_t size = function_read_bytes(reader, table, engine.array_data);
    return translation_read(engine.version, reader->buffer, size, (uint32_t)engine_number(at),
                            frames);
}

// References of code to its literals may be weak.
static uint64_t strong(uint64_t word) {
    const uint64_t weak_bit = 2;
    return word & ~weak_bit;
}

// A literal that is a function or what functions of one source share.
static uint64_t shared_of(struct memory_reader *memory, uint64_t literal) {
    uint64_t shared;
    if (engine_type(memory, literal) == engine.type_shared) return literal;
    return engine_read(memory, literal, engine.function_shared, &shared) ? shared : 0;
}

static void add_frame(struct function_reader *reader, struct jit_seen *seen, uint64_t shared,
                      int32_t offset) {
    uint64_t bytecodes = offset == TRANSLATION_BUILTIN ? 0 : function_bytecodes(reader, shared);
    uintptr_t pc =
        function_find(reader, shared, bytecodes, bytecodes ? offset : FUNCTION_NO_OFFSET);
    if (seen->count == JIT_FRAMES) seen->is_cut = true;
    if (!(uint32_t)pc) seen->lacks_lines = true;
    if (seen->is_cut || !pc) return;
    seen->frames[seen->count++] = pc;
}

static void add_optimized(struct jit_reader *reader, const struct version *version,
                          const struct compiled *compiled, struct jit_seen *seen, uint64_t shared) {
    struct function_reader *functions = &reader->functions;
    struct memory_reader *memory = &functions->memory;
    struct translation_frame frames[TRANSLATION_FRAMES];
    uint64_t deopt = 0, literals = 0, literal;
    int32_t index = find_deopt(functions, version, compiled, seen->pc);
    uint32_t count = 0;
    if (engine_read(memory, compiled->code, version->deopt, &deopt) &&
        read_element(memory, deopt, version->literals, &literals))
        count = read_frames(functions, version, deopt, index, frames);
    for (uint32_t i = count; i-- > 0;)
        if (read_element(memory, literals, frames[i].literal, &literal))
            add_frame(functions, seen, shared_of(memory, strong(literal)), frames[i].offset);
    // The function that was compiled, in no line, and not what is inlined there.
    if (!count) add_frame(functions, seen, shared, FUNCTION_NO_OFFSET);
}

// ---- seen ---------------------------------------------------------------------------------------

// What tells the code from other code at its place. It may be gone, and what it led to: read by
// system calls.
static bool read_facts(const struct version *version, uint64_t stream, struct jit_seen *seen) {
    uint64_t head[2], tables[2], code = stream;
    if (!memory_read_carefully(stream - ENGINE_OBJECT_TAG, head, sizeof head)) return false;
    if (version->code_of_stream) code = head[1];
    uint64_t at = code - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)version->deopt;
    if (!memory_read_carefully(at, tables, sizeof tables)) return false;
    seen->map = head[0];
    seen->code = head[1];
    seen->facts = codes_mix(tables[0], tables[1]);
    return true;
}

static void read_seen(struct jit_reader *reader, const struct version *version,
                      struct jit_seen *seen, uint64_t shared, uint64_t bytecodes) {
    struct compiled compiled;
    if (!find_compiled(reader, version, seen->pc, &compiled) ||
        !read_facts(version, compiled.stream, seen))
        return;
    seen->object = compiled.stream;
    if (compiled.kind == engine.kind_interpreted) seen->kind = JIT_INTERPRETER;
    if (compiled.kind == engine.kind_baseline) {
        seen->kind = JIT_BASELINE;
        add_baseline(reader, version, &compiled, seen, shared, bytecodes);
    } else if (compiled.kind > engine.kind_baseline) {
        seen->kind = JIT_OPTIMIZED;
        add_optimized(reader, version, &compiled, seen, shared);
    }
}

// Positions are made later than code: where lines are missing they are looked for again, less and
// less often. So is code at an address that had none, and functions that could not be read, as
// while the collector moves them.
static bool is_due(struct jit_seen *seen) {
    bool is_final = seen->object && seen->count && !seen->lacks_lines;
    if (is_final) return false;
    seen->uses++;
    return !(seen->uses & (seen->uses - 1));
}

// V8 takes memory for objects, and gives it back, in pieces of this size and at its multiples, or
// larger ones: where an instruction is that a frame of this thread returns to, all before it in its
// piece is there too.
enum { PIECE_SHIFT = 18, SCAN_MOST = 64 << 10 };

// True if the code at the address is the object that it was: no other one begins on the way there.
// One that begins earlier would have its instructions where this one has its head. What that keeps
// is there too, and read directly.
static bool is_there(struct memory_reader *memory, const struct jit_seen *seen) {
    uint64_t head[2], word, at = seen->object - ENGINE_OBJECT_TAG;
    if (!memory_read(memory, at, head, sizeof head)) return false;
    if (head[0] != seen->map || head[1] != seen->code) return false;
    for (at += INSTRUCTIONS_ALIGN; at < seen->pc; at += INSTRUCTIONS_ALIGN)
        if (!memory_read_word(memory, at, &word) || word == seen->map) return false;
    return true;
}

static bool has_same_tables(struct memory_reader *memory, const struct version *version,
                            const struct jit_seen *seen) {
    uint64_t tables[2], code = version->code_of_stream ? seen->code : seen->object;
    uint64_t at = code - ENGINE_OBJECT_TAG + (uint64_t)(int64_t)version->deopt;
    return memory_read(memory, at, tables, sizeof tables) &&
           codes_mix(tables[0], tables[1]) == seen->facts;
}

static bool is_same_carefully(const struct version *version, const struct jit_seen *seen) {
    struct jit_seen now;
    return read_facts(version, seen->object, &now) && now.map == seen->map &&
           now.code == seen->code && now.facts == seen->facts;
}

static bool is_same(struct memory_reader *memory, const struct version *version,
                    const struct jit_seen *seen) {
    if (!seen->object) return true;
    bool is_near = seen->object >> PIECE_SHIFT == seen->pc >> PIECE_SHIFT &&
                   seen->pc - seen->object <= SCAN_MOST;
    if (unlikely(memory->is_careful || !is_near || !is_there(memory, seen)))
        return is_same_carefully(version, seen);
    return has_same_tables(memory, version, seen);
}

static COLD const struct jit_seen *find_slow(struct jit_reader *reader,
                                             const struct version *version, struct jit_seen *seen,
                                             uintptr_t pc, uint64_t shared, uint64_t bytecodes) {
    struct jit_seen found = {.pc = pc, .uses = seen->pc == pc ? seen->uses : 0};
    struct memory_reader *memory = &reader->functions.memory;
    bool was_careful = memory->is_careful;
    seen->pc = 0;
    compiler_barrier();
    memory->is_careful = true;
    read_seen(reader, version, &found, shared, bytecodes);
    memory->is_careful = was_careful;
    found.pc = 0;
    *seen = found;
    compiler_barrier();
    seen->pc = pc;
    return seen;
}

const struct jit_seen *jit_find(struct jit_reader *reader, uintptr_t pc, uint64_t shared,
                                uint64_t bytecodes) {
    const unsigned low_bits = 2, high_bits = 13;
    const struct version *version = version_find(engine.version);
    struct jit_seen *seen = &reader->seen[(pc >> low_bits ^ pc >> high_bits) % JIT_SEEN];
    if (likely(seen->pc == pc) && is_same(&reader->functions.memory, version, seen) &&
        !is_due(seen))
        return seen;
    return find_slow(reader, version, seen, pc, shared, bytecodes);
}
