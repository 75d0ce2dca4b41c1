// SPDX-License-Identifier: Apache-2.0
// Names are believed as long as Ruby did not collect. In a thread that does not hold
// Ruby's lock (rb_nogvl) objects may move meanwhile, and their old pages go: what is not known is
// read there by copies of pages, which fail where there is none.
#include "runtime/ruby/method.h"

#include <string.h>

#include "format/format.h"
#include "runtime/managed/codes.h"
#include "runtime/sys/frame.h"

// ---- events -------------------------------------------------------------------------------------

static uint64_t collection_of(struct memory_reader *memory) {
    uint64_t machine, objects, count;
    if (!engine_ruby.machine_objects || !memory_read_word(memory, engine_ruby.machine, &machine) ||
        !memory_read_word(memory, machine + engine_ruby.machine_objects, &objects) ||
        !memory_read_word(memory, objects + engine_ruby.objects_collections, &count))
        return 0;
    return count + 1;
}

void ruby_method_begin(struct ruby_method_reader *reader, struct managed_native native,
                       bool is_careful) {
    struct memory_reader *memory = &reader->objects.memory;
    memory->copies = &reader->copies;
    memory_forget_copies(memory);
    memory_begin(memory);
    memory->is_careful = is_careful;
    reader->is_nameless = false;
    reader->native = native;
    reader->collection = collection_of(memory);
}

// Native code within the innermost call of Ruby's loop was not let go by Ruby.
static bool holds_lock(struct managed_native native) {
    for (uint32_t i = native.count; i-- > 0;) {
        if (engine_ruby_is_loop(native.frames[i].pc)) return true;
        if (engine_ruby_is_unlocked(native.frames[i].pc)) return false;
    }
    return false;
}

// ---- methods ------------------------------------------------------------------------------------

// The method that a word of an environment leads to; 0: to none, or a scope of constants.
static uint64_t method_of(struct ruby_object_reader *reader, uint64_t object, bool may_be_special) {
    uint64_t flags = ruby_object_flags(reader, object);
    uint64_t kind = flags >> RUBY_INTERNAL_SHIFT & RUBY_INTERNAL_MASK;
    if (!ruby_object_is(flags, RUBY_TYPE_INTERNAL)) return 0;
    if (kind == RUBY_INTERNAL_METHOD) return object;
    if (kind != RUBY_INTERNAL_SPECIAL || !may_be_special) return 0;
    uint64_t inner = 0;
    memory_read_word(&reader->memory, object + sizeof object, &inner);
    return method_of(reader, inner, false);
}

// The method that a frame is in, by its environments outwards; 0: it is in none.
static uint64_t method_around(struct ruby_object_reader *reader, uint64_t environment) {
    const int environments_most = 64;
    uint64_t words[RUBY_ENVIRONMENT_WORDS], found;  // method, outer one, flags
    for (int i = 0; i < environments_most; i++) {
        if (!memory_read(&reader->memory, environment - RUBY_ENVIRONMENT_BEFORE, words,
                         sizeof words))
            return 0;
        bool is_local = words[2] & RUBY_ENVIRONMENT_IS_LOCAL;
        found = method_of(reader, words[0], is_local);
        if (found || is_local) return found;
        environment = words[1] & ~(uint64_t)RUBY_ENVIRONMENT_TAG;
    }
    return 0;
}

// A method as an entry of a class's table says.
struct method {
    uint64_t class, definition;
    uint64_t kind;
};

static bool read_method(struct ruby_object_reader *reader, uint64_t entry, struct method *method) {
    *method = (struct method){0};
    if (!entry ||
        !memory_read(&reader->memory, entry + RUBY_METHOD_CLASS, method,
                     RUBY_METHOD_WORDS * sizeof(uint64_t)) ||
        !memory_read_word(&reader->memory, method->definition, &method->kind))
        return false;
    method->kind &= RUBY_DEFINITION_KIND_MASK;
    return true;
}

// ---- lines --------------------------------------------------------------------------------------

// Positions of instructions at which an entry begins are in a table of bits: of the first ones how
// many entries begin up to each, in 7 bits, nine a word; of others blocks of 512, with how many
// begin before it, before each 64 bits of it, and these bits.
enum { FIRST_POSITIONS = 54, A_WORD = 9, A_RANK = 7, BLOCK = 512, BLOCK_WORDS = 10, BITS = 64 };

static uint32_t entry_of(struct ruby_object_reader *reader, uint64_t table, uint64_t position) {
    const uint64_t rank_mask = 0x7f, inner_mask = 0x1ff, inner_bits = 9;
    uint64_t word;
    if (position < FIRST_POSITIONS) {
        if (!memory_read_word(&reader->memory, table + position / A_WORD * sizeof word, &word))
            return 0;
        return (uint32_t)(word >> position % A_WORD * A_RANK & rank_mask);
    }
    const uint64_t behind = position - FIRST_POSITIONS, bit = behind % BLOCK;
    const uint64_t first_words = FIRST_POSITIONS / A_WORD;
    uint64_t block[BLOCK_WORDS];  // before it, before its words, its bits
    uint64_t at = table + (first_words + behind / BLOCK * BLOCK_WORDS) * sizeof word;
    if (!memory_read(&reader->memory, at, block, sizeof block)) return 0;
    uint64_t inner = bit / BITS ? block[1] >> (bit / BITS - 1) * inner_bits & inner_mask : 0;
    word = block[2 + bit / BITS] << (BITS - 1 - bit % BITS);
    return (uint32_t)block[0] + (uint32_t)inner + (uint32_t)__builtin_popcountll(word);
}

// The line of the instruction in front of `pc`; 0: not known.
static uint32_t line_of(struct ruby_object_reader *reader, uint64_t body, uint64_t pc) {
    uint64_t head[2], lines[4];  // kind with length, instructions; entries, positions (gone),
                                 // count, table
    const unsigned length_shift = 32;
    uint32_t entry = 1, line = 0;
    if (!memory_read(&reader->memory, body, head, sizeof head) ||
        !memory_read(&reader->memory, body + engine_ruby.layout.body_lines, lines, sizeof lines))
        return 0;
    uint64_t position = (pc - head[1]) / sizeof pc;
    if (position > head[0] >> length_shift) return 0;
    if (position) position--;
    const uint32_t count = (uint32_t)lines[2];
    if (count > 1) entry = entry_of(reader, lines[3], position);
    if (!entry || entry > count) return 0;
    memory_read_part(&reader->memory, lines[0] + (uint64_t)(entry - 1) * RUBY_LINE_BYTES,
                     UINT32_MAX, &line);
    return line;
}

// ---- records ------------------------------------------------------------------------------------

struct code {
    uint64_t body;
    uint64_t path, base_label, label;  // as they lie side by side
};

static bool read_code(struct ruby_object_reader *reader, uint64_t address, struct code *code) {
    return memory_read_word(&reader->memory, address + RUBY_CODE_BODY, &code->body) &&
           memory_read(&reader->memory, code->body + engine_ruby.layout.body_location, &code->path,
                       3 * sizeof code->path);
}

// It is a method's own code or a part of that (a block, a rescue).
static bool is_of_method(struct ruby_object_reader *reader, const struct code *code) {
    uint64_t outermost, body;
    uint32_t kind;
    return memory_read_word(&reader->memory, code->body + engine_ruby.layout.body_local,
                            &outermost) &&
           memory_read_word(&reader->memory, outermost + RUBY_CODE_BODY, &body) &&
           memory_read_part(&reader->memory, body, UINT32_MAX, &kind) &&
           kind == RUBY_BODY_KIND_METHOD;
}

enum { CLASS_MOST = RUBY_NAME_BYTES / 2, LABEL_MOST = RUBY_NAME_BYTES / 2 - 1 };

// "block in Class#method": the label, with the class before the method that it ends with.
static size_t put_label(struct ruby_object_reader *reader, const struct code *code, uint64_t entry,
                        uint8_t *out) {
    uint8_t base[LABEL_MOST];
    struct method method;
    size_t used = ruby_object_text(reader, code->label, LABEL_MOST, out);
    size_t length = ruby_object_text(reader, code->base_label, LABEL_MOST, base);
    if (!length || length > used || !read_method(reader, entry, &method) ||
        method.kind != RUBY_DEFINITION_IS_CODE || !is_of_method(reader, code))
        return used;
    uint8_t *behind = out + used - length;
    if (memcmp(behind, base, length) != 0) return used;
    size_t class = ruby_object_class(reader, method.class, CLASS_MOST, behind);
    memcpy(behind + class, base, length);
    return used + class;
}

static size_t put_function(struct ruby_object_reader *reader, uint64_t entry, uint8_t *out) {
    struct method method;
    uint64_t name;
    if (!read_method(reader, entry, &method) ||
        !memory_read_word(&reader->memory, method.definition + RUBY_DEFINITION_NAME, &name))
        return 0;
    size_t used = ruby_object_class(reader, method.class, CLASS_MOST, out);
    size_t length = ruby_object_symbol(reader, name, LABEL_MOST, out + used);
    return length ? used + length : 0;
}

static size_t put_path(struct ruby_object_reader *reader, uint64_t path, uint8_t *out) {
    if (ruby_object_is(ruby_object_flags(reader, path), RUBY_TYPE_ARRAY))
        path = ruby_object_element(reader, path, 0);
    return path ? ruby_object_text(reader, path, RUBY_TEXT_BYTES - 1, out) : 0;
}

static size_t end_text(uint8_t *text, size_t length) {
    text[length] = 0;
    return length + 1;
}

// The number of a record with the method's name and file; CODE_UNKNOWN without a name, or room.
static uint32_t make_record(struct ruby_method_reader *reader, const struct ruby_frame *frame,
                            uint32_t *line) {
    struct ruby_object_reader *objects = &reader->objects;
    struct cairn_code head = {0};
    struct code code = {0};
    uint8_t *text = (uint8_t *)reader->record + sizeof head;
    uint64_t entry = method_around(objects, frame->environment);
    if (frame->pc && !read_code(objects, frame->code, &code)) return CODE_UNKNOWN;
    size_t name =
        frame->pc ? put_label(objects, &code, entry, text) : put_function(objects, entry, text);
    if (!name) return CODE_UNKNOWN;
    head.function_bytes = (uint32_t)end_text(text, name);
    text += head.function_bytes;
    head.file_bytes = (uint32_t)end_text(text, frame->pc ? put_path(objects, code.path, text) : 0);
    size_t used = sizeof head + head.function_bytes + head.file_bytes;
    for (; used % CAIRN_CODE_ALIGN; used++) ((uint8_t *)reader->record)[used] = 0;
    head.bytes = (uint32_t)used;
    memcpy(reader->record, &head, sizeof head);
    *line = frame->pc ? line_of(objects, code.body, frame->pc) : 0;
    uint32_t number = codes_intern(reader->record, used);
    if (!number) reader->is_nameless = true;
    return number;
}

static COLD uintptr_t find_slow(struct ruby_method_reader *reader, struct ruby_method_seen *seen,
                                const struct ruby_frame *frame) {
    struct memory_reader *memory = &reader->objects.memory;
    const bool was_careful = memory->is_careful;
    uint32_t line = 0;
    memory->is_careful |= !holds_lock(reader->native);
    uint32_t number = make_record(reader, frame, &line);
    memory->is_careful = was_careful;
    if (!number) return frame_python(CODE_UNKNOWN, 0);
    uintptr_t pc = frame_python(number, line);
    seen->collection = 0;
    compiler_barrier();
    seen->place = frame->pc;
    seen->methods = frame->methods;
    seen->pc = pc;
    compiler_barrier();
    seen->collection = reader->collection;
    return pc;
}

uintptr_t ruby_method_find(struct ruby_method_reader *reader, const struct ruby_frame *frame) {
    struct ruby_method_seen *seen =
        &reader->seen[codes_mix(frame->pc, frame->methods) % RUBY_METHODS_SEEN];
    if (likely(seen->place == frame->pc && seen->methods == frame->methods &&
               seen->collection == reader->collection && reader->collection))
        return seen->pc;
    return find_slow(reader, seen, frame);
}
