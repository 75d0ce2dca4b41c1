// SPDX-License-Identifier: Apache-2.0
// From what was measured to a list: the simplest pool that does it for each home, then pools that
// would be written as one are one candidate: those of several threads, and those of stacks that
// allocate at the same place. In one thread these share the chunks.
#include <stdlib.h>

#include "tool/base/array.h"
#include "tool/events/pool_units.h"
#include "tool/model/index_table.h"

enum {
    PERCENT = 100,
    USUAL_PERCENT = 50,  // least share of blocks that have a slab's size
    CALLS_OF_CHUNK = 8,  // that a chunk has to spare
};

// A pool in one thread, as of one home or arena.
struct draft {
    enum pool_kind kind;
    uint64_t key;   // the same: one candidate
    uint32_t slot;  // the same: one pool
    uint32_t home;
    bool is_shared;
    uint64_t blocks, calls, bytes, live_bytes, chunks, largest, block_bytes, generations;
};

struct member {
    uint32_t draft, stack;  // draft: later the candidate
    uint64_t calls;
};

struct choosing {
    const struct pool_units *units;
    const struct pool_search *search;
    struct pool_candidates *found;
    ARRAY(struct draft) drafts;
    uint32_t *draft_of_home;  // + 1
    uint32_t *candidate_of_draft;
    uint64_t *arena_keys;  // by home: of all stacks that share the arena
    struct member *members;
    size_t member_count;
};

static uint32_t stack_of(const struct choosing *choosing, uint32_t cell) {
    return choosing->search->stack_of_cell[cell] - 1;
}

static uint64_t site_of(const struct choosing *choosing, uint32_t cell) {
    return choosing->search->site_of_stack[stack_of(choosing, cell)];
}

static uint64_t key_of(enum pool_kind kind, uint64_t what, uint64_t size) {
    return hash_mix(hash_mix(hash_mix(1, kind), what), size);
}

static const uint64_t chunk_room = POOL_CHUNK_BYTES - POOL_CHUNK_HEAD;

static uint64_t parts(uint64_t whole, uint64_t part) {
    return (whole + part - 1) / part;
}

// --- a pool for a home

// Each block is gone before the stack's next one, soon, and by the thread that has it.
static bool is_buffer(const struct pool_unit *unit) {
    return !unit->late && !unit->overlapping && !unit->is_foreign && !unit->live;
}

static bool is_slab(const struct pool_unit *unit) {
    return PERCENT * unit->usual_allocations >= USUAL_PERCENT * unit->home_allocations;
}

static bool is_lifo(const struct pool_unit *unit) {
    return !unit->lifo_breaks && unit->frees && !unit->is_foreign;
}

static struct draft draft_of(const struct choosing *choosing, uint32_t home) {
    const struct pool_unit *unit = &choosing->units->units[home];
    return (struct draft){.slot = unit->slot,
                          .home = home,
                          .is_shared = unit->is_foreign,
                          .blocks = unit->home_allocations,
                          .calls = unit->home_allocations + unit->home_frees,
                          .bytes = unit->bytes,
                          .live_bytes = unit->most_live_bytes,
                          .largest = unit->largest};
}

static struct draft buffer_of(const struct choosing *choosing, uint32_t home) {
    struct draft draft = draft_of(choosing, home);
    draft.kind = POOL_BUFFER;
    draft.key = key_of(POOL_BUFFER, site_of(choosing, home), 0);
    return draft;
}

// Chunks of one that is never begun again may be those of other stacks, too.
static struct draft arena_of(const struct choosing *choosing, uint32_t home) {
    const struct pool_arena *arena = &choosing->units->arenas[home];
    struct draft draft = draft_of(choosing, home);
    bool is_for_ever = arena->home_count == 1 && !arena->generations;
    draft.kind = POOL_ARENA;
    draft.is_shared = arena->is_shared;
    draft.key = is_for_ever ? key_of(POOL_ARENA, site_of(choosing, home), 1)
                            : key_of(POOL_ARENA, choosing->arena_keys[home], 0);
    draft.blocks = arena->allocations;
    draft.calls = arena->allocations + arena->frees;
    draft.bytes = arena->bytes;
    draft.live_bytes = arena->most_live_bytes;
    draft.largest = POOL_BLOCK_MOST;
    draft.chunks = arena->most_chunks;
    draft.generations = arena->generations;
    return draft;
}

static struct draft slab_of(const struct choosing *choosing, uint32_t home) {
    const struct pool_unit *unit = &choosing->units->units[home];
    struct draft draft = draft_of(choosing, home);
    uint64_t bytes = pool_in_units(unit->usual_size);
    draft.kind = POOL_SLAB;
    draft.key = key_of(POOL_SLAB, site_of(choosing, home), unit->usual_size);
    draft.blocks = unit->usual_allocations;
    draft.calls = unit->usual_allocations + unit->usual_frees;
    draft.bytes = unit->usual_allocations * unit->usual_size;
    draft.block_bytes = unit->usual_size;
    draft.live_bytes = unit->most_usual_live * bytes;
    draft.chunks = parts(unit->most_usual_live, chunk_room / bytes);
    return draft;
}

// What is given back first was given last, so that a chunk's end is lost at most once.
static struct draft lifo_of(const struct choosing *choosing, uint32_t home) {
    struct draft draft = draft_of(choosing, home);
    draft.kind = POOL_LIFO;
    draft.key = key_of(POOL_LIFO, stack_of(choosing, home), 0);
    draft.chunks = draft.live_bytes <= chunk_room
                       ? 1
                       : parts(draft.live_bytes, chunk_room - pool_in_units(draft.largest));
    return draft;
}

// Of kind NONE if there is no pool that would do.
static struct draft choose(const struct choosing *choosing, uint32_t home) {
    const struct pool_unit *unit = &choosing->units->units[home];
    const struct pool_arena *arena = &choosing->units->arenas[unit->arena];
    if (!pool_unit_can_pool(unit)) return (struct draft){0};
    if (arena->home_count > 1) return arena_of(choosing, unit->arena);
    if (is_buffer(unit)) return buffer_of(choosing, home);
    if (pool_arena_is_one(arena)) return arena_of(choosing, home);
    if (is_slab(unit)) return slab_of(choosing, home);
    return is_lifo(unit) ? lifo_of(choosing, home) : (struct draft){0};
}

// --- drafts of all homes

static bool is_home(const struct choosing *choosing, uint32_t cell) {
    const struct pool_unit *unit = &choosing->units->units[cell];
    return unit->home == cell && unit->allocations;
}

static bool draft_home(struct choosing *choosing, uint32_t home) {
    uint32_t arena = choosing->units->units[home].arena;
    uint32_t *number = &choosing->draft_of_home[home];
    bool is_common = choosing->units->arenas[arena].home_count > 1;
    if (is_common && choosing->draft_of_home[arena]) {
        *number = choosing->draft_of_home[arena];
        return true;
    }
    struct draft draft = choose(choosing, home);
    uint64_t chunks = draft.chunks;
    if (draft.kind == POOL_NONE || draft.calls <= CALLS_OF_CHUNK * chunks) return true;
    struct draft *slot = array_push(&choosing->drafts);
    if (!slot) return false;
    *slot = draft;
    *number = (uint32_t)choosing->drafts.count;
    if (is_common) choosing->draft_of_home[arena] = *number;
    return true;
}

static bool make_drafts(struct choosing *choosing) {
    const struct pool_units *units = choosing->units;
    for (uint32_t i = 0; i < units->count; i++)
        if (is_home(choosing, i))
            choosing->arena_keys[units->units[i].arena] +=
                hash_mix(1, (uint64_t)stack_of(choosing, i) + 1);
    for (uint32_t i = 0; i < units->count; i++)
        if (is_home(choosing, i) && !draft_home(choosing, i)) return false;
    return true;
}

// --- candidates

static int by_key(const void *left, const void *right, void *context) {
    const struct draft *drafts = context;
    const struct draft *a = &drafts[*(const uint32_t *)left];
    const struct draft *b = &drafts[*(const uint32_t *)right];
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    if (a->slot != b->slot) return a->slot < b->slot ? -1 : 1;
    return a->home < b->home ? -1 : a->home > b->home;
}

// Chunks of one pool for several drafts, which are slabs of the same size or are never begun again.
static uint64_t common_chunks(const struct draft *sum) {
    if (sum->kind == POOL_BUFFER) return 0;
    if (sum->kind == POOL_SLAB) {
        uint64_t bytes = pool_in_units(sum->block_bytes);
        return parts(sum->live_bytes / bytes, chunk_room / bytes);
    }
    uint64_t most = parts(sum->live_bytes, chunk_room - pool_in_units(sum->largest));
    return most < sum->chunks ? most : sum->chunks;
}

static void add_draft(struct draft *sum, const struct draft *draft) {
    sum->blocks += draft->blocks;
    sum->calls += draft->calls;
    sum->bytes += draft->bytes;
    sum->chunks += draft->chunks;
    sum->generations += draft->generations;
    sum->is_shared |= draft->is_shared;
    if (draft->largest > sum->largest) sum->largest = draft->largest;
    if (sum->kind != POOL_BUFFER)
        sum->live_bytes += draft->live_bytes;
    else if (draft->live_bytes > sum->live_bytes)
        sum->live_bytes = draft->live_bytes;
}

static void add_pool(struct pool_candidate *candidate, const struct draft *pool) {
    bool is_buffer = pool->kind == POOL_BUFFER;
    candidate->kind = pool->kind;
    candidate->pool_count++;
    candidate->is_shared |= pool->is_shared;
    candidate->blocks += pool->blocks;
    candidate->calls_gone += pool->calls - pool->chunks;
    candidate->bytes_gone += (int64_t)pool->bytes - (int64_t)(pool->chunks * POOL_CHUNK_BYTES);
    candidate->chunks += pool->chunks;
    candidate->kept_bytes += is_buffer ? pool->largest : pool->chunks * POOL_CHUNK_BYTES;
    candidate->live_bytes += pool->live_bytes;
    candidate->block_bytes = pool->block_bytes;
    candidate->generations += pool->generations;
}

// `order` from `at` on: the drafts of one pool, added up. Where the next pool begins.
static size_t take_pool(const struct choosing *choosing, const uint32_t *order, size_t at,
                        uint32_t candidate) {
    const struct draft *drafts = choosing->drafts.items;
    struct draft sum = drafts[order[at]];
    size_t first = at;
    choosing->candidate_of_draft[order[at]] = candidate;
    while (++at < choosing->drafts.count && drafts[order[at]].key == sum.key &&
           drafts[order[at]].slot == sum.slot) {
        add_draft(&sum, &drafts[order[at]]);
        choosing->candidate_of_draft[order[at]] = candidate;
    }
    if (at > first + 1) sum.chunks = common_chunks(&sum);
    add_pool(&choosing->found->list[candidate], &sum);
    return at;
}

static bool make_candidates(struct choosing *choosing) {
    const struct draft *drafts = choosing->drafts.items;
    struct pool_candidates *found = choosing->found;
    size_t count = choosing->drafts.count;
    uint32_t *order = calloc(count + 1, sizeof *order);
    found->list = calloc(count + 1, sizeof *found->list);
    choosing->candidate_of_draft = calloc(count + 1, sizeof *choosing->candidate_of_draft);
    bool is_ok = order && found->list && choosing->candidate_of_draft;
    for (size_t i = 0; is_ok && i < count; i++) order[i] = (uint32_t)i;
    if (is_ok && count) qsort_r(order, count, sizeof *order, by_key, choosing->drafts.items);
    for (size_t at = 0; is_ok && at < count;) {
        uint64_t key = drafts[order[at]].key;
        while (at < count && drafts[order[at]].key == key)
            at = take_pool(choosing, order, at, (uint32_t)found->count);
        found->count++;
    }
    free(order);
    return is_ok;
}

// --- their stacks

static int by_stack(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    if (a->draft != b->draft) return a->draft < b->draft ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static int by_calls(const void *left, const void *right) {
    const struct pool_member *a = left, *b = right;
    if (a->calls != b->calls) return a->calls < b->calls ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static void list_members(struct choosing *choosing) {
    const struct pool_units *units = choosing->units;
    for (uint32_t i = 0; i < units->count; i++) {
        const struct pool_unit *unit = &units->units[i];
        uint32_t draft = unit->allocations ? choosing->draft_of_home[unit->home] : 0;
        if (draft)
            choosing->members[choosing->member_count++] =
                (struct member){choosing->candidate_of_draft[draft - 1], stack_of(choosing, i),
                                unit->allocations + unit->frees};
    }
}

// A stack is there once for each candidate, whichever threads have it.
static bool make_members(struct choosing *choosing) {
    struct pool_candidates *found = choosing->found;
    choosing->members = calloc(choosing->units->count + 1, sizeof *choosing->members);
    found->members = calloc(choosing->units->count + 1, sizeof *found->members);
    if (!choosing->members || !found->members) return false;
    list_members(choosing);
    const struct member *members = choosing->members;
    qsort(choosing->members, choosing->member_count, sizeof *members, by_stack);
    size_t count = 0;
    for (size_t i = 0; i < choosing->member_count; i++) {
        struct pool_candidate *candidate = &found->list[members[i].draft];
        bool is_same = i && !by_stack(&members[i], &members[i - 1]);
        if (!candidate->member_count) candidate->first_member = count;
        if (!is_same) {
            found->members[count++].stack = members[i].stack;
            candidate->member_count++;
        }
        found->members[count - 1].calls += members[i].calls;
    }
    for (size_t i = 0; i < found->count; i++)
        qsort(&found->members[found->list[i].first_member], found->list[i].member_count,
              sizeof *found->members, by_calls);
    return true;
}

// Candidates that gain the same are in the order of their first stacks: their keys are hashes,
// which differ from one report to the next.
static int by_calls_gone(const void *left, const void *right, void *context) {
    const struct pool_candidate *a = left, *b = right;
    const struct pool_member *members = context;
    if (a->calls_gone != b->calls_gone) return a->calls_gone < b->calls_gone ? 1 : -1;
    const uint32_t first = members[a->first_member].stack, second = members[b->first_member].stack;
    if (first != second) return first < second ? -1 : 1;
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static void count_left_out(const struct choosing *choosing) {
    struct pool_candidates *found = choosing->found;
    uint8_t *is_counted = calloc(choosing->search->stack_count + 1, 1);
    for (uint32_t i = 0; is_counted && i < choosing->units->count; i++) {
        const struct pool_unit *unit = &choosing->units->units[i];
        uint32_t stack = choosing->search->stack_of_cell[i];
        if (!stack || is_counted[stack]) continue;
        found->resized_stacks += unit->is_resized;
        found->unfollowed_stacks += unit->is_unfollowed;
        is_counted[stack] = unit->is_resized || unit->is_unfollowed;
    }
    free(is_counted);
}

bool pool_choose(const struct pool_units *units, const struct pool_search *search,
                 struct pool_candidates *found) {
    struct choosing choosing = {.units = units, .search = search, .found = found};
    choosing.draft_of_home = calloc(units->count + 1, sizeof *choosing.draft_of_home);
    choosing.arena_keys = calloc(units->count + 1, sizeof *choosing.arena_keys);
    bool is_ok = choosing.draft_of_home && choosing.arena_keys && make_drafts(&choosing) &&
                 make_candidates(&choosing) && make_members(&choosing);
    if (is_ok) {
        qsort_r(found->list, found->count, sizeof *found->list, by_calls_gone, found->members);
        for (size_t i = 0; i < found->count; i++) found->calls_gone += found->list[i].calls_gone;
        count_left_out(&choosing);
    }
    array_free(&choosing.drafts);
    free(choosing.draft_of_home);
    free(choosing.candidate_of_draft);
    free(choosing.arena_keys);
    free(choosing.members);
    return is_ok;
}

void pool_candidates_free(struct pool_candidates *found) {
    free(found->list);
    free(found->members);
    *found = (struct pool_candidates){0};
}
