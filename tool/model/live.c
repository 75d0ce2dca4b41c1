// SPDX-License-Identifier: Apache-2.0
#include "tool/model/live.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/heaps.h"

bool live_open(const char *path, struct live *live, struct error *error) {
    memset(live, 0, sizeof *live);
    if (!follow_open(path, &live->follow, error)) return false;
    live->profile.recording = &live->follow.recording;
    live->mark_generation = live->follow.recording.header.totals.generation;
    places_start(&live->profile.places, &live->profile.modules);
    bool is_ok = tree_start(&live->profile.tree) &&
                 decoder_start(&live->decoder, &live->follow.recording, &live->profile.modules,
                               &live->profile.places, &live->profile.tree);
    if (is_ok) return true;
    live_close(live);
    return error_set(error, "no memory for the stacks of this recording");
}

static void rows_free(struct live_rows *rows) {
    array_free(&rows->stacks);
    array_free(&rows->more);
    *rows = (struct live_rows){.stacks = {.items = NULL}};
}

void live_close(struct live *live) {
    decoder_free(&live->decoder);
    live->profile.stacks = NULL;  // belongs to the array
    rows_free(&live->whole);
    rows_free(&live->part_rows);
    live_part_end(&live->part);
    array_free(&live->stack_of_node);
    array_free(&live->ids);
    free(live->generations);
    profile_free(&live->profile);
    follow_close(&live->follow);
    memset(live, 0, sizeof *live);
}

bool live_is_running(const struct live *live) {
    return live->follow.recording.header.state == CAIRN_STATE_RUNNING;
}

uint64_t live_now_ns(const struct live *live) {
    return live->look_count ? live->looks[(live->look_count - 1) % LIVE_LOOKS].at_ns : 0;
}

static bool grow(uint32_t **items, size_t old_count, size_t count) {
    uint32_t *grown = reallocarray(*items, count, sizeof **items);
    if (!grown) return false;
    memset(grown + old_count, 0, (count - old_count) * sizeof *grown);
    *items = grown;
    return true;
}

// Room for what is kept by cell.
static bool extend_cells(struct live *live, size_t count) {
    size_t old = live->cell_room;
    if (count <= old) return true;
    if (count < 2 * old) count = 2 * old;
    if (!grow(&live->profile.stack_of_cell, old, count) || !grow(&live->generations, old, count))
        return false;
    live->cell_room = count;
    return true;
}

// Modules only become more; what was resolved by the older ones stays right (format.h).
static bool look_at_modules(struct live *live, struct error *error) {
    size_t ready = 0;
    struct cairn_module module;
    for (size_t i = 0; recording_module(&live->follow.recording, i, &module); i++)
        ready += module.is_ready != 0;
    if (ready == live->ready_modules) return true;
    live->ready_modules = ready;
    module_map_free(&live->profile.modules);
    places_forget_addresses(&live->profile.places);
    return module_map_build(&live->follow.recording, &live->profile.modules, error);
}

// Reads what new cells refer to.
static bool read_stacks(struct live *live, size_t *decoder_cells, struct error *error) {
    const struct recording *recording = &live->follow.recording;
    size_t words = recording_count(recording, CAIRN_SECTION_RECORDS);
    if (!follow_stacks(&live->follow, error) || !look_at_modules(live, error)) return false;
    size_t cells = recording_count(recording, CAIRN_SECTION_CELLS);
    if (!decoder_extend(&live->decoder, *decoder_cells, words))
        return error_set(error, "no memory for the stacks of this recording");
    *decoder_cells = cells;
    return live_part_read(&live->part, &live->follow.recording) ||
           error_set(error, "no memory for the contexts of this recording");
}

static bool extend_ids(struct live *live) {
    const struct tree_node *nodes = live->profile.tree.nodes.items;
    while (live->ids.count < live->profile.tree.nodes.count) {
        size_t node = live->ids.count;
        uint64_t outer = node ? live->ids.items[nodes[node].parent] : 0;
        uint64_t *id = array_push(&live->ids);
        if (!id) return false;
        *id = node ? hash_mix(outer, place_identity(&live->profile.places, nodes[node].place)) : 0;
    }
    return true;
}

static bool add_stack(struct live *live, uint32_t node, uint32_t *index) {
    const struct tree *tree = &live->profile.tree;
    struct live_stack *more = array_push(&live->whole.more);
    if (!more || !extend_ids(live)) return false;
    struct stack *stack = array_push(&live->whole.stacks);
    if (!stack) return false;
    *index = (uint32_t)live->whole.stacks.count - 1;
    *more = (struct live_stack){0};
    *stack = (struct stack){.node = node, .number = *index, .id = live->ids.items[node]};
    if (node == TREE_ROOT) return true;
    uint32_t outermost = tree_ancestor(tree, node, 1);
    stack->cut = live->profile.places.list.items[tree->nodes.items[outermost].place].cut;
    if (stack->cut) live->profile.incomplete[cut_kind(stack->cut)]++;
    return true;
}

static bool stack_of_node(struct live *live, uint32_t node, uint32_t *index) {
    while (live->stack_of_node.count <= node) {
        uint32_t *slot = array_push(&live->stack_of_node);
        if (!slot) return false;
        *slot = 0;
    }
    if (live->stack_of_node.items[node]) {
        *index = live->stack_of_node.items[node] - 1;
        return true;
    }
    if (!add_stack(live, node, index)) return false;
    live->stack_of_node.items[node] = *index + 1;
    return true;
}

// When the cell's blocks were allocated: of one that frees another's, those of the other.
static uint32_t generation_of(const struct live *live, uint32_t cell) {
    struct recorded_cell from;
    struct record record;
    if (decoder_record(&live->decoder, cell, &record) && record.is_foreign) cell = record.older;
    return recording_cell(&live->follow.recording, cell, &from) ? from.generation : 0;
}

// Which stack a cell is of that was never seen in use before.
static bool enter_cell(struct live *live, uint32_t cell, struct error *error) {
    uint32_t node = TREE_ROOT, index;
    if (cell != CAIRN_CELL_OTHER && !decoder_stack(&live->decoder, cell, &node))
        return error_set(error, "no memory for the stacks of this recording");
    if (!stack_of_node(live, node, &index))
        return error_set(error, "no memory for the stacks of this recording");
    live->profile.stack_of_cell[cell] = index + 1;
    live->generations[cell] = generation_of(live, cell);
    return true;
}

static void forget_values(struct live_rows *rows) {
    for (size_t i = 0; i < rows->stacks.count; i++) {
        struct live_stack *more = &rows->more.items[i];
        stack_clear(&rows->stacks.items[i]);
        more->survivor_bytes = more->survivor_blocks = 0;
    }
}

// A row that is not there yet, and all before it: of a label the stacks have their own numbers.
static bool extend_part(struct live *live, uint32_t row) {
    struct live_rows *rows = &live->part_rows;
    while (rows->stacks.count <= row) {
        size_t index = rows->stacks.count;
        struct live_stack *more = array_push(&rows->more);
        struct stack *stack = more ? array_push(&rows->stacks) : NULL;
        if (!stack) return false;
        *more = (struct live_stack){0};
        *stack = (struct stack){.number = (uint32_t)index, .id = index};
        if (live_part_is_of_sets(&live->part)) continue;
        const struct stack *whole = &live->whole.stacks.items[index];
        stack->node = whole->node;
        stack->cut = whole->cut;
        stack->id = whole->id;
    }
    return true;
}

static bool add_to_row(struct live *live, struct live_rows *rows, uint32_t index, uint32_t cell,
                       const struct cell_values *values) {
    struct live_stack *more = &rows->more.items[index];
    struct stack *stack = &rows->stacks.items[index];
    if (profile_has_more(&live->profile) && !stack_pool_give(&live->profile.more, stack))
        return false;
    stack_add(stack, values);
    if (!live->mark_generation || live->generations[cell] < live->mark_generation) return true;
    more->survivor_bytes = figures_add(more->survivor_bytes, values->exit_bytes);
    more->survivor_blocks = figures_add(more->survivor_blocks, values->exit_blocks);
    return true;
}

static bool add_values(struct live *live, uint32_t cell, const struct cell_values *values) {
    uint32_t index = live->profile.stack_of_cell[cell] - 1, row;
    if (!add_to_row(live, &live->whole, index, cell, values)) return false;
    if (live->part.kind == LIVE_WHOLE || live_part_is_of_heaps(&live->part)) return true;
    uint32_t scope = live->decoder.cell_regions[cell];
    if (!live_part_row(&live->part, scope, index, &row)) return true;
    return extend_part(live, row) && add_to_row(live, &live->part_rows, row, cell, values);
}

// What new cells refer to is read at most once a look.
struct reading {
    size_t decoder_cells;
    bool has_read;
};

// The cell has a stack.
static bool find_stack(struct live *live, uint32_t cell, struct reading *reading,
                       struct error *error) {
    if (live->profile.stack_of_cell[cell]) return true;
    if (!reading->has_read && !read_stacks(live, &reading->decoder_cells, error)) return false;
    reading->has_read = true;
    return enter_cell(live, cell, error);
}

// The cell of an entry counts no blocks: its stack is all. Which of them came since a mark is not
// known.
static bool add_heap_stacks(struct live *live, size_t cells, struct reading *reading,
                            struct error *error) {
    const struct recording *recording = &live->follow.recording;
    struct cairn_heap_stack entry;
    if (!follow_scopes(&live->follow, error)) return false;
    if (!live_part_read(&live->part, &live->follow.recording))
        return error_set(error, "no memory for the heaps of this recording");
    for (size_t i = 0; i < CAIRN_HEAP_STACK_LIMIT && recording_heap_stack(recording, i, &entry);
         i++) {
        uint32_t row;
        if (!heap_stack_is_used(&entry) || entry.cell >= cells ||
            !live_part_row(&live->part, entry.scope, 0, &row))
            continue;
        if (!find_stack(live, entry.cell, reading, error)) return false;
        live_part_row(&live->part, entry.scope, live->profile.stack_of_cell[entry.cell] - 1, &row);
        if (!extend_part(live, row))
            return error_set(error, "no memory for the heaps of this recording");
        struct cell_values values = heap_stack_values(&entry);
        stack_add(&live->part_rows.stacks.items[row], &values);
    }
    return true;
}

static bool add_cells(struct live *live, struct error *error) {
    const struct recording *recording = &live->follow.recording;
    size_t count = recording_count(recording, CAIRN_SECTION_CELLS);
    struct reading reading = {.decoder_cells = live->profile.cell_count};
    if (count > UINT32_MAX) count = UINT32_MAX;
    if (!extend_cells(live, count)) return error_set(error, "no memory for the cells");
    for (uint32_t cell = CAIRN_CELL_OTHER; cell < count; cell++) {
        struct cell_values values;
        if (!profile_cell(&live->profile, cell, &values)) continue;
        if (!find_stack(live, cell, &reading, error)) return false;
        if (!add_values(live, cell, &values))
            return error_set(error, "no memory for the stacks of this recording");
    }
    bool is_ok =
        !live_part_is_of_heaps(&live->part) || add_heap_stacks(live, count, &reading, error);
    live->profile.cell_count = reading.decoder_cells;
    if (!is_ok) return false;
    return true;
}

static void sum_up(struct live *live) {
    enum { THREADS_MOST = 1024 };
    struct profile *profile = &live->profile;
    const struct cairn_totals *totals = &live->follow.recording.header.totals;
    profile->stacks = live->whole.stacks.items;
    profile->stack_count = profile->built_stack_count = live->whole.stacks.count;
    profile->figures = figures_of(&live->follow.recording);
    profile->totals = (struct profile_totals){.failed = profile->figures.failed};
    profile->exit_bytes = profile->exit_blocks = 0;
    memset(profile->estimates, 0, sizeof profile->estimates);
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        profile->exit_bytes = figures_add(profile->exit_bytes, stack->exit_bytes);
        profile->exit_blocks = figures_add(profile->exit_blocks, stack->exit_blocks);
        profile->totals.temporary += stack->temporary;
        watched_add(&profile->totals.watched, stack->watched);
        for (int kind = 0; stack->more && kind < ESTIMATED_COUNT; kind++)
            estimate_add(&profile->estimates[kind], &stack->more->estimates[kind]);
    }
    if (profile->figures.is_sampled)
        sampled_add_unseen(&profile->figures.scale, profile->estimates);
    profile->estimates[ESTIMATED_PEAK] = profile->figures.peak_estimate;
    profile->totals.allocations = profile->figures.allocations;
    profile->totals.allocated_bytes = profile->figures.allocated_bytes;
    size_t threads = recording_count(&live->follow.recording, CAIRN_SECTION_THREADS);
    if (threads > THREADS_MOST) threads = THREADS_MOST;
    profile->peak.error_bytes = totals->is_threaded ? 2 * threads * totals->batch_bytes : 0;
    profile->peak.bytes = (int64_t)profile->figures.peak_bytes;
}

static void note_rows(struct live_rows *rows, size_t slot) {
    for (size_t i = 0; i < rows->stacks.count; i++) {
        struct live_stack *more = &rows->more.items[i];
        more->past_bytes[slot] = rows->stacks.items[i].allocated_bytes;
        more->past_calls[slot] = rows->stacks.items[i].allocations;
        more->past[slot] = live_sureness_of(stack_more(&rows->stacks.items[i])->estimates);
    }
}

static void begin_rows(struct live_rows *rows) {
    for (size_t i = 0; i < rows->stacks.count; i++) {
        rows->more.items[i].base_bytes = rows->stacks.items[i].exit_bytes;
        rows->more.items[i].base = live_sureness_of(stack_more(&rows->stacks.items[i])->estimates);
    }
}

// Of a part that was not there before, nothing of earlier looks is known.
static void begin_part(struct live *live) {
    for (size_t slot = 0; slot < LIVE_LOOKS; slot++) note_rows(&live->part_rows, slot);
    begin_rows(&live->part_rows);
    live->part.is_new = false;
}

// Keeps what later looks are compared with.
static void note_look(struct live *live, uint64_t clock_ns) {
    size_t slot = live->look_count++ % LIVE_LOOKS;
    const struct profile *profile = &live->profile;
    uint64_t start_ns = live->follow.recording.header.start_clock_ns;
    live->looks[slot] = (struct live_look){.at_ns = clock_ns > start_ns ? clock_ns - start_ns : 0,
                                           .allocated_bytes = profile->totals.allocated_bytes,
                                           .allocations = profile->totals.allocations,
                                           .live_bytes = profile->exit_bytes,
                                           .sureness = live_sureness_of(profile->estimates)};
    note_rows(&live->whole, slot);
    note_rows(&live->part_rows, slot);
}

bool live_look(struct live *live, uint64_t clock_ns, struct error *error) {
    if (!follow_counters(&live->follow, error)) return false;
    if (!recording_sampling(&live->follow.recording, &live->profile.sampling))
        memset(&live->profile.sampling, 0, sizeof live->profile.sampling);
    live->profile.figures.scale =
        sampled_scale_of(&live->follow.recording, (struct sampled_totals){0});
    live->profile.peak.is_at_end = true;  // what stacks held at the peak is not asked for
    forget_values(&live->whole);
    forget_values(&live->part_rows);
    if (!add_cells(live, error)) return false;
    sum_up(live);
    if (live->part.is_new) begin_part(live);
    note_look(live, clock_ns);
    if (live->look_count == 1) live_begin_growth(live, 0);
    return true;
}

// The values are filled in from what the last look read.
bool live_show(struct live *live, enum live_part_kind kind, const struct live_set *of,
               struct error *error) {
    static const char no_memory[] = "no memory for the contexts of this recording";
    if (!live_part_begin(&live->part, kind, of)) return error_set(error, no_memory);
    rows_free(&live->part_rows);
    if (kind == LIVE_WHOLE) return true;
    if (!live_part_read(&live->part, &live->follow.recording)) return error_set(error, no_memory);
    forget_values(&live->whole);
    if (!add_cells(live, error)) return false;
    begin_part(live);
    return true;
}

static void forget_survivors(struct live_rows *rows) {
    for (size_t i = 0; i < rows->more.count; i++)
        rows->more.items[i].survivor_bytes = rows->more.items[i].survivor_blocks = 0;
}

void live_begin_growth(struct live *live, uint32_t generation) {
    begin_rows(&live->whole);
    begin_rows(&live->part_rows);
    if (generation) {
        live->mark_generation = generation;
        forget_survivors(&live->whole);
        forget_survivors(&live->part_rows);
    }
    live->base_ns = live_now_ns(live);
}
