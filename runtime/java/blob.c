// SPDX-License-Identifier: Apache-2.0
// The code cache keeps its memory, but code is swept and its place used again at any time. What was
// read is believed as long as the number of the compilation is the same; new code is read by system
// calls.
#include "runtime/java/blob.h"

#include <string.h>

#include "runtime/java/numbers.h"
#include "runtime/java/vm.h"
#include "runtime/managed/codes.h"
#include "runtime/managed/memory.h"
#include "runtime/sys/frame.h"

// The JDK from which on a compiled method's debug information lies apart from it.
enum { FIRST_APART = 25 };

static bool read_word(uint64_t address, uint64_t *word) {
    return memory_read_carefully(address, word, sizeof *word);
}

static bool read_half(uint64_t address, uint32_t *half) {
    return memory_read_carefully(address, half, sizeof *half);
}

static uint64_t head_word(const struct blob_reader *reader, uint64_t offset) {
    uint64_t word = 0;
    if (offset + sizeof word <= BLOB_HEAD_BYTES) memcpy(&word, reader->head + offset, sizeof word);
    return word;
}

static uint32_t head_half(const struct blob_reader *reader, uint64_t offset) {
    uint32_t half = 0;
    if (offset + sizeof half <= BLOB_HEAD_BYTES) memcpy(&half, reader->head + offset, sizeof half);
    return half;
}

// ---- which --------------------------------------------------------------------------------------

enum { HEAPS_MOST = 8, SEGMENT_STEPS = 4096, SEGMENT_FREE = 0xff };

// Where the block of a heap begins that an address lies in: each segment says how many segments its
// block began before, or a part of the way.
static uint64_t block_in(uint64_t heap, uint64_t low, uint64_t pc) {
    uint32_t shift;
    uint64_t map;
    if (!read_half(heap + vm.heap_shift, &shift) || shift >= sizeof map * 8 ||
        !read_word(heap + vm.heap_segments + vm.space_low, &map))
        return 0;
    uint64_t segment = (pc - low) >> shift;
    for (unsigned i = 0; i < SEGMENT_STEPS; i++) {
        uint8_t back;
        if (!memory_read_carefully(map + segment, &back, 1) || back == SEGMENT_FREE) return 0;
        if (!back) return low + (segment << shift);
        if (back > segment) return 0;
        segment -= back;
    }
    return 0;
}

// 0: none.
static uint64_t blob_at(uint64_t pc) {
    uint64_t heaps, data, heap, low, high;
    uint32_t count;
    if (!read_word(vm.code_heaps, &heaps) || !read_half(heaps + vm.array_length, &count) ||
        !read_word(heaps + vm.array_data, &data))
        return 0;
    for (uint32_t i = 0; i < count && i < HEAPS_MOST; i++) {
        if (!read_word(data + i * sizeof heap, &heap) ||
            !read_word(heap + vm.heap_memory + vm.space_low, &low) ||
            !read_word(heap + vm.heap_memory + vm.space_high, &high))
            return 0;
        if (pc < low || pc >= high) continue;
        uint64_t block = block_in(heap, low, pc);
        return block ? block + vm.block_bytes : 0;
    }
    return 0;
}

// ---- inlined methods ----------------------------------------------------------------------------

// Addresses of the parts of a compiled method.
struct parts {
    uint64_t code, method, deopt, deopt_handle;
    uint64_t pcs, pcs_end, scopes, methods;  // debug information
};

static struct parts read_parts(const struct blob_reader *reader, uint64_t start) {
    struct parts parts = {.method = head_word(reader, vm.compiled_method)};
    if (vm.version < FIRST_APART) {
        parts.code = head_word(reader, vm.blob_code);
        parts.deopt = head_word(reader, vm.compiled_deopt);
        parts.deopt_handle = head_word(reader, vm.compiled_deopt_handle);
        parts.pcs = start + head_half(reader, vm.compiled_pcs);
        parts.pcs_end = start + head_half(reader, vm.compiled_pcs_end);
        parts.scopes = head_word(reader, vm.compiled_scopes);
        parts.methods = start + head_half(reader, vm.compiled_metadata);
        return parts;
    }
    uint64_t once = head_word(reader, vm.compiled_written_once);
    parts.code = start + head_half(reader, vm.blob_code);
    parts.deopt = start + head_half(reader, vm.compiled_deopt);
    parts.deopt_handle = start + head_half(reader, vm.compiled_deopt_handle);
    parts.pcs = once + head_half(reader, vm.compiled_pcs);
    parts.pcs_end = parts.scopes = once + head_half(reader, vm.compiled_scopes);
    parts.methods =
        head_word(reader, vm.blob_changing) + head_half(reader, vm.blob_relocation_bytes);
    return parts;
}

// Where the debug information of an instruction begins; false: it has none. The table is sorted by
// the instruction's offset.
static bool find_scope(const struct parts *parts, uintptr_t pc, uint32_t *scope) {
    enum { ENTRY_BYTES = 16 };
    struct {
        int32_t pc, scope;
    } entry;
    uint64_t low = 0;
    int64_t wanted = (int64_t)(pc - parts->code);
    if (parts->pcs_end < parts->pcs) return false;
    for (uint64_t high = (parts->pcs_end - parts->pcs) / ENTRY_BYTES; low < high;) {
        uint64_t middle = low + (high - low) / 2;
        if (!memory_read_carefully(parts->pcs + middle * ENTRY_BYTES, &entry, sizeof entry))
            return false;
        *scope = (uint32_t)entry.scope;
        if (entry.pc == wanted) return true;
        if (entry.pc < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool read_scope(struct blob_reader *reader, uint64_t address, struct numbers *numbers) {
    const size_t most = 32;  // three numbers of up to 5 bytes
    const size_t least = 8;
    for (size_t size = most; size >= least; size /= 2) {
        if (!memory_read_carefully(address, reader->scopes, size)) continue;
        *numbers = (struct numbers){reader->scopes, reader->scopes + size, vm_least_byte()};
        return true;
    }
    return false;
}

// From the innermost method to the one that was compiled.
static void add_inlined(struct blob_reader *reader, struct blob_seen *blob,
                        const struct parts *parts, uint32_t scope) {
    while (scope) {
        struct numbers numbers;
        if (blob->inlined_count == BLOB_INLINED) blob->is_cut = true;
        if (blob->is_cut || !read_scope(reader, parts->scopes + scope, &numbers)) break;
        uint32_t sender = numbers_read(&numbers), index = numbers_read(&numbers);
        uint32_t bci = numbers_read(&numbers) - 1;
        uint64_t method;
        uint64_t place = parts->methods + ((uint64_t)index - 1) * sizeof method;
        if (!index || !read_word(place, &method)) break;
        blob->inlined[blob->inlined_count++] = method_find(&reader->methods, method, bci);
        if (sender >= scope) break;  // they lead back
        scope = sender;
    }
}

static void add_methods(struct blob_reader *reader, struct blob_seen *blob,
                        const struct parts *parts, uintptr_t pc) {
    uint32_t scope;
    if (find_scope(parts, pc, &scope)) add_inlined(reader, blob, parts, scope);
    if (!blob->inlined_count)
        blob->inlined[blob->inlined_count++] =
            method_find(&reader->methods, parts->method, METHOD_NO_BCI);
}

// ---- what ---------------------------------------------------------------------------------------

// Of compiled methods, native ones too.
static bool is_compiled_name(uint64_t name) {
    char text[sizeof "native nmethod"] = "";
    const size_t plain = sizeof "nmethod";
    if (memory_read_carefully(name, text, sizeof text) && !strcmp(text, "native nmethod"))
        return true;
    return memory_read_carefully(name, text, plain) && !memcmp(text, "nmethod", plain);
}

static uint32_t id_of(const struct blob_reader *reader, bool is_compiled) {
    return head_half(reader, is_compiled ? vm.compiled_id : vm.blob_size);
}

static bool is_same(struct blob_reader *reader, const struct blob_seen *blob) {
    struct memory_reader *memory = &reader->methods.memory;
    uint64_t at = blob->start + (blob->is_compiled ? vm.compiled_id : vm.blob_size), name;
    uint32_t id;
    return memory_read_word(memory, blob->start + vm.blob_name, &name) &&
           memory_read_part(memory, at, UINT32_MAX, &id) && name == blob->name && id == blob->id;
}

static COLD bool read_blob(struct blob_reader *reader, struct blob_seen *blob, uintptr_t pc) {
    blob->start = blob_at(pc);
    if (!blob->start || !memory_read_carefully(blob->start, reader->head, BLOB_HEAD_BYTES))
        return false;
    uint64_t size = head_half(reader, vm.blob_size);
    if (pc - blob->start >= size) return false;
    blob->name = head_word(reader, vm.blob_name);
    blob->is_compiled = is_compiled_name(blob->name);
    blob->id = id_of(reader, blob->is_compiled);
    blob->frame_bytes = head_half(reader, vm.blob_frame_size) * (uint32_t)sizeof(uintptr_t);
    if (!blob->is_compiled) return true;
    const struct parts parts = read_parts(reader, blob->start);
    blob->deopt = parts.deopt;
    blob->deopt_handle = parts.deopt_handle;
    blob->orig_pc = head_half(reader, vm.compiled_orig_pc);
    if (pc != blob->deopt && pc != blob->deopt_handle) add_methods(reader, blob, &parts, pc);
    return true;
}

const struct blob_seen *blob_find(struct blob_reader *reader, uintptr_t pc) {
    const unsigned low_bits = 2, high_bits = 13;
    struct blob_seen *seen = &reader->seen[(pc >> low_bits ^ pc >> high_bits) % BLOBS_SEEN];
    if (likely(seen->pc == pc && is_same(reader, seen))) return seen;
    seen->pc = 0;
    compiler_barrier();
    struct blob_seen blob = {0};
    if (!read_blob(reader, &blob, pc)) return NULL;
    *seen = blob;
    compiler_barrier();
    seen->pc = pc;
    return seen;
}
