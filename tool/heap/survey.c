// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/survey.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/glibc/chunks.h"
#include "tool/heap/other_heaps.h"
#include "tool/heap/survey_other.h"
#include "tool/heap/survey_ranges.h"
#include "tool/model/index_table.h"

enum { HEADER = 16 };

// What samples stand for, of an owner or of a class of sizes.
struct known_sum {
    double count, bytes;
};

struct surveying {
    const struct survey *from;
    struct heap_state *state;
    struct glibc_heap heap;
    struct survey_ranges ranges;  // of the areas
    size_t next_chunk, next_sample;
    struct core_block_cursor cursor;
    struct core_block block;                 // the next one that was recorded exactly
    bool has_block;                          // there is one
    struct residency_block known;            // the next one that the recording has
    bool has_known;                          // there is one
    struct known_sum classes[HEAP_CLASSES];  // of what the recording has, by size
    struct known_sum *stacks;                // the same by stack; NULL: nothing is estimated
    struct index_table types;                // names of types to their numbers
    const struct core_type *last;            // type and its owner: neighbours are often alike
    uint32_t last_owner;
    bool is_bad;  // no memory
};

static void add(struct heap_sum *sum, uint64_t bytes) {
    sum->count++;
    sum->bytes += bytes;
}

// --- which pages are resident

static uint64_t page_size(const struct surveying *surveying) {
    return core_page_bytes(surveying->from->core);
}

// Bytes of [start, end) on resident pages.
static uint64_t resident_bytes(const struct surveying *surveying, uint64_t start, uint64_t end) {
    const struct stopped_image *live = surveying->from->live;
    return live ? stopped_resident_bytes(live, start, end) : end - start;
}

// --- chunks

static enum heap_kind kind_of(const struct glibc_chunk *chunk) {
    static const enum heap_kind kinds[] = {
        [CHUNK_USED] = HEAP_USED,     [CHUNK_MAPPED] = HEAP_MAPPED, [CHUNK_MOVING] = HEAP_MOVING,
        [CHUNK_BINNED] = HEAP_BINNED, [CHUNK_FAST] = HEAP_FAST,     [CHUNK_CACHED] = HEAP_CACHED};
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
        const struct glibc_chunk *chunk = &surveying->heap.chunks.items[i];
        struct heap_class *class = &state->classes[heap_class_of(chunk->size)];
        bool is_free = chunk_is_free(chunk);
        if (is_free || chunk_is_used(chunk))
            add(is_free ? &class->free : &class->used, chunk->size);
        add(&state->kinds[kind_of(chunk)], chunk->size);
        if (is_free) note_free(surveying, chunk->address, chunk->size);
    }
    state->broken_count = surveying->heap.broken_count;
}

// --- arenas

static struct heap_arena *arena_of(struct heap_state *state, const struct glibc_range *range) {
    for (size_t i = 0; i < state->arenas.count; i++)
        if (state->arenas.items[i].address == range->arena) return &state->arenas.items[i];
    struct heap_arena *arena = array_push(&state->arenas);
    if (arena) *arena = (struct heap_arena){.address = range->arena, .is_main = range->is_main};
    return arena;
}

// The first chunk whose block begins at `address` or behind.
static size_t first_chunk(const struct glibc_heap *heap, uint64_t address) {
    size_t low;
    search_first(low, heap->chunks.count, heap->chunks.items[low].address >= address);
    return low;
}

static void note_largest(struct heap_arena *arena, uint64_t bytes) {
    if (bytes > arena->largest_free_bytes) arena->largest_free_bytes = bytes;
}

static bool add_range(struct surveying *surveying, const struct glibc_range *range) {
    const struct glibc_heap *heap = &surveying->heap;
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
        const struct glibc_chunk *chunk = &heap->chunks.items[i];
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

static bool push_area(struct surveying *surveying, uint64_t start, uint64_t end,
                      enum heap_area_kind kind) {
    const uint64_t page_bytes = page_size(surveying);
    struct heap_area *area = array_push(&surveying->state->areas);
    if (area)
        *area = (struct heap_area){start / page_bytes * page_bytes,
                                   (end + page_bytes - 1) / page_bytes * page_bytes, kind, 0};
    return area != NULL;
}

static bool add_mapped_areas(struct surveying *surveying) {
    for (size_t i = 0; i < surveying->heap.chunks.count; i++) {
        const struct glibc_chunk *chunk = &surveying->heap.chunks.items[i];
        if (chunk->kind == CHUNK_MAPPED &&
            !push_area(surveying, chunk->address - HEADER, chunk->address + chunk->size,
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

static bool add_other_memory(struct surveying *surveying) {
    const struct spans *memory = &surveying->heap.other.memory;
    for (size_t i = 0; i < memory->items.count; i++) {
        uint64_t at = memory->items.items[i].start, end = memory->items.items[i].end;
        for (struct span part; core_next_part(surveying->from->core, &at, end, &part);)
            if (!push_area(surveying, part.start, part.end, HEAP_AREA_OTHER)) return false;
    }
    return true;
}

// Memory of an allocator that is not read: the segments in which recorded blocks lie.
static bool add_unread_areas(struct surveying *surveying) {
    const struct core_blocks *blocks = surveying->from->blocks;
    size_t settled = surveying->state->areas.count;
    struct core_block_cursor cursor = {.blocks = blocks};
    struct core_block block;
    uint64_t until = 0;
    while (blocks && core_blocks_next(&cursor, &block)) {
        const uint64_t address = block.address;
        if (address < until || is_in_areas(surveying->state, address, settled)) continue;
        const struct memory_segment *segment = core_segment_of(surveying->from->core, address);
        if (!segment) continue;
        until = segment->end;
        if (!push_area(surveying, segment->start, segment->end, HEAP_AREA_OTHER)) return false;
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
        bool is_joined = last && area.start <= last->end && area.kind == last->kind &&
                         (area.kind == HEAP_AREA_BLOCKS || area.kind == HEAP_AREA_OTHER);
        if (is_joined && area.end > last->end) last->end = area.end;
        if (last && area.start < last->end) area.start = last->end;
        if (!is_joined && area.start < area.end) items[kept++] = area;
    }
    state->areas.count = kept;
}

static bool find_areas(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    for (size_t i = 0; i < surveying->heap.ranges.count; i++) {
        const struct glibc_range *range = &surveying->heap.ranges.items[i];
        if (!push_area(surveying, range->start, range->end,
                       range->is_main ? HEAP_AREA_MAIN : HEAP_AREA_ARENA))
            return false;
    }
    if (!add_mapped_areas(surveying) || !add_other_memory(surveying)) return false;
    settle_areas(state);
    if (!add_unread_areas(surveying)) return false;
    settle_areas(state);
    return true;
}

// --- blocks and their owners

static uint32_t stack_of(const struct profile *profile, uint32_t cell) {
    uint32_t number = cell < profile->cell_count ? profile->stack_of_cell[cell] : 0;
    return number && number <= profile->stack_count ? number - 1 : (uint32_t)profile->stack_count;
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

// Of a block without a known stack.
static uint32_t owner_of(struct surveying *surveying, const struct glibc_chunk *chunk) {
    struct core_types *types = surveying->from->types;
    const struct core_type *type =
        types ? core_type_of_block(types, chunk->address, chunk->size) : NULL;
    if (!type) return heap_class_of(chunk->size);
    if (type == surveying->last) return surveying->last_owner;
    surveying->last = type;
    surveying->last_owner = HEAP_CLASSES + number_of_type(surveying, type->name);
    return surveying->last_owner;
}

static void find_block(struct surveying *surveying) {
    surveying->has_block =
        surveying->from->blocks && core_blocks_next(&surveying->cursor, &surveying->block);
}

// Goes on to the next block that the recording has. One that began to sample later has blocks of
// both kinds.
static void find_known(struct surveying *surveying) {
    const struct core_samples *samples = surveying->from->samples;
    const struct core_block *block = surveying->has_block ? &surveying->block : NULL;
    const struct core_sample *sample = NULL;
    const struct profile *profile = surveying->from->profile;
    if (samples && surveying->next_sample < samples->items.count)
        sample = &samples->items.items[surveying->next_sample];
    surveying->has_known = block || sample;
    if (sample && (!block || sample->address < block->address)) {
        surveying->known = (struct residency_block){
            sample->address, sample->size, stack_of(profile, sample->cell), (float)sample->weight};
        surveying->next_sample++;
    } else if (block) {
        surveying->known = (struct residency_block){block->address, block->size,
                                                    stack_of(profile, block->cell), 1};
        find_block(surveying);
    }
}

static void add_known(struct known_sum *sum, const struct residency_block *block) {
    sum->count += (double)block->weight;
    sum->bytes += (double)block->weight * (double)block->size;
}

static void take_known(struct surveying *surveying, struct residency_block *block) {
    *block = surveying->known;
    add_known(&surveying->classes[heap_class_of(block->size)], block);
    if (surveying->stacks) add_known(&surveying->stacks[block->owner], block);
    find_known(surveying);
}

// The live blocks. Chunks in use that hold no known block are nobody's: from before the recording,
// not sampled, or libc's own. A known block lies in one chunk, not always at its start.
static bool next_live(void *context, struct residency_block *block) {
    struct surveying *surveying = context;
    const struct residency_block *known = &surveying->known;
    while (surveying->next_chunk < surveying->heap.chunks.count) {
        const struct glibc_chunk *chunk = &surveying->heap.chunks.items[surveying->next_chunk];
        if (surveying->has_known && known->address < chunk->address) {
            take_known(surveying, block);
            return true;
        }
        surveying->next_chunk++;
        bool is_known = surveying->has_known && known->address < chunk->address + chunk->size;
        if (chunk_is_free(chunk) || is_known) continue;
        *block = (struct residency_block){chunk->address, chunk->size, 0, 1};
        block->owner = surveying->state->is_recorded ? (uint32_t)surveying->state->stack_count
                                                     : owner_of(surveying, chunk);
        return true;
    }
    if (!surveying->has_known) return false;
    take_known(surveying, block);
    return true;
}

// What the recording has by size.
static void sum_known(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    for (unsigned i = 0; i < HEAP_CLASSES; i++) {
        const struct known_sum *class = &surveying->classes[i];
        state->classes[i].live =
            (struct heap_sum){(uint64_t) class->count, (uint64_t) class->bytes};
        state->live.count += (uint64_t) class->count;
        state->live.bytes += (uint64_t) class->bytes;
    }
}

// By what estimates are too large together, of which so much is there: they keep their ratio.
static double excess_of(double estimated, uint64_t there) {
    return estimated > (double)there ? (double)there / estimated : 1;
}

// Samples stand for more than themselves: so do their shares of pages. What is left of the pages is
// kept by blocks that are not in the recording. Pages and glibc's blocks in use are known, so what
// stacks keep of them is no more than all of it.
static void scale_samples(struct surveying *surveying) {
    struct heap_state *state = surveying->state;
    struct residency *residency = &state->residency;
    struct residency_owner *rest = &residency->owners[state->stack_count];
    const uint64_t used = state->kinds[HEAP_USED].bytes + state->kinds[HEAP_MAPPED].bytes;
    const uint64_t used_count = state->kinds[HEAP_USED].count + state->kinds[HEAP_MAPPED].count;
    double estimated = 0, bytes = 0, count = 0, kept = 0;
    for (size_t i = 0; i < state->stack_count; i++) {
        estimated += residency->owners[i].estimated_bytes;
        bytes += surveying->stacks[i].bytes;
        count += surveying->stacks[i].count;
    }
    const double of_pages = excess_of(estimated, residency->kept_bytes);
    const double of_bytes = state->allocator ? excess_of(bytes, used) : 1;
    const double of_count = state->allocator ? excess_of(count, used_count) : 1;
    for (size_t i = 0; i < state->stack_count; i++) {
        struct residency_owner *owner = &residency->owners[i];
        owner->kept_bytes = (uint64_t)(owner->estimated_bytes * of_pages);
        owner->live_bytes = (uint64_t)(surveying->stacks[i].bytes * of_bytes);
        owner->blocks = (uint64_t)(surveying->stacks[i].count * of_count);
        owner->alone_bytes = 0;
        kept += owner->estimated_bytes * of_pages;
    }
    *rest = (struct residency_owner){0};
    if ((double)residency->kept_bytes > kept)
        rest->kept_bytes = residency->kept_bytes - (uint64_t)kept;
    if (used > state->live.bytes) rest->live_bytes = used - state->live.bytes;
    if (used_count > state->live.count) rest->blocks = used_count - state->live.count;
}

static bool begin_blocks(struct surveying *surveying) {
    const struct heap_state *state = surveying->state;
    surveying->cursor.blocks = surveying->from->blocks;
    find_block(surveying);
    find_known(surveying);
    if (state->is_sampled)
        surveying->stacks = calloc(state->stack_count + 1, sizeof *surveying->stacks);
    return !state->is_sampled || surveying->stacks;
}

static bool build(struct surveying *surveying, struct error *error) {
    struct heap_state *state = surveying->state;
    const struct profile *profile = surveying->from->profile;
    const struct residency_blocks blocks = {next_live, surveying};
    sum_chunks(surveying);
    if (!survey_other(surveying->from->core, surveying->from->live, &surveying->heap.other,
                      state) ||
        !sum_arenas(surveying) || !find_areas(surveying) ||
        !survey_ranges_make(surveying->from->core, surveying->from->live, state,
                            &surveying->ranges) ||
        !begin_blocks(surveying))
        return error_set(error, "no memory for the figures of the heap");
    if (!residency_build(&state->residency, page_size(surveying), surveying->ranges.list.items,
                         surveying->ranges.list.count, &blocks,
                         profile ? profile->stack_count + 1 : HEAP_CLASSES, error))
        return false;
    sum_known(surveying);
    if (state->is_sampled) scale_samples(surveying);
    return !surveying->is_bad || error_set(error, "no memory for the types of blocks");
}

// Reads the heap of whatever allocator it has; notes which. False without memory, or if there is
// none and nothing is recorded.
static bool read_heap(struct surveying *surveying, struct error *error) {
    const struct core_image *core = surveying->from->core;
    const struct memory_view view = core_view(core);
    struct glibc_heap *heap = &surveying->heap;
    const char *glibc = glibc_heap_read(&view, heap, error) ? "glibc" : NULL;
    if (surveying->from->may_be_another && !core_add_other_heaps(core, heap))
        return error_set(error, "out of memory");
    surveying->state->allocator = heap->other.name ? heap->other.name : glibc;
    return surveying->state->allocator || surveying->from->blocks || core_refuse_heap(core, error);
}

bool survey_build(const struct survey *survey, struct heap_state *state, struct error *error) {
    struct surveying surveying = {.from = survey, .state = state};
    const struct stopped_image *live = survey->live;
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
    bool is_ok = read_heap(&surveying, error) && build(&surveying, error);
    glibc_heap_free(&surveying.heap);
    survey_ranges_free(&surveying.ranges);
    free(surveying.stacks);
    index_table_free(&surveying.types);
    if (!is_ok) heap_state_free(state);
    return is_ok;
}
