// SPDX-License-Identifier: Apache-2.0
// A generation of a cell's blocks begins with the first one and ends when none is left. Cells whose
// generations end in the same row of frees, of one thread without an allocation in between, mostly
// belong to one thing that is taken down as a whole: these share an arena. The second reading says
// to the chunk what the arena takes; where it would keep too much, each cell gets one for itself.
#include "tool/events/pool_units.h"

#include <stdlib.h>

#include "format/format.h"

enum {
    SLOTS = CAIRN_SLOT_SHARED + 1,
    TOGETHER_LEAST = 4,  // blocks of an arena's generation, on average
    KEPT_TIMES = 2,      // what an arena may give out, beside what its blocks need at most
    NO_CELL = 0,         // has no stack
};

bool pool_units_make(struct pool_units *units, size_t cell_count) {
    *units = (struct pool_units){.count = cell_count,
                                 .units = calloc(cell_count + 1, sizeof *units->units),
                                 .arenas = calloc(cell_count + 1, sizeof *units->arenas),
                                 .last_dead = calloc(SLOTS, sizeof *units->last_dead)};
    return units->units && units->arenas && units->last_dead;
}

void pool_units_free(struct pool_units *units) {
    free(units->units);
    free(units->arenas);
    free(units->last_dead);
    *units = (struct pool_units){0};
}

static void raise_to(uint64_t *most, uint64_t value) {
    if (value > *most) *most = value;
}

// Who has more than half of the votes, if somebody has.
static void vote(uint64_t *chosen, uint64_t *votes, uint64_t value) {
    if (!*votes) *chosen = value;
    if (*chosen == value)
        ++*votes;
    else
        --*votes;
}

// --- the first reading

// A block's tag is how many of its cell were there before it.
static void allocate_first(struct pool_unit *unit, struct live_block *block) {
    uint64_t bytes = pool_in_units(block->size);
    unit->allocations++;
    unit->bytes += block->size;
    unit->overlapping += unit->live > 0;
    block->tag = (uint32_t)unit->live++;
    unit->live_bytes += bytes;
    unit->generation_bytes += bytes;
    raise_to(&unit->most_live_bytes, unit->live_bytes);
    raise_to(&unit->most_generation_bytes, unit->generation_bytes);
    raise_to(&unit->largest, block->size);
    vote(&unit->usual_size, &unit->usual_votes, block->size);
}

static void end_generation(struct pool_units *units, uint32_t cell, uint32_t slot) {
    struct pool_unit *unit = &units->units[cell];
    uint32_t *last = &units->last_dead[slot];
    uint64_t chosen = unit->partner;
    vote(&chosen, &unit->votes, *last == NO_CELL ? cell : *last);
    unit->partner = (uint32_t)chosen;
    unit->generations++;
    unit->generation_bytes = 0;
    *last = cell;
}

static void release_first(struct pool_units *units, const struct live_block *block,
                          const struct event *event, bool is_call) {
    struct pool_unit *unit = &units->units[block->cell];
    unit->frees += is_call;
    unit->live--;
    unit->live_bytes -= pool_in_units(block->size);
    unit->late += units->allocations - block->number > POOL_SOON;
    unit->is_foreign |= block->thread != event->thread;
    unit->lifo_breaks += block->tag != (uint32_t)unit->live;
    if (!unit->live) end_generation(units, block->cell, event->slot);
}

// --- the second one

static void allocate_second(struct pool_units *units, const struct live_block *block) {
    struct pool_unit *home = &units->units[units->units[block->cell].home];
    struct pool_arena *arena = &units->arenas[home->arena];
    uint64_t bytes = pool_in_units(block->size);
    arena->allocations++;
    arena->bytes += block->size;
    arena->live++;
    arena->live_bytes += bytes;
    arena->generation_bytes += bytes;
    raise_to(&arena->most_live_bytes, arena->live_bytes);
    raise_to(&arena->most_generation_bytes, arena->generation_bytes);
    if (arena->room < bytes) {
        raise_to(&arena->most_chunks, ++arena->chunks);
        arena->room = POOL_CHUNK_BYTES - POOL_CHUNK_HEAD;
    }
    arena->room -= bytes;
    home->home_allocations++;
    if (block->size != home->usual_size) return;
    home->usual_allocations++;
    raise_to(&home->most_usual_live, ++home->usual_live);
}

static void release_second(struct pool_units *units, const struct live_block *block, bool is_call) {
    struct pool_unit *home = &units->units[units->units[block->cell].home];
    struct pool_arena *arena = &units->arenas[home->arena];
    arena->frees += is_call;
    arena->live_bytes -= pool_in_units(block->size);
    if (!--arena->live) {
        arena->generations++;
        arena->generation_bytes = 0;
        arena->chunks = arena->room = 0;
    }
    home->home_frees += is_call;
    if (block->size != home->usual_size) return;
    home->usual_frees += is_call;
    home->usual_live--;
}

void pool_units_allocate(struct pool_units *units, struct live_block *block, uint32_t slot) {
    units->units[block->cell].slot = slot;
    if (units->is_first)
        allocate_first(&units->units[block->cell], block);
    else
        allocate_second(units, block);
}

void pool_units_release(struct pool_units *units, const struct live_block *block,
                        const struct event *event, bool is_call) {
    if (units->is_first)
        release_first(units, block, event, is_call);
    else
        release_second(units, block, is_call);
}

// --- which cells share an arena

bool pool_unit_can_pool(const struct pool_unit *unit) {
    return unit->allocations && !unit->is_resized && !unit->is_unfollowed;
}

// By itself it gives out no more than an arena may.
static bool can_share(const struct pool_unit *unit) {
    return pool_unit_can_pool(unit) && unit->votes &&
           unit->most_generation_bytes <= KEPT_TIMES * unit->most_live_bytes;
}

static uint32_t root_of(struct pool_units *units, uint32_t cell) {
    struct pool_unit *list = units->units;
    while (list[cell].arena != cell) {
        list[cell].arena = list[list[cell].arena].arena;
        cell = list[cell].arena;
    }
    return cell;
}

// What is so of a cell is so of its stack in all threads. `first` is the first cell of each stack.
static void find_homes(struct pool_units *units, const struct pool_search *search,
                       uint32_t *first) {
    struct pool_unit *list = units->units;
    for (uint32_t i = 0; i < units->count; i++) {
        uint32_t stack = search->stack_of_cell[i];
        list[i].home = list[i].arena = i;
        if (!stack || !list[i].allocations) continue;
        if (!first[stack]) first[stack] = i;
        struct pool_unit *leader = &list[first[stack]];
        leader->is_resized |= list[i].is_resized;
        leader->is_unfollowed |= list[i].is_unfollowed;
        leader->is_foreign |= list[i].is_foreign;
    }
    for (uint32_t i = 0; i < units->count; i++) {
        uint32_t stack = search->stack_of_cell[i];
        if (!stack || !first[stack]) continue;
        const struct pool_unit *leader = &list[first[stack]];
        list[i].is_resized = leader->is_resized;
        list[i].is_unfollowed = leader->is_unfollowed;
        list[i].is_foreign = leader->is_foreign;
        if (leader->is_foreign) list[i].home = first[stack];
    }
}

bool pool_units_join(struct pool_units *units, const struct pool_search *search) {
    struct pool_unit *list = units->units;
    uint32_t *first = calloc(search->stack_count + 1, sizeof *first);
    if (!first) return false;
    find_homes(units, search, first);
    free(first);
    for (uint32_t i = 1; i < units->count; i++) {
        uint32_t partner = list[i].partner;
        if (!can_share(&list[i]) || !can_share(&list[partner])) continue;
        list[root_of(units, list[i].home)].arena = root_of(units, list[partner].home);
    }
    for (uint32_t i = 0; i < units->count; i++) list[i].arena = root_of(units, i);
    return true;
}

void pool_units_begin(struct pool_units *units) {
    units->is_first = false;
    units->allocations = 0;
    for (uint32_t i = 0; i < units->count; i++) units->arenas[i] = (struct pool_arena){0};
    for (uint32_t i = 0; i < units->count; i++) {
        struct pool_unit *unit = &units->units[i];
        unit->home_allocations = unit->home_frees = 0;
        unit->usual_allocations = unit->usual_frees = 0;
        unit->usual_live = unit->most_usual_live = 0;
        struct pool_arena *arena = &units->arenas[unit->arena];
        if (unit->home != i || !unit->allocations) continue;
        arena->home_count++;
        arena->is_shared |= unit->is_foreign || unit->slot != units->units[unit->arena].slot;
    }
}

bool pool_arena_is_one(const struct pool_arena *arena) {
    uint64_t generations = arena->generations + (arena->live > 0);
    return arena->allocations && arena->allocations >= TOGETHER_LEAST * generations &&
           arena->most_generation_bytes <= KEPT_TIMES * arena->most_live_bytes;
}

bool pool_units_part(struct pool_units *units) {
    bool is_parted = false;
    for (uint32_t i = 0; i < units->count; i++) {
        struct pool_arena *arena = &units->arenas[i];
        arena->is_refused = arena->home_count > 1 && !pool_arena_is_one(arena);
        is_parted |= arena->is_refused;
    }
    for (uint32_t i = 0; is_parted && i < units->count; i++) {
        struct pool_unit *unit = &units->units[i];
        if (units->arenas[unit->arena].is_refused) unit->arena = i;
    }
    return is_parted;
}
