// SPDX-License-Identifier: Apache-2.0
// What a heap is like as rows: blocks by size, chunks by state, arenas, ranges of addresses, and
// the picture; and the owners that keep its pages.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/render/alike.h"
#include "tool/render/heap_screen.h"

static void tell_origin(const struct heap_state *state, struct answer *answer) {
    bool is_process = !state->is_core;
    answer_fact_known(answer, "threads", ANSWER_COUNT, (int64_t)state->thread_count, is_process);
    answer_fact_known(answer, "copied_bytes", ANSWER_BYTES, (int64_t)state->copied_bytes,
                      is_process);
    answer_fact_text(answer, "allocator", state->allocator ? state->allocator : "other");
    answer_fact(answer, "recorded", ANSWER_BOOL, state->is_recorded);
    answer_fact(answer, "sampled", ANSWER_BOOL, state->is_sampled);
    answer_fact(answer, "broken_stretches", ANSWER_COUNT, (int64_t)state->broken_count);
    answer_fact(answer, "busy_threads", ANSWER_COUNT, (int64_t)state->busy_threads);
    answer_fact(answer, "moving_blocks", ANSWER_COUNT, (int64_t)state->kinds[HEAP_MOVING].count);
    answer_fact(answer, "rejected_slots", ANSWER_COUNT, (int64_t)state->rejected_count);
}

static void set_known(struct answer_row *row, size_t column, uint64_t value, bool is_known) {
    if (is_known)
        answer_set(row, column, (int64_t)value);
    else
        answer_set_unknown(row, column);
}

// --- view heap

enum heap_row { PART_SIZE, PART_STATE, PART_CLASS, PART_ARENA, PART_RANGE, PART_AREA, PART_CELL };

// A row to be made: the part that it is of, and which one.
struct heap_item {
    enum heap_row part;
    size_t index;
};

enum heap_column {
    HEAP_PART,
    HEAP_NAME,
    HEAP_SIZE_FROM,
    HEAP_USED_BLOCKS,
    HEAP_USED_BYTES,
    HEAP_LIVE_BLOCKS,
    HEAP_LIVE_BYTES,
    HEAP_FREE_BLOCKS,
    HEAP_FREE_BYTES,
    HEAP_BLOCK_COUNT,
    HEAP_BYTES,
    HEAP_RESIDENT,
    HEAP_TOP,
    HEAP_LARGEST_FREE,
    HEAP_ADDRESS,
    HEAP_IS_MAIN,
    HEAP_AREAS,
    HEAP_LIVE_SHARE,
    HEAP_CACHED_BYTES,
    HEAP_WASTED_BYTES,
    HEAP_COLUMNS
};

static const struct answer_column heap_columns[HEAP_COLUMNS] = {
    [HEAP_PART] = ANSWER_TAILS("part", "  ", NULL, .head = "part"),
    [HEAP_NAME] = ANSWER_TAILS("name", " ", NULL, .head = "name"),
    [HEAP_SIZE_FROM] = ANSWER_FIGURES("size_from", "size from", ANSWER_BYTES, 0),
    [HEAP_USED_BLOCKS] = ANSWER_FIGURES("used_blocks", "used", ANSWER_COUNT, 0),
    [HEAP_USED_BYTES] = ANSWER_FIGURES("used_bytes", "used bytes", ANSWER_BYTES, 0),
    [HEAP_LIVE_BLOCKS] = ANSWER_FIGURES("live_blocks", "recorded", ANSWER_COUNT, 0),
    [HEAP_LIVE_BYTES] = ANSWER_FIGURES("live_bytes", "recorded bytes", ANSWER_BYTES, 0),
    [HEAP_FREE_BLOCKS] = ANSWER_FIGURES("free_blocks", "free", ANSWER_COUNT, 0),
    [HEAP_FREE_BYTES] = ANSWER_FIGURES("free_bytes", "free bytes", ANSWER_BYTES, 0),
    [HEAP_BLOCK_COUNT] = ANSWER_FIGURES("blocks", "blocks", ANSWER_COUNT, 0),
    [HEAP_BYTES] = ANSWER_FIGURES("bytes", "bytes", ANSWER_BYTES, 0),
    [HEAP_RESIDENT] = ANSWER_FIGURES("resident_bytes", "resident", ANSWER_BYTES, 0),
    [HEAP_TOP] = ANSWER_DATA("top_bytes", ANSWER_BYTES),
    [HEAP_LARGEST_FREE] = ANSWER_FIGURES("largest_free_bytes", "largest free", ANSWER_BYTES, 0),
    [HEAP_ADDRESS] = ANSWER_DATA("address", ANSWER_NUMBER),
    [HEAP_IS_MAIN] = ANSWER_DATA("main", ANSWER_BOOL),
    [HEAP_AREAS] = ANSWER_DATA("areas", ANSWER_COUNT),
    [HEAP_LIVE_SHARE] = ANSWER_DATA("live_share", ANSWER_RATIO),
    [HEAP_CACHED_BYTES] = ANSWER_DATA("cached_bytes", ANSWER_BYTES),
    [HEAP_WASTED_BYTES] = ANSWER_DATA("wasted_bytes", ANSWER_BYTES)};

struct heap_list {
    const struct heap_state *state;
    struct heap_map map;
    ARRAY(struct heap_item) items;
    size_t at;
    bool is_failed;
};

// States of chunks; behind them the ends of arenas, pages without blocks (of another allocator),
// and what is live by the recording.
enum { STATE_TOP = HEAP_KINDS, STATE_EMPTY, STATE_LIVE, STATES };

static bool has_state(const struct heap_state *state, size_t index) {
    if (index == STATE_LIVE) return state->is_recorded;
    if (index == HEAP_MOVING && !state->sizes.count) return false;
    return index == STATE_EMPTY ? state->sizes.count : state->allocator != NULL;
}

static void add_item(struct heap_list *list, enum heap_row part, size_t index) {
    struct heap_item *item = array_push(&list->items);
    list->is_failed |= !item;
    if (item) *item = (struct heap_item){part, index};
}

static void add_items(struct heap_list *list) {
    enum { CELLS = 1024 };
    const struct heap_state *state = list->state;
    for (size_t i = 0; i < HEAP_CLASSES; i++) {
        const struct heap_class *class = &state->classes[i];
        if (class->used.count || class->free.count || class->live.count)
            add_item(list, PART_SIZE, i);
    }
    for (size_t i = 0; i < STATES; i++)
        if (has_state(state, i)) add_item(list, PART_STATE, i);
    for (size_t i = 0; i < state->sizes.count; i++) add_item(list, PART_CLASS, i);
    for (size_t i = 0; i < state->arenas.count; i++) add_item(list, PART_ARENA, i);
    for (size_t i = 0; i < state->areas.count; i++) add_item(list, PART_RANGE, i);
    list->is_failed |= !heap_map_build(state, CELLS, &list->map, NULL);
    for (size_t i = 0; i < list->map.strips.count; i++) {
        const struct heap_strip *strip = &list->map.strips.items[i];
        add_item(list, PART_AREA, i);
        for (size_t cell = 0; cell < strip->cell_count; cell++)
            add_item(list, PART_CELL, strip->first_cell + cell);
    }
}

static void set_class(const struct heap_list *list, size_t index, struct answer_row *row) {
    const struct heap_state *state = list->state;
    const struct heap_class *class = &state->classes[index];
    answer_set(row, HEAP_SIZE_FROM, index ? (int64_t)(1ull << index) : 0);
    set_known(row, HEAP_USED_BLOCKS, class->used.count, state->allocator != NULL);
    set_known(row, HEAP_USED_BYTES, class->used.bytes, state->allocator != NULL);
    set_known(row, HEAP_LIVE_BLOCKS, class->live.count, state->is_recorded);
    set_known(row, HEAP_LIVE_BYTES, class->live.bytes, state->is_recorded);
    set_known(row, HEAP_FREE_BLOCKS, class->free.count, state->allocator != NULL);
    set_known(row, HEAP_FREE_BYTES, class->free.bytes, state->allocator != NULL);
}

static void set_state(const struct heap_list *list, size_t index, struct answer_row *row) {
    static const char *const names[STATES] = {
        [HEAP_USED] = "used",     [HEAP_MAPPED] = "mapped",     [HEAP_BINNED] = "free_bins",
        [HEAP_MOVING] = "moving", [HEAP_FAST] = "free_fast",    [HEAP_CACHED] = "free_cached",
        [STATE_TOP] = "free_top", [STATE_EMPTY] = "free_pages", [STATE_LIVE] = "live"};
    const struct heap_state *state = list->state;
    const struct heap_sum *sum = index < HEAP_KINDS ? &state->kinds[index] : &state->live;
    bool are_blocks = index != STATE_TOP && index != STATE_EMPTY;
    answer_set_text(row, HEAP_NAME, names[index]);
    if (are_blocks) answer_set(row, HEAP_BLOCK_COUNT, (int64_t)sum->count);
    answer_set(row, HEAP_BYTES,
               (int64_t)(are_blocks           ? sum->bytes
                         : index == STATE_TOP ? state->top_bytes
                                              : state->empty_bytes));
    if (index == STATE_EMPTY)
        set_known(row, HEAP_RESIDENT, state->empty_resident_bytes, !state->is_core);
}

static void set_size(const struct heap_list *list, size_t index, struct answer_row *row) {
    const struct heap_size *size = &list->state->sizes.items[index];
    answer_set(row, HEAP_SIZE_FROM, (int64_t)size->size);
    answer_set(row, HEAP_USED_BLOCKS, (int64_t)size->used.count);
    answer_set(row, HEAP_USED_BYTES, (int64_t)size->used.bytes);
    answer_set(row, HEAP_FREE_BLOCKS, (int64_t)size->free.count);
    answer_set(row, HEAP_FREE_BYTES, (int64_t)size->free.bytes);
    answer_set(row, HEAP_BYTES, (int64_t)size->page_bytes);
    answer_set(row, HEAP_CACHED_BYTES, (int64_t)size->cached.bytes);
    answer_set(row, HEAP_WASTED_BYTES, (int64_t)heap_size_wasted(size));
}

static void set_arena(const struct heap_list *list, size_t index, struct answer_row *row) {
    const struct heap_arena *arena = &list->state->arenas.items[index];
    answer_set(row, HEAP_ADDRESS, (int64_t)arena->address);
    answer_set(row, HEAP_IS_MAIN, arena->is_main);
    answer_set(row, HEAP_BYTES, (int64_t)arena->bytes);
    set_known(row, HEAP_RESIDENT, arena->resident_bytes, !list->state->is_core);
    answer_set(row, HEAP_USED_BYTES, (int64_t)arena->used_bytes);
    answer_set(row, HEAP_FREE_BYTES, (int64_t)arena->free_bytes);
    answer_set(row, HEAP_TOP, (int64_t)arena->top_bytes);
    answer_set(row, HEAP_LARGEST_FREE, (int64_t)arena->largest_free_bytes);
}

static const char *area_key(enum heap_area_kind kind) {
    static const char *const keys[] = {[HEAP_AREA_MAIN] = "main",
                                       [HEAP_AREA_ARENA] = "arenas",
                                       [HEAP_AREA_BLOCKS] = "blocks",
                                       [HEAP_AREA_OTHER] = "other"};
    return keys[kind];
}

static void set_range(const struct heap_list *list, size_t index, struct answer_row *row) {
    const struct heap_area *area = &list->state->areas.items[index];
    row->use = ANSWER_FOR_PROGRAMS;
    answer_set_text(row, HEAP_NAME, area_key(area->kind));
    answer_set(row, HEAP_ADDRESS, (int64_t)area->start);
    answer_set(row, HEAP_BYTES, (int64_t)(area->end - area->start));
}

static void set_strip(const struct heap_list *list, size_t index, struct answer_row *row) {
    const struct heap_strip *strip = &list->map.strips.items[index];
    answer_set_text(row, HEAP_NAME, area_key(strip->kind));
    answer_set(row, HEAP_AREAS, (int64_t)strip->area_count);
    answer_set(row, HEAP_BYTES, (int64_t)strip->bytes);
    set_known(row, HEAP_RESIDENT, strip->resident_bytes, !list->state->is_core);
    answer_set(row, HEAP_LIVE_BYTES, (int64_t)strip->live_bytes);
}

static void set_cell(const struct heap_list *list, size_t index, struct answer_row *row) {
    enum { PERCENT = 100 };
    uint8_t cell = list->map.cells.items[index];
    row->level = 1;
    row->use = ANSWER_FOR_PROGRAMS;
    answer_set(row, HEAP_ADDRESS, (int64_t)list->map.addresses.items[index]);
    if (cell == HEAP_CELL_ABSENT)
        answer_set_unknown(row, HEAP_LIVE_SHARE);
    else
        answer_set_ratio(row, HEAP_LIVE_SHARE, cell, PERCENT);
}

static bool next_part(struct answer *answer, struct answer_row *row) {
    static const struct {
        const char *name;
        void (*set)(const struct heap_list *list, size_t index, struct answer_row *row);
    } parts[] = {[PART_SIZE] = {"size", set_class},   [PART_STATE] = {"state", set_state},
                 [PART_CLASS] = {"class", set_size},  [PART_ARENA] = {"arena", set_arena},
                 [PART_RANGE] = {"range", set_range}, [PART_AREA] = {"area", set_strip},
                 [PART_CELL] = {"cell", set_cell}};
    struct heap_list *list = answer->state;
    if (list->at == list->items.count) return false;
    const struct heap_item *item = &list->items.items[list->at++];
    answer_set_text(row, HEAP_PART, parts[item->part].name);
    parts[item->part].set(list, item->index, row);
    return true;
}

static void close_parts(void *state) {
    struct heap_list *list = state;
    heap_map_free(&list->map);
    array_free(&list->items);
    free(list);
}

bool heap_answer(struct answer *answer, const struct heap_about *about,
                 const struct view_options *view, struct error *error) {
    const struct heap_state *state = about->state;
    struct heap_list *list = calloc(1, sizeof *list);
    if (list) {
        list->state = state;
        add_items(list);
    }
    if (!list || list->is_failed) {
        if (list) close_parts(list);
        return error_set(error, "no memory for the parts of the heap");
    }
    *answer = (struct answer){.view = "heap",
                              .options = view,
                              .columns = heap_columns,
                              .column_count = HEAP_COLUMNS,
                              .has_levels = true,
                              .next_row = next_part,
                              .close = close_parts,
                              .state = list};
    for (size_t i = 0; i < list->items.count; i++)
        answer->count += list->items.items[i].part != PART_CELL;
    answer->shown = answer->count;
    snprintf(answer->title, sizeof answer->title, "the heap, by size, state, arena and address");
    tell_origin(state, answer);
    answer_fact_known(answer, "free_bytes", ANSWER_BYTES, (int64_t)state->free_bytes,
                      state->allocator != NULL);
    answer_fact_known(answer, "free_resident_bytes", ANSWER_BYTES,
                      (int64_t)state->free_resident_bytes,
                      state->allocator != NULL && !state->is_core);
    answer_fact_known(answer, "largest_free_bytes", ANSWER_BYTES,
                      (int64_t)state->largest_free_bytes, state->allocator != NULL);
    answer_fact(answer, "cell_bytes", ANSWER_BYTES, (int64_t)list->map.cell_bytes);
    return true;
}

// --- view pages

enum page_column {
    PAGE_SHARE,
    PAGE_KEPT,
    PAGE_ALONE,
    PAGE_LIVE,
    PAGE_BLOCKS,
    PAGE_NAME,
    PAGE_TYPE,
    PAGE_SIZE_FROM,
    PAGE_STACK,
    PAGE_OTHER_STACKS,
    PAGE_COLUMNS
};

static const struct answer_column page_columns[PAGE_COLUMNS] = {
    [PAGE_SHARE] = {.key = "share", .unit = ANSWER_SHARE, .place = ANSWER_FIGURE},
    [PAGE_KEPT] = ANSWER_FIGURES("kept_bytes", "keeps", ANSWER_BYTES, 0),
    [PAGE_ALONE] = ANSWER_FIGURES("alone_bytes", "alone", ANSWER_BYTES, 0),
    [PAGE_LIVE] = ANSWER_FIGURES("live_bytes", "live", ANSWER_BYTES, 0),
    [PAGE_BLOCKS] = ANSWER_FIGURES("live_blocks", "blocks", ANSWER_COUNT, 0),
    [PAGE_NAME] = ANSWER_NAMES(NULL, ANSWER_TAIL, .head = "blocks of"),
    [PAGE_TYPE] = ANSWER_DATA("type", ANSWER_TEXT),
    [PAGE_SIZE_FROM] = ANSWER_DATA("size_from", ANSWER_BYTES),
    [PAGE_STACK] = ANSWER_DATA("id", ANSWER_TEXT)};

struct page_list {
    struct heap_about about;
    uint32_t *ranking;
    size_t at;
    struct frame_list frames;
    struct unit_text class;
    char id[2 * sizeof(uint64_t) + 1], *other_ids;
    struct claim claim;
    struct answer_column columns[PAGE_COLUMNS];
};

// Says whose blocks they are: a stack's, a type's, of a size, or not recorded. False without
// memory.
static bool set_owner(struct page_list *list, uint32_t owner, bool is_plain,
                      struct answer_row *row) {
    const struct heap_state *state = list->about.state;
    const char *type = heap_state_type(state, owner);
    bool is_stack = state->is_recorded && owner < state->stack_count;
    if (is_stack) {
        const struct stack *stack = &list->about.profile->stacks[owner];
        snprintf(list->id, sizeof list->id, "%016" PRIx64, stack->id);
        answer_set_text(row, PAGE_STACK, list->id);
        free(list->other_ids);
        list->other_ids = alike_other_ids(list->about.profile, stack);
        if (list->other_ids) answer_set_text(row, PAGE_OTHER_STACKS, list->other_ids);
        row->frames = &list->frames;
        return frame_list_fill(&list->frames, list->about.profile, list->about.names, stack->node,
                               0);
    }
    list->class = heap_class_name(owner, is_plain);
    answer_set_text(row, PAGE_NAME,
                    type                 ? type
                    : state->is_recorded ? "[blocks that are not in the recording]"
                                         : list->class.text);
    if (type) answer_set_text(row, PAGE_TYPE, type);
    if (!type && !state->is_recorded)
        answer_set(row, PAGE_SIZE_FROM, owner ? (int64_t)(1ull << owner) : 0);
    return true;
}

static bool next_owner(struct answer *answer, struct answer_row *row) {
    struct page_list *list = answer->state;
    if (list->at == answer->shown) return false;
    const struct heap_state *state = list->about.state;
    uint32_t owner = list->ranking[list->at++];
    const struct residency_owner *values = &state->residency.owners[owner];
    answer_set(row, PAGE_SHARE, (int64_t)values->kept_bytes);
    answer_set(row, PAGE_KEPT, (int64_t)values->kept_bytes);
    set_known(row, PAGE_ALONE, values->alone_bytes, !state->is_sampled);
    answer_set(row, PAGE_LIVE, (int64_t)values->live_bytes);
    answer_set(row, PAGE_BLOCKS, (int64_t)values->blocks);
    answer->is_failed = !set_owner(list, owner, answer->options->is_plain_number, row);
    return !answer->is_failed;
}

static void close_owners(void *state) {
    struct page_list *list = state;
    frame_list_free(&list->frames);
    free(list->ranking);
    free(list->other_ids);
    free(list);
}

static void claim_of_pages(const struct heap_state *state, struct claim *claim) {
    const struct residency *residency = &state->residency;
    *claim = (struct claim){.key = CLAIM_KEPT_PAGES};
    claim_set(claim, "resident_bytes", (int64_t)residency->resident_bytes);
    claim_set(claim, "kept_bytes", (int64_t)residency->kept_bytes);
    claim_set(claim, "live_bytes", (int64_t)residency->live_bytes);
    claim_set(claim, "empty_bytes", (int64_t)heap_state_empty_bytes(state));
    claim_set(claim, "is_sampled", state->is_sampled);
}

bool pages_answer(struct answer *answer, const struct heap_about *about,
                  const struct view_options *view, struct error *error) {
    const struct heap_state *state = about->state;
    const struct residency *residency = &state->residency;
    struct page_list *list = calloc(1, sizeof *list);
    size_t count = 0;
    if (list) list->ranking = residency_rank(residency, &count);
    if (!list || !list->ranking) {
        free(list);
        return error_set(error, "no memory for the list of stacks");
    }
    list->about = *about;
    list->frames.are_all_shown = view->has_all_frames;
    memcpy(list->columns, page_columns, sizeof page_columns);
    list->columns[PAGE_OTHER_STACKS] = answer_other_ids_column(about->profile);
    *answer = (struct answer){.view = "pages",
                              .options = view,
                              .columns = list->columns,
                              .column_count = PAGE_COLUMNS,
                              .has_frames = state->is_recorded,
                              .whole = (int64_t)residency->kept_bytes,
                              .count = count,
                              .shown = answer_cut(view->top, count),
                              .next_row = next_owner,
                              .close = close_owners,
                              .state = list};
    snprintf(answer->title, sizeof answer->title, "who keeps pages of the heap resident");
    tell_origin(state, answer);
    answer_fact(answer, "residency_known", ANSWER_BOOL, !state->is_core);
    answer_fact(answer, "page_bytes", ANSWER_BYTES, (int64_t)residency->page_bytes);
    answer_fact(answer, "range_bytes", ANSWER_BYTES, (int64_t)residency->range_bytes);
    answer_fact(answer, "resident_bytes", ANSWER_BYTES, (int64_t)residency->resident_bytes);
    answer_fact(answer, "kept_bytes", ANSWER_BYTES, (int64_t)residency->kept_bytes);
    answer_fact(answer, "empty_bytes", ANSWER_BYTES, (int64_t)heap_state_empty_bytes(state));
    answer_fact(answer, "live_bytes", ANSWER_BYTES, (int64_t)residency->live_bytes);
    answer_fact(answer, "blocks_elsewhere", ANSWER_COUNT, (int64_t)residency->outside_blocks);
    if (state->is_sampled)
        answer_note(answer, "a sample is recorded: what stacks hold and keep is estimated");
    if (state->is_core)
        answer_note(answer, "a core does not tell which pages were resident: those of zeros may "
                            "never have been touched, and do not count");
    if (state->is_core || !residency->resident_bytes) return true;
    claim_of_pages(state, &list->claim);
    answer->claims = &list->claim;
    answer->claim_count = 1;
    return true;
}
