// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/typed.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/search.h"
#include "tool/heap/frames.h"
#include "tool/heap/typed_internal.h"
#include "tool/model/index_table.h"

enum {
    GUESSES_AT_ONCE = 1 << 12,
    OWN_BITS = 64,
    SLACK_BYTES = 24,  // that glibc gives beyond what was asked for, at most
};

const uint8_t *typed_read(struct typed *typed, uint64_t address, uint64_t *size) {
    return read_window_at(&typed->window, typed->core, address, size);
}

// --- blocks

static bool add_waiting(struct typed *typed, enum typed_rank rank, uint64_t item) {
    uint64_t *slot = array_push(&typed->waiting[rank]);
    if (slot) *slot = item;
    typed->is_failed |= !slot;
    return slot;
}

// What a block says of itself was read for all of them in the order of memory. It stands in
// `type_ids` until another type does, which no struct is.
static const struct type *own_of(struct typed *typed, uint32_t number, uint64_t start) {
    if (!(typed->is_own[number / OWN_BITS] >> number % OWN_BITS & 1)) return NULL;
    const struct type *known = typed->kinds.items[typed->type_ids[number]].type;
    bool is_class;
    return known && known->kind == TYPE_STRUCT ? known : typed_class_at(typed, start, &is_class);
}

// Whether the number of its elements lies in front of them, as in arrays of what has a destructor.
static bool has_count(struct typed *typed, const struct type *type, uint64_t start, uint64_t size) {
    uint64_t count, bytes;
    if (!core_read(typed->core, start, &count, sizeof count)) return false;
    return count && !__builtin_mul_overflow(count, type->bytes, &bytes) && bytes < size &&
           size - bytes >= sizeof count && size - bytes < sizeof count + SLACK_BYTES;
}

// What the call that allocated a block says.
static const struct type *allocated_type(struct typed *typed, uint64_t start, uint64_t size) {
    const struct typed_allocations *allocations = typed->allocations;
    const struct type *type =
        allocations ? allocations->type_of(allocations->context, typed, start) : NULL;
    bool is_object = type && type->kind == TYPE_STRUCT && type->bytes && type->bytes <= size;
    return is_object && !has_count(typed, type, start, size) ? type : NULL;
}

const struct type *typed_allocated(struct typed *typed, uint64_t bias, uint64_t return_address) {
    for (size_t i = 0; i < typed->modules.count; i++)
        if (typed->modules.items[i].bias == bias)
            return types_allocated(typed->modules.items[i].types, return_address);
    return NULL;
}

static void read_own(void *context, uint32_t number, uint64_t place) {
    struct typed *typed = context;
    const struct block_map *map = &typed->reach->map;
    uint64_t start = block_map_address(map, place), end = block_map_end(map, place);
    bool is_class;
    const struct type *own = typed_class_at(typed, start, &is_class);
    core_place_done(typed->core, end - start, &typed->places);
    if (!own && is_class) typed->is_class[number / OWN_BITS] |= (uint64_t)1 << number % OWN_BITS;
    if (!own) own = allocated_type(typed, start, end - start);
    if (!own || own->bytes > end - start) return;
    typed->type_ids[number] = typed_kind_id(typed, own);
    typed->is_own[number / OWN_BITS] |= (uint64_t)1 << number % OWN_BITS;
}

// A pointer that leads to a block.
struct typed_edge {
    uint64_t value, start, end;  // of the pointer and the block
    uint64_t place;
};

static bool find_block(const struct typed *typed, uint64_t value, struct typed_edge *edge) {
    const struct block_map *map = &typed->reach->map;
    *edge = (struct typed_edge){.value = value};
    if (!block_map_may_have(map, value) || !block_map_find(map, value, &edge->place)) return false;
    edge->start = block_map_address(map, edge->place);
    edge->end = block_map_end(map, edge->place);
    return true;
}

static bool has_room(const struct typed_edge *edge, const struct type *type) {
    return type->bytes <= edge->end - edge->value;
}

// A container that refers to the same block says more of it than a pointer.
static void note_extent(struct typed *typed, uint32_t number, const struct type *target,
                        const struct layout_extent *extent) {
    const struct type *type = typed->kinds.items[typed->type_ids[number]].type;
    if (extent && type == target && !typed_has_extent(typed, number))
        typed_note_extent(typed, number, extent);
}

// Notes a block by a better rank than it had.
static void note(struct typed *typed, const struct typed_edge *edge, const struct type *target,
                 enum typed_rank rank, uint32_t parent, const struct layout_extent *extent) {
    uint32_t number = core_graph_number(&typed->graph, edge->place);
    uint8_t *known = &typed->ranks[number];
    if (*known == RANK_DONE) return;
    if (*known <= (uint8_t)rank) {
        if (*known == (uint8_t)rank) note_extent(typed, number, target, extent);
        return;
    }
    const struct type *own = target->kind == TYPE_STRUCT || typed_is_vague(target)
                                 ? own_of(typed, number, edge->start)
                                 : NULL;
    const struct type *declared = target;
    bool is_inside = edge->value != edge->start, is_nothing = target->kind == TYPE_NONE;
    if (own)
        target = own;
    else if (is_inside || is_nothing || !target->bytes || !has_room(edge, target) ||
             layout_is_link(target))
        rank = RANK_UNKNOWN;
    else if (typed_is_vague(target))
        rank = RANK_VAGUE;
    if (*known <= (uint8_t)rank) return;
    *known = (uint8_t)rank;
    typed->parents[number] = parent;
    typed->type_ids[number] = rank == RANK_UNKNOWN ? 0 : typed_kind_id(typed, target);
    bool is_class = typed->is_class[number / OWN_BITS] >> number % OWN_BITS & 1;
    if (extent && target == declared && rank != RANK_UNKNOWN)
        typed_note_extent(typed, number, extent);
    else if (is_class && !own && rank < RANK_VAGUE)
        typed_note_single(typed, number, target);
    else
        typed_forget_extent(typed, number);
    if (rank < RANK_VAGUE && typed->type_ids[number]) add_waiting(typed, rank, number);
}

struct following {
    struct typed *typed;
    const uint8_t *bytes;
    enum typed_rank rank;
    uint32_t parent;
    uint64_t inner;  // of the block's elements (layout.h)
    bool is_contradicted;
};

static uint64_t word_at(const uint8_t *bytes, uint64_t offset) {
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static bool follow(void *context, const struct layout_pointer *pointer) {
    struct following *following = context;
    struct typed_edge edge;
    uint64_t word = word_at(following->bytes, pointer->offset);
    if (!find_block(following->typed, word, &edge)) return true;
    edge.value = word - pointer->back;
    if (edge.value < edge.start) return true;
    enum typed_rank rank = pointer->is_guess ? RANK_LIKELY : following->rank;
    const struct layout_extent inner = {.to = following->inner}, *extent = pointer->extent;
    if (!extent && following->inner) extent = &inner;
    bool is_behind = pointer->back && !(pointer->extent && pointer->extent->is_table);
    if (is_behind || edge.value != edge.start || !layout_has_pointers(pointer->target))
        extent = NULL;
    note(following->typed, &edge, pointer->target, rank, following->parent, extent);
    return !following->typed->is_failed;
}

// Whether a pointer of what may be an element leads where its type lets it: nowhere, to memory that
// is no block's, or to a block with room for it.
static bool try(void *context, const struct layout_pointer *pointer) {
    struct following *following = context;
    const struct typed *typed = following->typed;
    struct typed_edge edge;
    uint64_t value = word_at(following->bytes, pointer->offset);
    if (!value || pointer->is_guess) return true;
    bool is_block = find_block(typed, value, &edge);
    bool is_good =
        is_block ? has_room(&edge, pointer->target) : core_segment_of(typed->core, value) != NULL;
    following->is_contradicted = !is_good;
    return is_good;
}

static void follow_object(struct typed *typed, const struct type *type, const uint8_t *bytes,
                          uint64_t size, struct following *following) {
    struct layout *layout = &typed->layout;
    following->typed = typed;
    following->bytes = bytes;
    layout->bytes = bytes;
    layout->size = size;
    layout->see = follow;
    layout->see_struct = NULL;
    layout->context = following;
    layout->words = LAYOUT_NONE;
    layout_walk(layout, type, 0);
}

bool typed_is_element(struct typed *typed, const struct type *type, const uint8_t *bytes) {
    struct following trial = {.typed = typed, .bytes = bytes, .rank = RANK_LIKELY};
    struct layout *layout = &typed->layout;
    layout->bytes = bytes;
    layout->size = type->bytes;
    layout->see = try;
    layout->see_struct = NULL;
    layout->context = &trial;
    layout->words = LAYOUT_NONE;
    layout_walk(layout, type, 0);
    return !trial.is_contradicted && !layout->is_contradicted;
}

bool typed_has_tail(const struct type *type) {
    const struct type_fields fields = type_fields(type);
    const struct type *last = fields.count ? fields.items[fields.count - 1].type : NULL;
    return last && last->kind == TYPE_ARRAY && !type_elements(last);
}

// Follows elements; those that may be none from the second on, since the first was followed before.
static void follow_elements(struct typed *typed, const struct type *type, enum typed_rank rank,
                            uint32_t number, const uint8_t *bytes, uint64_t size) {
    struct typed_elements elements = typed_elements_of(typed, number, type, size);
    uint64_t at;
    if (!elements.is_known) elements.at = elements.each;
    while (!typed->is_failed && typed_next_element(typed, &elements, type, bytes, &at)) {
        struct following following = {.rank = rank, .parent = number, .inner = elements.inner};
        follow_object(typed, type, bytes + at, elements.each, &following);
    }
}

// Follows a block. Where no container says what of it are elements, what may be none waits as a
// guess behind the first.
static void follow_block(struct typed *typed, enum typed_rank rank, uint64_t item) {
    uint32_t number = (uint32_t)item;
    const struct block_map *map = &typed->reach->map;
    const struct type *type = typed->kinds.items[typed->type_ids[number]].type;
    bool is_rest = item & ELEMENTS_WAIT;
    if ((!is_rest && typed->ranks[number] == RANK_DONE) || !layout_has_pointers(type)) return;
    uint64_t place = core_graph_place(&typed->graph, number);
    uint64_t address = block_map_address(map, place), size = block_map_end(map, place) - address;
    const uint8_t *bytes = typed_read(typed, address, &size);
    core_place_done(typed->core, 0, &typed->places);
    if (!bytes || size < type->bytes) return;
    bool is_known = typed_elements_of(typed, number, type, size).is_known;
    typed->ranks[number] = RANK_DONE;
    if (is_rest || is_known) {
        follow_elements(typed, type, rank, number, bytes, size);
        return;
    }
    struct following following = {.rank = rank, .parent = number};
    bool has_tail = typed_has_tail(type), has_more = size / type->bytes >= ELEMENTS_LEAST;
    follow_object(typed, type, bytes, has_tail ? size : type->bytes, &following);
    if (has_more && !has_tail) add_waiting(typed, RANK_LIKELY, item | ELEMENTS_WAIT);
}

static int by_number(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Some that wait, in the order of memory: what the image has of blocks that lie apart would be read
// again and again. Guesses are few at a time, since what they lead to may be sure. False: none
// waited.
static bool follow_some(struct typed *typed, enum typed_rank rank) {
    size_t count = typed->waiting[rank].count - typed->next[rank];
    if (rank != RANK_SURE && count > GUESSES_AT_ONCE) count = GUESSES_AT_ONCE;
    if (!count) return false;
    uint64_t *items = malloc(count * sizeof *items);
    typed->is_failed |= !items;
    if (!items) return false;
    memcpy(items, typed->waiting[rank].items + typed->next[rank], count * sizeof *items);
    typed->next[rank] += count;
    if (typed->next[rank] == typed->waiting[rank].count)
        typed->next[rank] = typed->waiting[rank].count = 0;
    qsort(items, count, sizeof *items, by_number);
    for (size_t i = 0; i < count && !typed->is_failed; i++) follow_block(typed, rank, items[i]);
    free(items);
    return true;
}

static void follow_waiting(struct typed *typed) {
    while (!typed->is_failed &&
           (follow_some(typed, RANK_SURE) || follow_some(typed, RANK_LIKELY))) {
    }
}

// --- where it begins

static void follow_root(struct typed *typed, uint32_t number) {
    const struct typed_root *root = &typed->roots.items[number];
    struct following following = {.rank = RANK_SURE, .parent = number | PARENT_ROOT};
    uint64_t size;
    const uint8_t *bytes = typed_root_bytes(typed, root, &size);
    if (bytes) follow_object(typed, root->type, bytes, size, &following);
}

// Blocks that no way in the program's words leads to, but that say what they are.
static void note_own(void *context, uint32_t number, uint64_t place) {
    struct typed *typed = context;
    const struct block_map *map = &typed->reach->map;
    if (typed->ranks[number] < RANK_VAGUE || typed->ranks[number] == RANK_DONE || typed->is_failed)
        return;
    const struct type *own = own_of(typed, number, block_map_address(map, place));
    if (!own) return;
    typed->ranks[number] = RANK_SURE;
    typed->type_ids[number] = typed_kind_id(typed, own);
    if (typed->type_ids[number]) add_waiting(typed, RANK_SURE, number);
}

// --- all of it

static bool make_room(struct typed *typed) {
    struct typed_kind *none = array_push(&typed->kinds);
    if (!none || !core_graph_open(typed->reach, &typed->graph)) return false;
    *none = (struct typed_kind){0};
    size_t count = (size_t)typed->graph.count + 1;
    if (count > PARENT_ROOT) return false;
    typed->type_ids = calloc(count, sizeof *typed->type_ids);
    typed->parents = malloc(count * sizeof *typed->parents);
    typed->ranks = malloc(count);
    typed->is_own = calloc(count / OWN_BITS + 1, sizeof *typed->is_own);
    typed->is_class = calloc(count / OWN_BITS + 1, sizeof *typed->is_class);
    typed->store = string_pool_open();
    if (!typed->type_ids || !typed->parents || !typed->ranks || !typed->is_own ||
        !typed->is_class || !typed->store)
        return false;
    memset(typed->parents, UINT8_MAX, count * sizeof *typed->parents);  // PARENT_NONE
    memset(typed->ranks, RANK_NONE, count);
    return true;
}

struct typed *typed_open(const struct core_reach *reach, struct core_types *types,
                         const struct typed_allocations *allocations, struct error *error) {
    struct typed *typed = calloc(1, sizeof *typed);
    bool is_ok = typed;
    if (typed) {
        typed->reach = reach;
        typed->core = reach->core;
        typed->types = types;
        typed->allocations = allocations;
        is_ok = make_room(typed) && typed_open_modules(typed);
    }
    if (is_ok && typed->modules.count) {
        is_ok = typed_read_roots(typed);
        if (is_ok) core_graph_each(&typed->graph, read_own, typed);
        for (uint32_t i = 0; i < typed->roots.count && is_ok; i++) follow_root(typed, i);
        follow_waiting(typed);
        core_graph_each(&typed->graph, note_own, typed);
        follow_waiting(typed);
    }
    if (is_ok && !typed->is_failed) return typed;
    bool has_too_many = typed && typed->graph.count >= PARENT_ROOT;
    typed_close(typed);
    error_set(error, has_too_many ? "it has more blocks than 31 bits count" : "out of memory");
    return NULL;
}

void typed_close(struct typed *typed) {
    if (!typed) return;
    for (size_t i = 0; i < typed->modules.count; i++) types_close(typed->modules.items[i].types);
    for (int rank = 0; rank < RANK_VAGUE; rank++) array_free(&typed->waiting[rank]);
    array_free(&typed->modules);
    array_free(&typed->kinds);
    array_free(&typed->classes);
    array_free(&typed->roots);
    array_free(&typed->unplaced);
    array_free(&typed->extents);
    index_table_free(&typed->extent_index);
    index_table_free(&typed->ids);
    index_table_free(&typed->class_index);
    core_graph_close(&typed->graph);
    if (typed->store) string_pool_close(typed->store);
    free(typed->type_ids);
    free(typed->parents);
    free(typed->ranks);
    free(typed->is_own);
    free(typed->is_class);
    free(typed->is_taken);
    read_window_free(&typed->window);
    free(typed);
}

// --- answers

const struct type *typed_of(const struct typed *typed, uint64_t address) {
    uint64_t place;
    if (!block_map_find(&typed->reach->map, address, &place)) return NULL;
    return typed->kinds.items[typed->type_ids[core_graph_number(&typed->graph, place)]].type;
}

bool typed_take_block(struct typed *typed, uint64_t address, uint64_t bytes, bool is_inside) {
    const struct block_map *map = &typed->reach->map;
    uint64_t place;
    if (!typed->is_taken)
        typed->is_taken = calloc(typed->graph.count / OWN_BITS + 1, sizeof *typed->is_taken);
    if (!typed->is_taken || !block_map_find(map, address, &place)) return false;
    uint64_t start = block_map_address(map, place), size = block_map_end(map, place) - start;
    if ((start != address && !is_inside) || bytes > size) return false;
    uint32_t number = core_graph_number(&typed->graph, place);
    uint64_t *word = &typed->is_taken[number / OWN_BITS], bit = (uint64_t)1 << number % OWN_BITS;
    bool is_first = !(*word & bit);
    *word |= bit;
    return is_first;
}

bool typed_is_given_back(const struct typed *typed, uint64_t address) {
    const struct block_map *map = &typed->reach->map;
    uint64_t place;
    uint8_t byte;
    bool is_heap = false;
    if (block_map_find(map, address, &place)) return false;
    for (size_t i = 0; i < map->regions.count && !is_heap; i++)
        is_heap = address >= map->regions.items[i].start && address < map->regions.items[i].end;
    return is_heap || !core_read(typed->core, address, &byte, sizeof byte);
}

struct counting {
    const struct typed *typed;
    struct typed_counts counts;
};

static void count_block(void *context, uint32_t number, uint64_t place) {
    struct counting *counting = context;
    const struct typed *typed = counting->typed;
    const struct block_map *map = &typed->reach->map;
    counting->counts.blocks++;
    if (!typed->type_ids[number]) return;
    counting->counts.typed_blocks++;
    counting->counts.typed_bytes += block_map_end(map, place) - block_map_address(map, place);
}

struct typed_counts typed_count(const struct typed *typed) {
    struct counting counting = {typed, {0}};
    core_graph_each(&typed->graph, count_block, &counting);
    counting.counts.variables = typed->variable_count;
    counting.counts.modules = typed->modules.count;
    counting.counts.has_program = typed->has_program;
    return counting.counts;
}
