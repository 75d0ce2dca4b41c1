// SPDX-License-Identifier: Apache-2.0
#include "tool/live/survey.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/core/glibc.h"
#include "tool/model/index_table.h"

enum { PAGE = RESIDENCY_PAGE_BYTES, HEADER = 16 };

struct surveying {
    const struct survey *from;
    struct heap_state *state;
    struct core_heap heap;
    ARRAY(struct residency_range) ranges;  // of the areas
    ARRAY(struct residency_block) known;   // that the recording has, all or samples
    ARRAY(struct residency_block) blocks;
    struct index_table types;      // names of types to their numbers
    const struct core_type *last;  // type and its owner: neighbours are often alike
    uint32_t last_owner;
    bool is_bad;  // no memory
};

static void add(struct heap_sum *sum, uint64_t bytes) {
    sum->count++;
    sum->bytes += bytes;
}

// --- which pages are resident

static const struct live_segment *segment_of(const struct surveying *surveying, uint64_t address) {
    const struct live_image *live = surveying->from->live;
    size_t low;
    search_first(low, live->segments.count, live->segments.items[low].end > address);
    bool is_found = low < live->segments.count && live->segments.items[low].start <= address;
    return is_found ? &live->segments.items[low] : NULL;
}

// Bytes of [start, end) on resident pages.
static uint64_t resident_bytes(const struct surveying *surveying, uint64_t start, uint64_t end) {
    uint64_t sum = 0;
    if (!surveying->from->live) return end - start;
    while (start < end) {
        const struct live_segment *segment = segment_of(surveying, start);
        if (!segment) break;
        uint64_t next = (start / PAGE + 1) * PAGE;
        if (next > end) next = end;
        if (segment->are_resident[(start - segment->start) / PAGE]) sum += next - start;
        start = next;
    }
    return sum;
}

// --- chunks

static enum heap_kind kind_of(const struct core_chunk *chunk) {
    static const enum heap_kind kinds[] = {[CHUNK_USED] = HEAP_USED,
                                           [CHUNK_MAPPED] = HEAP_MAPPED,
                                           [CHUNK_BINNED] = HEAP_BINNED,
                                           [CHUNK_FAST] = HEAP_FAST,
                                           [CHUNK_CACHED] = HEAP_CACHED};
    return kinds[chunk->kind];
}

static void note_free(struct surveying *surveying, uint64_t start, uint64_t bytes) {
    struct heap_state *state = surveying->state;
    state->free_bytes += bytes;
    state->free_resident_bytes += resident_bytes(surveying, start, start + bytes);
    if (bytes > state->largest_free_bytes) state->largest_free_bytes = bytes;
}

static void sum_chunks(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    for (size_t i = 0; i < surveying->heap.chunks.count; i++) {
        const struct core_chunk *chunk = &surveying->heap.chunks.items[i];
        struct heap_class *class = &state->classes[heap_class_of(chunk->size)];
        bool is_free = chunk_is_free(chunk);
        add(is_free ? &class->free : &class->used, chunk->size);
        add(&state->kinds[kind_of(chunk)], chunk->size);
        if (is_free) note_free(surveying, chunk->address, chunk->size);
    }
    state->broken_count = surveying->heap.broken_count;
}

// --- arenas

static struct heap_arena *arena_of(struct heap_state *state, const struct core_heap_range *range) {
    for (size_t i = 0; i < state->arenas.count; i++)
        if (state->arenas.items[i].address == range->arena) return &state->arenas.items[i];
    struct heap_arena *arena = array_push(&state->arenas);
    if (arena) *arena = (struct heap_arena){.address = range->arena, .is_main = range->is_main};
    return arena;
}

// The first chunk whose block begins at `address` or behind.
static size_t first_chunk(const struct core_heap *heap, uint64_t address) {
    size_t low;
    search_first(low, heap->chunks.count, heap->chunks.items[low].address >= address);
    return low;
}

static void note_largest(struct heap_arena *arena, uint64_t bytes) {
    if (bytes > arena->largest_free_bytes) arena->largest_free_bytes = bytes;
}

static bool add_range(struct surveying *surveying, const struct core_heap_range *range) {
    const struct core_heap *heap = &surveying->heap;
    struct heap_arena *arena = arena_of(surveying->state, range);
    if (!arena) return false;
    uint64_t top_bytes = range->end - range->top;
    arena->bytes += range->end - range->start;
    arena->resident_bytes += resident_bytes(surveying, range->start, range->end);
    arena->top_bytes += top_bytes;
    note_largest(arena, top_bytes);
    surveying->state->top_bytes += top_bytes;
    note_free(surveying, range->top, top_bytes);
    for (size_t i = first_chunk(heap, range->start); i < heap->chunks.count; i++) {
        const struct core_chunk *chunk = &heap->chunks.items[i];
        if (chunk->address >= range->end) break;
        if (!chunk_is_free(chunk)) arena->used_bytes += chunk->size;
        if (!chunk_is_free(chunk)) continue;
        arena->free_bytes += chunk->size;
        note_largest(arena, chunk->size);
    }
    return true;
}

static int compare_arenas(const void *a, const void *b) {
    const struct heap_arena *left = a, *right = b;
    if (left->is_main != right->is_main) return left->is_main ? -1 : 1;
    return (left->address > right->address) - (left->address < right->address);
}

static bool sum_arenas(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    for (size_t i = 0; i < surveying->heap.ranges.count; i++)
        if (!add_range(surveying, &surveying->heap.ranges.items[i])) return false;
    if (state->arenas.count)
        qsort(state->arenas.items, state->arenas.count, sizeof *state->arenas.items,
              compare_arenas);
    return true;
}

// --- areas: arenas, blocks with mappings of their own, and where else live blocks lie

static bool push_area(struct heap_state *state, uint64_t start, uint64_t end,
                      enum heap_area_kind kind) {
    struct heap_area *area = array_push(&state->areas);
    if (area)
        *area = (struct heap_area){start / PAGE * PAGE, (end + PAGE - 1) / PAGE * PAGE, kind, 0};
    return area != NULL;
}

static bool add_mapped_areas(struct surveying *surveying) {
    for (size_t i = 0; i < surveying->heap.chunks.count; i++) {
        const struct core_chunk *chunk = &surveying->heap.chunks.items[i];
        if (chunk->kind == CHUNK_MAPPED &&
            !push_area(surveying->state, chunk->address - HEADER, chunk->address + chunk->size,
                       HEAP_AREA_BLOCKS))
            return false;
    }
    return true;
}

static bool is_in_areas(const struct heap_state *state, uint64_t address, size_t count) {
    size_t low;
    search_first(low, count, state->areas.items[low].end > address);
    return low < count && state->areas.items[low].start <= address;
}

// Memory of another allocator: the segments in which recorded blocks lie.
static bool add_other_areas(struct surveying *surveying) {
    const struct core_blocks *blocks = surveying->from->blocks;
    size_t settled = surveying->state->areas.count;
    uint64_t until = 0;
    for (size_t i = 0; blocks && i < blocks->items.count; i++) {
        uint64_t address = blocks->items.items[i].address;
        if (address < until || is_in_areas(surveying->state, address, settled)) continue;
        const struct core_segment *segment = core_segment_of(surveying->from->core, address);
        if (!segment) continue;
        until = segment->end;
        if (!push_area(surveying->state, segment->start, segment->end, HEAP_AREA_OTHER))
            return false;
    }
    return true;
}

static int compare_areas(const void *a, const void *b) {
    const struct heap_area *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (left->end < right->end) - (left->end > right->end);
}

// Ascending and apart; neighbours of one kind become one, but for the heaps of arenas.
static void settle_areas(struct heap_state *state) {
    size_t kept = 0;
    struct heap_area *items = state->areas.items;
    if (state->areas.count) qsort(items, state->areas.count, sizeof *items, compare_areas);
    for (size_t i = 0; i < state->areas.count; i++) {
        struct heap_area area = items[i], *last = kept ? &items[kept - 1] : NULL;
        bool is_joined = last && area.start <= last->end && area.kind == HEAP_AREA_BLOCKS &&
                         last->kind == HEAP_AREA_BLOCKS;
        if (is_joined && area.end > last->end) last->end = area.end;
        if (last && area.start < last->end) area.start = last->end;
        if (!is_joined && area.start < area.end) items[kept++] = area;
    }
    state->areas.count = kept;
}

static bool find_areas(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    for (size_t i = 0; i < surveying->heap.ranges.count; i++) {
        const struct core_heap_range *range = &surveying->heap.ranges.items[i];
        if (!push_area(state, range->start, range->end,
                       range->is_main ? HEAP_AREA_MAIN : HEAP_AREA_ARENA))
            return false;
    }
    if (!add_mapped_areas(surveying)) return false;
    settle_areas(state);
    if (!add_other_areas(surveying)) return false;
    settle_areas(state);
    return true;
}

// An area of a process is the part of it that was looked at: nothing else is known.
static bool make_ranges(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    size_t kept = 0, page = 0;
    for (size_t i = 0; i < state->areas.count; i++) {
        struct heap_area area = state->areas.items[i];
        const uint8_t *are_resident = NULL;
        if (surveying->from->live) {
            const struct live_segment *segment = segment_of(surveying, area.start);
            if (!segment) continue;
            if (area.end > segment->end) area.end = segment->end;
            are_resident = segment->are_resident + (area.start - segment->start) / PAGE;
        }
        struct residency_range *range = array_push(&surveying->ranges);
        if (!range) return false;
        *range = (struct residency_range){area.start, area.end, are_resident};
        area.first_page = page;
        page += (area.end - area.start) / PAGE;
        state->areas.items[kept++] = area;
    }
    state->areas.count = kept;
    return true;
}

// --- blocks and their owners

static uint32_t stack_of(const struct profile *profile, uint32_t cell) {
    uint32_t number = cell < profile->cell_count ? profile->stack_of_cell[cell] : 0;
    return number && number <= profile->stack_count ? number - 1 : (uint32_t)profile->stack_count;
}

static bool push_block(struct surveying *surveying, const struct residency_block *block) {
    struct residency_block *slot = array_push(&surveying->blocks);
    if (slot) *slot = *block;
    return slot != NULL;
}

static uint64_t hash_of(const char *name) {
    uint64_t hash = index_table_seed();
    for (; *name; name++) hash = hash_mix(hash, (unsigned char)*name);
    return hash;
}

// Types of one name are one.
static uint32_t number_of_type(struct surveying *surveying, const char *name) {
    struct heap_state *state = surveying->state;
    uint64_t hash = hash_of(name);
    struct index_probe probe = index_probe_start(&surveying->types, hash);
    for (uint32_t index; index_probe_next(&surveying->types, &probe, &index);)
        if (!strcmp(state->types.items[index], name)) return index;
    char *copy = strdup(name), **slot = copy ? array_push(&state->types) : NULL;
    if (slot) *slot = copy;
    if (!slot) free(copy);
    bool is_ok =
        slot && index_table_insert(&surveying->types, hash, (uint32_t)state->types.count - 1);
    if (!is_ok) surveying->is_bad = true;
    return is_ok ? (uint32_t)state->types.count - 1 : 0;
}

// Of a block whose stack nobody knows.
static uint32_t owner_of(struct surveying *surveying, const struct core_chunk *chunk) {
    struct core_types *types = surveying->from->types;
    const struct core_type *type =
        types ? core_type_of_block(types, chunk->address, chunk->size) : NULL;
    if (!type) return heap_class_of(chunk->size);
    if (type == surveying->last) return surveying->last_owner;
    surveying->last = type;
    surveying->last_owner = HEAP_CLASSES + number_of_type(surveying, type->name);
    return surveying->last_owner;
}

static bool push_known(struct surveying *surveying, uint64_t address, uint64_t size, uint32_t cell,
                       double weight) {
    struct residency_block *slot = array_push(&surveying->known);
    if (slot)
        *slot = (struct residency_block){address, size, stack_of(surveying->from->profile, cell),
                                         (float)weight};
    return slot != NULL;
}

static int compare_blocks(const void *a, const void *b) {
    const struct residency_block *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

// A recording that began to sample later has blocks of both kinds.
static bool list_known(struct surveying *surveying) {
    const struct core_blocks *blocks = surveying->from->blocks;
    const struct core_samples *samples = surveying->from->samples;
    bool is_ok = true;
    for (size_t i = 0; blocks && i < blocks->items.count && is_ok; i++) {
        const struct core_block *block = &blocks->items.items[i];
        is_ok = push_known(surveying, block->address, block->size, block->cell, 1);
    }
    for (size_t i = 0; samples && i < samples->items.count && is_ok; i++) {
        const struct core_sample *sample = &samples->items.items[i];
        is_ok = push_known(surveying, sample->address, sample->size, sample->cell, sample->weight);
    }
    if (is_ok && samples && samples->items.count)
        qsort(surveying->known.items, surveying->known.count, sizeof *surveying->known.items,
              compare_blocks);
    return is_ok;
}

// What the recording has by size.
static void sum_known(struct surveying *surveying) {
    double counts[HEAP_CLASSES] = {0}, bytes[HEAP_CLASSES] = {0};
    struct heap_state *state = surveying->state;
    for (size_t i = 0; i < surveying->known.count; i++) {
        const struct residency_block *block = &surveying->known.items[i];
        unsigned class = heap_class_of(block->size);
        counts[class] += (double)block->weight;
        bytes[class] += (double)block->weight * (double)block->size;
    }
    for (unsigned i = 0; i < HEAP_CLASSES; i++) {
        state->classes[i].live = (struct heap_sum){(uint64_t)counts[i], (uint64_t)bytes[i]};
        state->live.count += (uint64_t)counts[i];
        state->live.bytes += (uint64_t)bytes[i];
    }
}

// Chunks in use that hold no known block are nobody's: from before the recording, not sampled, or
// libc's own. A known block lies in one chunk, not always at its start.
static bool list_blocks(struct surveying *surveying) {
    size_t next = 0, count = surveying->known.count;
    const struct residency_block *known = surveying->known.items;
    for (size_t i = 0; i < surveying->heap.chunks.count; i++) {
        const struct core_chunk *chunk = &surveying->heap.chunks.items[i];
        while (next < count && known[next].address < chunk->address)
            if (!push_block(surveying, &known[next++])) return false;
        bool is_known = next < count && known[next].address < chunk->address + chunk->size;
        if (chunk_is_free(chunk) || is_known) continue;
        struct residency_block block = {chunk->address, chunk->size, 0, 1};
        block.owner = surveying->state->is_recorded ? (uint32_t)surveying->state->stack_count
                                                    : owner_of(surveying, chunk);
        if (!push_block(surveying, &block)) return false;
    }
    while (next < count)
        if (!push_block(surveying, &known[next++])) return false;
    return true;
}

// Samples stand for more than themselves: so do their shares of pages. What is left of the pages is
// kept by blocks that are not in the recording.
static void scale_samples(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    struct residency *residency = &state->residency;
    struct residency_owner *rest = &residency->owners[state->stack_count];
    const uint64_t used = state->kinds[HEAP_USED].bytes + state->kinds[HEAP_MAPPED].bytes;
    const uint64_t used_count = state->kinds[HEAP_USED].count + state->kinds[HEAP_MAPPED].count;
    double *bytes = calloc(2 * (state->stack_count + 1), sizeof *bytes), kept = 0;
    double *blocks = bytes ? bytes + state->stack_count + 1 : NULL;
    for (size_t i = 0; bytes && i < surveying->known.count; i++) {
        const struct residency_block *block = &surveying->known.items[i];
        bytes[block->owner] += (double)block->weight * (double)block->size;
        blocks[block->owner] += (double)block->weight;
    }
    for (size_t i = 0; bytes && i < state->stack_count; i++) {
        struct residency_owner *owner = &residency->owners[i];
        owner->kept_bytes = (uint64_t)owner->estimated_bytes;
        owner->live_bytes = (uint64_t)bytes[i];
        owner->blocks = (uint64_t)blocks[i];
        owner->alone_bytes = 0;
        kept += owner->estimated_bytes;
    }
    *rest = (struct residency_owner){0};
    if ((double)residency->kept_bytes > kept)
        rest->kept_bytes = residency->kept_bytes - (uint64_t)kept;
    if (used > state->live.bytes) rest->live_bytes = used - state->live.bytes;
    if (used_count > state->live.count) rest->blocks = used_count - state->live.count;
    if (!bytes) surveying->is_bad = true;
    free(bytes);
}

static bool build(struct surveying *surveying, struct error *error) {
    struct heap_state *state = surveying->state;
    const struct profile *profile = surveying->from->profile;
    sum_chunks(surveying);
    if (!sum_arenas(surveying) || !find_areas(surveying) || !make_ranges(surveying) ||
        !list_known(surveying) || !list_blocks(surveying) || surveying->is_bad)
        return error_set(error, "no memory for the list of blocks");
    if (!residency_build(&state->residency, surveying->ranges.items, surveying->ranges.count,
                         surveying->blocks.items, surveying->blocks.count,
                         profile ? profile->stack_count + 1 : HEAP_CLASSES + state->types.count,
                         error))
        return false;
    sum_known(surveying);
    if (state->is_sampled) scale_samples(surveying);
    return !surveying->is_bad || error_set(error, "no memory for the list of blocks");
}

bool survey_build(const struct survey *survey, struct heap_state *state, struct error *error) {
    struct surveying surveying = {.from = survey, .state = state};
    const struct live_image *live = survey->live;
    *state = (struct heap_state){.pid = survey->core->pid,
                                 .is_core = !live,
                                 .pause_ns = live ? live->pause_ns : 0,
                                 .thread_count = live ? live->thread_count : 0,
                                 .copied_bytes = live ? live->copied_bytes : 0,
                                 .is_recorded = survey->blocks != NULL,
                                 .is_sampled = survey->profile && survey->profile->sampling.is_on,
                                 .stack_count = survey->profile ? survey->profile->stack_count : 0};
    if (survey->blocks) state->rejected_count = survey->blocks->rejected_count;
    if (survey->samples) state->rejected_count += survey->samples->rejected_count;
    state->is_glibc = core_read_heap(survey->core, &surveying.heap, error);
    bool is_ok = (state->is_glibc || survey->blocks) && build(&surveying, error);
    core_free_heap(&surveying.heap);
    array_free(&surveying.ranges);
    array_free(&surveying.known);
    array_free(&surveying.blocks);
    index_table_free(&surveying.types);
    if (!is_ok) heap_state_free(state);
    return is_ok;
}
