// SPDX-License-Identifier: Apache-2.0
// A method that a frame of this thread runs is kept by the JVM, so that what tells it from others
// is read directly. What makes its record is read by system calls, and believed as long as the
// method's own words say the same.
#include "runtime/java/method.h"

#include <string.h>

#include "format/format.h"
#include "runtime/java/numbers.h"
#include "runtime/java/vm.h"
#include "runtime/managed/codes.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/frame.h"

static uint16_t half_at(const uint64_t *words, uint64_t offset, size_t size) {
    uint16_t half = 0;
    if (offset + sizeof half <= size) memcpy(&half, (const uint8_t *)words + offset, sizeof half);
    return half;
}

static uint64_t word_at(const uint64_t *words, uint64_t offset, size_t size) {
    uint64_t word = 0;
    if (offset + sizeof word <= size) memcpy(&word, (const uint8_t *)words + offset, sizeof word);
    return word;
}

static size_t least(uint64_t one, size_t other) {
    return one < other ? (size_t)one : other;
}

// The constant part alone is not all: the rest follows by read_pool.
static bool read_constant(struct method_reader *reader, uint64_t method,
                          struct method_facts *facts) {
    size_t size = least(vm.constant_bytes, METHOD_CONSTANT_BYTES);
    memset((uint8_t *)facts->constant_head + size, 0, METHOD_CONSTANT_BYTES - size);
    return memory_read_word(&reader->memory, method + vm.method_constant, &facts->constant) &&
           memory_read(&reader->memory, facts->constant, facts->constant_head, size);
}

static bool read_pool(struct method_reader *reader, struct method_facts *facts) {
    size_t size = least(vm.pool_bytes, METHOD_POOL_BYTES);
    facts->pool = word_at(facts->constant_head, vm.constant_pool, METHOD_CONSTANT_BYTES);
    memset((uint8_t *)facts->pool_head + size, 0, METHOD_POOL_BYTES - size);
    return memory_read(&reader->memory, facts->pool, facts->pool_head, size);
}

static uint64_t hash_facts(const struct method_facts *facts) {
    const size_t most = METHOD_CONSTANT_BYTES, pool_most = METHOD_POOL_BYTES;
    uint64_t hash = codes_mix(facts->constant, facts->pool);
    for (size_t i = 0; i < least(vm.constant_bytes, most) / sizeof hash; i++)
        hash = codes_mix(hash, facts->constant_head[i]);
    for (size_t i = 0; i < least(vm.pool_bytes, pool_most) / sizeof hash; i++)
        hash = codes_mix(hash, facts->pool_head[i]);
    return hash;
}

// ---- texts --------------------------------------------------------------------------------------

// Copies a symbol, cut; the bytes written, without a NUL.
static size_t put_symbol(uint64_t symbol, uint8_t *out) {
    uint16_t length = 0;
    const size_t most = METHOD_TEXT_BYTES / 2;
    if (!memory_read_carefully(symbol + vm.symbol_length, &length, sizeof length)) return 0;
    size_t taken = least(length, most), kept = 0;
    if (!memory_read_carefully(symbol + vm.symbol_body, out, taken)) return 0;
    for (size_t i = 0; i < taken; i++)
        if (out[i]) out[kept++] = out[i];
    return kept;
}

static size_t put_constant(const struct method_facts *facts, uint16_t index, uint8_t *out) {
    uint64_t symbol = 0, at = facts->pool + vm.pool_bytes + index * sizeof symbol;
    return index && memory_read_carefully(at, &symbol, sizeof symbol) ? put_symbol(symbol, out) : 0;
}

// "java/util/Map" becomes "java.util.Map"; a hidden class' last '+' becomes '/', as Java says it.
static void say_class(uint8_t *text, size_t length) {
    size_t plus = length;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '/') text[i] = '.';
        if (text[i] == '+') plus = i;
    }
    if (plus < length) text[plus] = '/';
}

// The folder of the package, which the name of a file is without.
static size_t put_folder(const uint8_t *name, size_t length, uint8_t *out) {
    while (length && name[length - 1] != '/') length--;
    memcpy(out, name, length);
    return length;
}

// ---- lines --------------------------------------------------------------------------------------

// The table behind the bytecodes: a byte with both steps, or 0xff and both as numbers; 0 ends it.
static uint32_t find_line(const uint8_t *table, size_t size, uint32_t bci, uint32_t *first) {
    const uint8_t both = 0xff, line_mask = 7;
    const unsigned bci_shift = 3;
    struct numbers numbers = {table, table + size};
    int64_t at = 0, line = 0, best_at = -1, best = 0;
    while (numbers.at < numbers.end && *numbers.at) {
        uint8_t byte = *numbers.at++;
        at += byte == both ? numbers_read_signed(&numbers) : byte >> bci_shift;
        line += byte == both ? numbers_read_signed(&numbers) : byte & line_mask;
        if (!*first && line > 0 && line <= UINT16_MAX) *first = (uint32_t)line;
        if (at > bci || at < best_at) continue;
        best_at = at;
        best = line;
        if (at == bci) break;
    }
    return best > 0 && best <= UINT16_MAX ? (uint32_t)best : 0;
}

// 0: unknown. METHOD_NO_BCI asks for the first line alone.
static uint32_t line_of(struct method_reader *reader, const struct method_facts *facts,
                        uint32_t bci, uint32_t *first) {
    const uint32_t has_lines = 1, step = 256;
    *first = 0;
    if (!(half_at(facts->constant_head, vm.constant_flags, METHOD_CONSTANT_BYTES) & has_lines))
        return 0;
    uint64_t at = facts->constant + vm.constant_bytes +
                  half_at(facts->constant_head, vm.constant_code_size, METHOD_CONSTANT_BYTES);
    size_t size = 0;
    // How long it is, its end says. Pieces do not cross into another page.
    while (size < METHOD_LINES_BYTES - step) {
        size_t piece = step - (at + size) % step;
        if (!memory_read_carefully(at + size, reader->lines + size, piece)) break;
        size += piece;
        if (memchr(reader->lines + size - piece, 0, piece)) break;
    }
    uint32_t line = find_line(reader->lines, size, bci, first);
    return bci == METHOD_NO_BCI ? 0 : line;
}

// ---- records ------------------------------------------------------------------------------------

static uint32_t make_record(struct method_reader *reader, const struct method_facts *facts,
                            uint32_t first_line) {
    struct cairn_code head = {.first_line = first_line};
    uint8_t *out = (uint8_t *)reader->record, name[METHOD_TEXT_BYTES];
    size_t used = sizeof head, function = used;
    uint64_t symbol = 0, holder = word_at(facts->pool_head, vm.pool_holder, METHOD_POOL_BYTES);
    size_t length = memory_read_carefully(holder + vm.class_name, &symbol, sizeof symbol)
                        ? put_symbol(symbol, name)
                        : 0;
    memcpy(out + used, name, length);
    say_class(out + used, length);
    used += length;
    if (length) out[used++] = '.';
    used += put_constant(
        facts, half_at(facts->constant_head, vm.constant_name, METHOD_CONSTANT_BYTES), out + used);
    out[used++] = 0;
    head.function_bytes = (uint32_t)(used - function);
    size_t file = used;
    size_t folder = put_folder(name, length, out + used);
    size_t in_folder = put_constant(
        facts, half_at(facts->pool_head, vm.pool_file, METHOD_POOL_BYTES), out + used + folder);
    if (in_folder) used += folder + in_folder;
    out[used++] = 0;
    head.file_bytes = (uint32_t)(used - file);
    for (; used % CAIRN_CODE_ALIGN; used++) out[used] = 0;
    head.bytes = (uint32_t)used;
    memcpy(out, &head, sizeof head);
    return codes_intern(reader->record, used);
}

static COLD uintptr_t find_slow(struct method_reader *reader, struct method_seen *seen,
                                uint64_t method, uint32_t bci, const struct method_facts *facts) {
    uint32_t first, line = line_of(reader, facts, bci, &first);
    uint32_t number = make_record(reader, facts, first);
    if (!number) reader->is_nameless = true;
    if (!number) return frame_python(CODE_UNKNOWN, 0);
    seen->method = 0;
    compiler_barrier();
    seen->bci = bci;
    seen->pc = frame_python(number, line);
    seen->facts = hash_facts(facts);
    compiler_barrier();
    seen->method = method;
    return seen->pc;
}

// With the constant part read.
static uintptr_t find_with(struct method_reader *reader, uint64_t method, uint32_t bci,
                           struct method_facts *facts) {
    const unsigned low_bits = 3, high_bits = 15;
    const uint32_t spread = 31;
    uint64_t hash = method >> low_bits ^ method >> high_bits ^ (uint64_t)bci * spread;
    struct method_seen *seen = &reader->seen[hash % METHODS_SEEN];
    if (!read_pool(reader, facts)) return frame_python(CODE_UNKNOWN, 0);
    if (likely(seen->method == method && seen->bci == bci && seen->facts == hash_facts(facts)))
        return seen->pc;
    return find_slow(reader, seen, method, bci, facts);
}

uintptr_t method_find(struct method_reader *reader, uint64_t method, uint32_t bci) {
    struct method_facts facts;
    if (!read_constant(reader, method, &facts)) return frame_python(CODE_UNKNOWN, 0);
    return find_with(reader, method, bci, &facts);
}

uintptr_t method_find_at(struct method_reader *reader, uint64_t method, uint64_t instruction) {
    struct method_facts facts;
    if (!read_constant(reader, method, &facts)) return frame_python(CODE_UNKNOWN, 0);
    uint64_t bci = instruction - facts.constant - vm.constant_bytes;
    bool is_its = bci < half_at(facts.constant_head, vm.constant_code_size, METHOD_CONSTANT_BYTES);
    return find_with(reader, method, instruction && is_its ? (uint32_t)bci : METHOD_NO_BCI, &facts);
}
