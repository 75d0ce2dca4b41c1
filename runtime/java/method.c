// SPDX-License-Identifier: Apache-2.0
// What makes a method's record is read by system calls. From then on its words are looked at
// directly, by the addresses that were found to hold a method's parts: a word that says something
// else is not followed but read by system calls again.
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

// A bytecode is told by its number with this bit, or by its address.
#define IS_NUMBER ((uint64_t)1 << 63)

// ---- facts --------------------------------------------------------------------------------------

typedef bool read_function(struct memory_reader *memory, uint64_t address, void *bytes,
                           size_t size);

static bool read_known(struct memory_reader *memory, uint64_t address, void *bytes, size_t size) {
    return memory_read(memory, address, bytes, size);
}

static bool read_carefully(struct memory_reader *memory, uint64_t address, void *bytes,
                           size_t size) {
    (void)memory;
    return memory_read_carefully(address, bytes, size);
}

// How a part of a method begins; beyond its size it is 0.
ALWAYS_INLINE bool read_head(read_function *read, struct memory_reader *memory, uint64_t address,
                             void *head, size_t size, uint64_t wanted) {
    size_t taken = least(wanted, size);
    memset((uint8_t *)head + taken, 0, size - taken);
    return read(memory, address, head, taken);
}

ALWAYS_INLINE bool read_constant(read_function *read, struct memory_reader *memory,
                                 struct method_facts *facts) {
    bool is_read = read_head(read, memory, facts->constant, facts->constant_head,
                             METHOD_CONSTANT_BYTES, vm.constant_bytes);
    facts->pool = word_at(facts->constant_head, vm.constant_pool, METHOD_CONSTANT_BYTES);
    return is_read;
}

ALWAYS_INLINE bool read_pool(read_function *read, struct memory_reader *memory,
                             struct method_facts *facts) {
    return read_head(read, memory, facts->pool, facts->pool_head, METHOD_POOL_BYTES, vm.pool_bytes);
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
    struct numbers numbers = {table, table + size, vm_least_byte()};
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

static bool is_same(struct method_reader *reader, const struct method_seen *seen) {
    struct memory_reader *memory = &reader->memory;
    struct method_facts facts;
    return memory_read_word(memory, seen->method + vm.method_constant, &facts.constant) &&
           facts.constant == seen->constant && read_constant(read_known, memory, &facts) &&
           facts.pool == seen->pool && read_pool(read_known, memory, &facts) &&
           hash_facts(&facts) == seen->facts;
}

static bool read_facts(uint64_t method, struct method_facts *facts) {
    return memory_read_carefully(method + vm.method_constant, &facts->constant,
                                 sizeof facts->constant) &&
           read_constant(read_carefully, NULL, facts) && read_pool(read_carefully, NULL, facts);
}

// The bytecode's number. Addresses that are not the method's are in no line.
static uint32_t bci_at(const struct method_facts *facts, uint64_t instruction) {
    uint64_t bci = instruction - facts->constant - vm.constant_bytes;
    bool is_its = bci < half_at(facts->constant_head, vm.constant_code_size, METHOD_CONSTANT_BYTES);
    return is_its ? (uint32_t)bci : METHOD_NO_BCI;
}

static COLD uintptr_t find_slow(struct method_reader *reader, struct method_seen *seen,
                                uint64_t method, uint64_t where) {
    struct method_facts facts;
    if (!read_facts(method, &facts)) return frame_python(CODE_UNKNOWN, 0);
    uint32_t bci = where & IS_NUMBER ? (uint32_t)where : bci_at(&facts, where);
    uint32_t first, line = line_of(reader, &facts, bci, &first);
    uint32_t number = make_record(reader, &facts, first);
    if (!number) reader->is_nameless = true;
    if (!number) return frame_python(CODE_UNKNOWN, 0);
    seen->method = 0;
    compiler_barrier();
    seen->where = where;
    seen->pc = frame_python(number, line);
    seen->constant = facts.constant;
    seen->pool = facts.pool;
    seen->facts = hash_facts(&facts);
    compiler_barrier();
    seen->method = method;
    return seen->pc;
}

static uintptr_t find(struct method_reader *reader, uint64_t method, uint64_t where) {
    const unsigned low_bits = 3, high_bits = 15;
    const uint32_t spread = 31;
    uint64_t hash = method >> low_bits ^ method >> high_bits ^ where * spread;
    struct method_seen *seen = &reader->seen[hash % METHODS_SEEN];
    if (likely(seen->method == method && seen->where == where && is_same(reader, seen)))
        return seen->pc;
    return find_slow(reader, seen, method, where);
}

uintptr_t method_find(struct method_reader *reader, uint64_t method, uint32_t bci) {
    return find(reader, method, IS_NUMBER | bci);
}

uintptr_t method_find_at(struct method_reader *reader, uint64_t method, uint64_t instruction) {
    return find(reader, method, instruction & ~IS_NUMBER);
}
