// SPDX-License-Identifier: Apache-2.0
#include "tool/glibc/giveback.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"

enum {
    WORD = 8,
    CHUNK_LEAST = 32,
    CHUNK_FIELDS = 48,  // struct malloc_chunk, which malloc_trim leaves
};

// --- parameters

// struct malloc_par in 64-bit words: trim_threshold, top_pad, mmap_threshold, arena_test,
// arena_max; since 2.35 two sizes of large pages; then ints: since 2.35 their flags, and n_mmaps,
// n_mmaps_max, max_n_mmaps, no_dyn_threshold; then words: mmapped_mem, max_mmapped_mem.
struct layout {
    unsigned first_int;    // n_mmaps, in halves of words
    unsigned mapped_word;  // mmapped_mem
};
static const struct layout layouts[] = {{15, 10}, {10, 7}};
enum { PARAMETER_WORDS = 12, MMAPS_MAX_USUAL = 65536, ARENAS_MOST = 1 << 16, INT_BITS = 32 };
static const uint64_t threshold_most = 1ull << 40, data_bytes_max = 4ull << 20;

static bool are_thresholds(const uint64_t *words, bool are_fixed) {
    uint64_t trim = words[0], mmap = words[2];
    if (are_fixed) return mmap < threshold_most;
    bool are_usual = trim == MALLOC_THRESHOLD_USUAL && mmap == MALLOC_THRESHOLD_USUAL;
    return are_usual ||
           (mmap > MALLOC_THRESHOLD_USUAL && mmap < threshold_most && trim == 2 * mmap);
}

static uint32_t int_of(const uint64_t *words, unsigned number) {
    return (uint32_t)(words[number / 2] >> number % 2 * INT_BITS);
}

static bool read_parameters(const uint64_t *words, const struct layout *layout,
                            struct malloc_parameters *parameters) {
    enum { COUNT, LIMIT, MOST, FIXED, INTS };
    uint32_t ints[INTS];
    for (unsigned i = 0; i < INTS; i++) ints[i] = int_of(words, layout->first_int + i);
    uint64_t mapped = words[layout->mapped_word], mapped_most = words[layout->mapped_word + 1];
    bool are_valid = words[1] < threshold_most && words[3] && words[3] < ARENAS_MOST &&
                     words[4] < ARENAS_MOST && ints[LIMIT] == MMAPS_MAX_USUAL &&
                     ints[COUNT] <= ints[MOST] && ints[MOST] <= ints[LIMIT] && ints[FIXED] <= 1 &&
                     mapped <= mapped_most && !ints[COUNT] == !mapped &&
                     are_thresholds(words, ints[FIXED]);
    if (!are_valid) return false;
    *parameters =
        (struct malloc_parameters){words[0], words[1], words[2], words[4], ints[FIXED], mapped};
    return true;
}

bool malloc_parameters_find(const struct memory_reader *memory, uint64_t start, uint64_t end,
                            struct malloc_parameters *parameters) {
    size_t count = (size_t)((end - start) / WORD);
    if (end - start > data_bytes_max) return false;
    uint64_t *words = malloc(count * WORD + 1);
    bool is_found = false, is_read = words && memory_read(memory, start, words, count * WORD);
    for (size_t i = 0; is_read && !is_found && i + PARAMETER_WORDS <= count; i++)
        is_found = read_parameters(words + i, &layouts[0], parameters) ||
                   read_parameters(words + i, &layouts[1], parameters);
    free(words);
    return is_found;
}

// --- an arena

static uint64_t align_up(uint64_t value, uint64_t step) {
    return (value + step - 1) / step * step;
}

// Resident bytes that malloc_trim gives back of free memory in one piece.
static uint64_t trimmed(uint64_t start, uint64_t end, const struct resident_source *resident) {
    const uint64_t page = resident->page_bytes;
    uint64_t first = align_up(start + CHUNK_FIELDS, page);
    if (end - start <= page - 1 + CHUNK_FIELDS || end <= first) return 0;
    uint64_t last = first + (end - first) / page * page;
    return last > first ? resident->bytes(resident->context, first, last) : 0;
}

// Resident bytes of an end from `start` on that go back when all but `pad` of it does.
static uint64_t released(uint64_t start, uint64_t end, uint64_t pad,
                         const struct resident_source *resident) {
    const uint64_t page = resident->page_bytes, kept = CHUNK_LEAST + 1 + pad;
    uint64_t bytes = end - start > kept ? (end - start - kept) / page * page : 0;
    return bytes ? resident->bytes(resident->context, end - bytes, end) : 0;
}

static int compare_chunks(const void *a, const void *b) {
    const struct free_chunk *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Joins chunks that lie side by side, and returns how many pieces there are.
static size_t join(struct free_chunk *chunks, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct free_chunk *last = kept ? &chunks[kept - 1] : NULL;
        uint64_t end = last ? last->start + last->bytes : 0;
        if (last && chunks[i].start < end) continue;
        if (last && chunks[i].start == end)
            last->bytes += chunks[i].bytes;
        else
            chunks[kept++] = chunks[i];
    }
    return kept;
}

// Finds the block between the last free piece before the end and the end, if it is one block.
static void find_pin(struct arena_free *arena, const struct free_chunk *chunks, size_t count,
                     const struct malloc_parameters *parameters, const struct memory_reader *memory,
                     const struct resident_source *resident) {
    size_t low;
    uint64_t word;
    search_first(low, count, chunks[low].start >= arena->top);
    if (!low || !parameters) return;
    uint64_t start = chunks[low - 1].start, end = start + chunks[low - 1].bytes;
    if (end >= arena->top || !memory_read_word(memory, end + WORD, &word)) return;
    uint64_t bytes = word & ~(uint64_t)CHUNK_FLAGS, top_end = arena->top + arena->top_bytes;
    if (end + bytes != arena->top || top_end - start < parameters->trim_threshold) return;
    arena->pin = (struct arena_pin){end + CHUNK_HEADER_BYTES, bytes, start,
                                    released(start, top_end, parameters->top_pad, resident)};
}

void giveback_settle(struct arena_free *arena, struct free_chunk *chunks, size_t count,
                     const struct malloc_parameters *parameters, const struct memory_reader *memory,
                     const struct resident_source *resident) {
    uint64_t top = arena->top, top_end = top + arena->top_bytes;
    if (count) qsort(chunks, count, sizeof *chunks, compare_chunks);
    arena->chunk_count = count;
    count = join(chunks, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t start = chunks[i].start, end = start + chunks[i].bytes;
        arena->chunk_bytes += chunks[i].bytes;
        const uint64_t bytes = resident->bytes(resident->context, start, end);
        arena->chunk_resident_bytes += bytes;
        if (end - start >= MALLOC_THRESHOLD_USUAL) arena->piece_bytes += bytes;
        if (end == top)
            top = start;  // of fastbins: malloc_trim joins it with the end
        else
            arena->trim_bytes += trimmed(start, end, resident);
    }
    if (arena->top_bytes)
        arena->top_resident_bytes = resident->bytes(resident->context, arena->top, top_end);
    if (arena->top_resident_bytes > MALLOC_THRESHOLD_USUAL)
        arena->piece_bytes += arena->top_resident_bytes - MALLOC_THRESHOLD_USUAL;
    if (arena->is_main && arena->top_bytes)
        arena->trim_top_bytes = released(top, top_end, 0, resident);
    arena->trim_bytes += arena->trim_top_bytes;
    find_pin(arena, chunks, count, parameters, memory, resident);
}

// --- a heap whose chunks are all known

struct gathering {
    const struct glibc_heap *heap;
    ARRAY(struct free_chunk) chunks;
};

static struct arena_free *arena_of(struct giveback *giveback, const struct glibc_range *range) {
    for (size_t i = 0; i < giveback->arenas.count; i++)
        if (giveback->arenas.items[i].address == range->arena) return &giveback->arenas.items[i];
    struct arena_free *arena = array_push(&giveback->arenas);
    if (arena) *arena = (struct arena_free){.address = range->arena, .is_main = range->is_main};
    return arena;
}

static bool gather(struct gathering *gathering, const struct glibc_range *range) {
    const struct glibc_heap *heap = gathering->heap;
    size_t low;
    search_first(low, heap->chunks.count, heap->chunks.items[low].address >= range->start);
    for (; low < heap->chunks.count && heap->chunks.items[low].address < range->end; low++) {
        const struct glibc_chunk *chunk = &heap->chunks.items[low];
        if (chunk->kind != CHUNK_BINNED && chunk->kind != CHUNK_FAST) continue;
        struct free_chunk *slot = array_push(&gathering->chunks);
        if (!slot) return false;
        *slot = (struct free_chunk){chunk->address - CHUNK_HEADER_BYTES, chunk->size + WORD};
    }
    return true;
}

// Adds up the ranges of an arena: its chunks are gathered, its end is in one of them.
static bool add_arena(struct gathering *gathering, struct arena_free *arena) {
    const struct glibc_heap *heap = gathering->heap;
    gathering->chunks.count = 0;
    for (size_t i = 0; i < heap->ranges.count; i++) {
        const struct glibc_range *range = &heap->ranges.items[i];
        if (range->arena != arena->address) continue;
        arena->system_bytes += range->end - range->start;
        if (range->top < range->end) {
            arena->top = range->top;
            arena->top_bytes = range->end - range->top;
        }
        if (!gather(gathering, range)) return false;
    }
    return true;
}

bool giveback_of_heap(const struct glibc_heap *heap, const struct memory_reader *memory,
                      const struct resident_source *resident, struct giveback *giveback) {
    const struct malloc_parameters *parameters =
        giveback->has_parameters ? &giveback->parameters : NULL;
    struct gathering gathering = {.heap = heap};
    bool is_ok = true;
    for (size_t i = 0; i < heap->ranges.count && is_ok; i++)
        is_ok = arena_of(giveback, &heap->ranges.items[i]) != NULL;
    for (size_t i = 0; i < giveback->arenas.count && is_ok; i++) {
        struct arena_free *arena = &giveback->arenas.items[i];
        is_ok = add_arena(&gathering, arena);
        if (is_ok)
            giveback_settle(arena, gathering.chunks.items, gathering.chunks.count, parameters,
                            memory, resident);
    }
    array_free(&gathering.chunks);
    return is_ok;
}

void giveback_free(struct giveback *giveback) {
    array_free(&giveback->arenas);
}
