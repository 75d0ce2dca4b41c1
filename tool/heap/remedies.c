// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/remedies.h"

#include <string.h>

// Shares of what is resident that are told, one in so many, and the least that is told at all.
enum { SHOWN_SHARE = 100, ALLOCATOR_SHARE = 5, SHOWN_BYTES = 256 << 10 };

void remedy_facts_free(struct remedy_facts *facts) {
    giveback_free(&facts->giveback);
    huge_pages_free(&facts->huge);
}

// --- sums

struct giveback_sum giveback_sum(const struct giveback *giveback) {
    struct giveback_sum sum = {0};
    for (size_t i = 0; i < giveback->arenas.count; i++) {
        const struct arena_free *arena = &giveback->arenas.items[i];
        sum.chunk_count += arena->chunk_count;
        sum.free_resident_bytes += arena->chunk_resident_bytes + arena->top_resident_bytes;
        sum.system_bytes += arena->system_bytes;
        sum.trim_bytes += arena->trim_bytes;
        sum.piece_bytes += arena->piece_bytes;
        sum.is_cut |= arena->is_cut;
    }
    return sum;
}

static uint64_t free_of(const struct arena_free *arena) {
    return arena->chunk_resident_bytes + arena->top_resident_bytes;
}

static uint64_t used_of(const struct arena_free *arena) {
    uint64_t free = arena->chunk_bytes + arena->top_bytes;
    return arena->system_bytes > free ? arena->system_bytes - free : 0;
}

const struct arena_free *remedies_pinned(const struct giveback *giveback) {
    const struct arena_free *most = NULL;
    for (size_t i = 0; i < giveback->arenas.count; i++) {
        const struct arena_free *arena = &giveback->arenas.items[i];
        if (arena->pin.address && (!most || arena->pin.resident_bytes > most->pin.resident_bytes))
            most = arena;
    }
    return most;
}

// --- a row each

static uint64_t trim_bytes(const struct remedy_facts *facts) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < facts->giveback.arenas.count; i++) {
        const struct arena_free *arena = &facts->giveback.arenas.items[i];
        bytes += facts->is_locked ? arena->trim_top_bytes : arena->trim_bytes;
    }
    return bytes;
}

static uint64_t pin_bytes(const struct remedy_facts *facts) {
    const struct arena_free *arena = remedies_pinned(&facts->giveback);
    return arena ? arena->pin.resident_bytes : 0;
}

static uint64_t lazy_bytes(const struct remedy_facts *facts) {
    return facts->lazy_bytes;
}

// Bounds what `kept` arenas save: what is free in the others, and the free room of those that stay
// as far as blocks of the others can go there. The main arena stays; the others that do are those
// with the least to save.
static uint64_t arenas_bytes(const struct remedy_facts *facts, size_t kept) {
    const struct giveback *giveback = &facts->giveback;
    uint64_t beyond = 0, used = 0, room = 0, least = UINT64_MAX, least_used = 0;
    if (giveback->arenas.count <= kept) return 0;
    for (size_t i = 0; i < giveback->arenas.count; i++) {
        const struct arena_free *arena = &giveback->arenas.items[i];
        if (arena->is_main) room += free_of(arena);
        if (arena->is_main) continue;
        beyond += free_of(arena);
        used += used_of(arena);
        if (free_of(arena) > least) continue;
        least = free_of(arena);
        least_used = used_of(arena);
    }
    if (kept > 1) {
        beyond -= least;
        used -= least_used;
        room += least;
    }
    return beyond + (used < room ? used : room);
}

static uint64_t one_arena_bytes(const struct remedy_facts *facts) {
    return arenas_bytes(facts, 1);
}

static uint64_t two_arenas_bytes(const struct remedy_facts *facts) {
    return arenas_bytes(facts, 2);
}

// Bounds what fixed thresholds save: large blocks would not lie in arenas.
static uint64_t threshold_bytes(const struct remedy_facts *facts) {
    const struct giveback *giveback = &facts->giveback;
    bool is_raised = giveback->has_parameters && !giveback->parameters.are_fixed &&
                     giveback->parameters.mmap_threshold > MALLOC_THRESHOLD_USUAL;
    return is_raised ? giveback_sum(giveback).free_resident_bytes : 0;
}

static uint64_t purge_bytes(const struct remedy_facts *facts) {
    return facts->is_locked ? 0 : facts->other.asked_bytes;
}

// Returns true of an allocator that keeps freed blocks in caches of threads, and their pages so.
static bool has_caches(const struct other_facts *other) {
    return other->name && strcmp(other->name, "mimalloc") != 0;
}

static uint64_t decay_bytes(const struct remedy_facts *facts) {
    const struct other_facts *other = &facts->other;
    return other->empty_bytes + (has_caches(other) ? 0 : other->emptied_bytes);
}

static uint64_t cache_bytes(const struct remedy_facts *facts) {
    return has_caches(&facts->other) ? facts->other.emptied_bytes : 0;
}

static uint64_t huge_bytes(const struct remedy_facts *facts) {
    return huge_pages_zero_bytes(&facts->huge);
}

static uint64_t allocator_bytes(const struct remedy_facts *facts) {
    return facts->other.name ? facts->other.free_bytes
                             : giveback_sum(&facts->giveback).free_resident_bytes;
}

static const struct {
    enum remedy_class class;
    uint64_t (*bytes)(const struct remedy_facts *facts);
} rules[REMEDIES] = {
    [REMEDY_TRIM] = {REMEDY_NOW, trim_bytes},
    [REMEDY_PIN] = {REMEDY_NOW, pin_bytes},
    [REMEDY_LAZY] = {REMEDY_AT_MOST, lazy_bytes},
    [REMEDY_ONE_ARENA] = {REMEDY_AT_MOST, one_arena_bytes},
    [REMEDY_TWO_ARENAS] = {REMEDY_AT_MOST, two_arenas_bytes},
    [REMEDY_THRESHOLD] = {REMEDY_AT_MOST, threshold_bytes},
    [REMEDY_PURGE] = {REMEDY_NOW, purge_bytes},
    [REMEDY_DECAY] = {REMEDY_AT_MOST, decay_bytes},
    [REMEDY_CACHES] = {REMEDY_AT_MOST, cache_bytes},
    [REMEDY_HUGE_PAGES] = {REMEDY_AT_MOST, huge_bytes},
    [REMEDY_ALLOCATOR] = {REMEDY_NEEDS_LOG, allocator_bytes},
};

// --- all of them

// A bound alone says little of thresholds: all that is free, also what small blocks left.
static bool is_shown(const struct remedy_facts *facts, const struct remedy *remedy) {
    uint64_t share = remedy->class == REMEDY_NEEDS_LOG ? ALLOCATOR_SHARE : SHOWN_SHARE;
    uint64_t bytes = remedy->kind == REMEDY_THRESHOLD ? remedy->piece_bytes : remedy->bytes;
    return bytes >= SHOWN_BYTES && bytes >= facts->rss_bytes / share;
}

// By class, then the most first.
static int compare(const void *a, const void *b) {
    const struct remedy *left = a, *right = b;
    if (left->class != right->class) return (int)left->class - (int)right->class;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return (int)left->kind - (int)right->kind;
}

// Says which remedies are of one heap alone: glibc's, or another allocator's.
static bool is_of_other(enum remedy_kind kind) {
    return kind >= REMEDY_PURGE && kind <= REMEDY_CACHES;
}

size_t remedies_find(const struct remedy_facts *facts, bool are_all,
                     struct remedy remedies[REMEDIES]) {
    const struct giveback_sum sum = giveback_sum(&facts->giveback);
    size_t count = 0;
    for (int i = 0; i < REMEDIES; i++) {
        struct remedy *remedy = &remedies[count];
        if (sum.is_cut && i >= REMEDY_ONE_ARENA && i <= REMEDY_THRESHOLD) continue;
        if (is_of_other((enum remedy_kind)i) && !facts->other.name) continue;
        *remedy = (struct remedy){
            .kind = (enum remedy_kind)i, .class = rules[i].class, .bytes = rules[i].bytes(facts)};
        if (i == REMEDY_THRESHOLD && remedy->bytes) remedy->piece_bytes = sum.piece_bytes;
        bool is_bound = facts->is_core || (i == REMEDY_PURGE && facts->other.is_early);
        if (is_bound && remedy->class == REMEDY_NOW) remedy->class = REMEDY_AT_MOST;
        remedy->is_shown = is_shown(facts, remedy);
        count += are_all || remedy->is_shown;
    }
    qsort(remedies, count, sizeof *remedies, compare);
    return count;
}
