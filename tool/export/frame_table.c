// SPDX-License-Identifier: Apache-2.0
#include "tool/export/frame_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

static bool has_lines(const struct frame_table *table) {
    return table->choice != FRAMES_FUNCTIONS || table->export->has_lines;
}

static bool is_same(const struct frame_table *table, const struct frame *a, const struct frame *b) {
    if (!has_lines(table)) return frame_is_same_function(a, b);
    return frame_is_same(a, b) && (table->choice != FRAMES_DISTINCT || a->offset == b->offset);
}

static bool number_of(struct frame_table *table, const struct frame *frame, uint32_t *number) {
    uint64_t hash = frame_hash(frame, has_lines(table));
    if (table->choice == FRAMES_DISTINCT) hash = hash_mix(hash, frame->offset);
    struct index_probe probe = index_probe_start(&table->index, hash);
    while (index_probe_next(&table->index, &probe, number))
        if (is_same(table, frame, table->frames.items[*number])) return true;
    *number = (uint32_t)table->frames.count;
    const struct frame **slot = array_push(&table->frames);
    if (!slot) return false;
    *slot = frame;
    return index_table_insert(&table->index, hash, *number);
}

static bool push_frame(struct frame_table *table, const struct frame *frame) {
    uint32_t number, *slot = array_push(&table->numbers);
    if (!slot || !number_of(table, frame, &number)) return false;
    *slot = number;
    return true;
}

// The frame that stands for a stack's outer end; none for stacks that are complete.
static bool push_mark(struct frame_table *table, uint32_t mark) {
    const uint32_t cut = cut_kind(mark);
    const struct frame *bucket = frame_of_cut(mark);
    bool is_guessed = cut == CAIRN_CUT_GUESSED;
    bool has_mark = !is_guessed || table->choice == FRAMES_DISTINCT;
    if (table->choice == FRAMES_ALL || !has_mark) return true;
    bool is_bucket = cut == CAIRN_CUT_SMALL || cut == CAIRN_CUT_LARGE;
    snprintf(table->mark_names[cut], sizeof table->mark_names[cut],
             is_bucket ? "%.0s%s" : "[%s: %s]", is_guessed ? "complete" : "incomplete",
             cut_sentence(cut));
    if (bucket && !is_bucket)
        snprintf(table->mark_names[cut], sizeof table->mark_names[cut], "%s", bucket->function);
    table->marks[cut] = (struct frame){.function = table->mark_names[cut]};
    return push_frame(table, &table->marks[cut]);
}

static bool push_place(struct frame_table *table, uint32_t place) {
    const struct frame_names *names = table->export->names;
    uint32_t cut = table->export->profile->places.list.items[place].cut;
    struct frame_slice *slice = &table->slices[place];
    slice->first = (uint32_t)table->numbers.count;
    size_t count = 0;
    const struct frame *frames = cut ? NULL : names->of_place(names->context, place, &count);
    bool is_ok = !cut || push_mark(table, cut);
    for (size_t i = 0; i < count && is_ok; i++) is_ok = push_frame(table, &frames[i]);
    slice->count = (uint32_t)(table->numbers.count - slice->first);
    return is_ok;
}

bool frame_table_build(struct frame_table *table, const struct export *export,
                       enum frame_choice choice, struct error *error) {
    size_t places = export->profile->places.list.count;
    *table = (struct frame_table){.export = export, .choice = choice};
    table->slices = calloc(places + 1, sizeof *table->slices);
    bool is_ok = table->slices != NULL;
    for (uint32_t place = 0; place < places && is_ok; place++) is_ok = push_place(table, place);
    struct frame *not_recorded = &table->marks[CAIRN_CUT_LIMIT];
    *not_recorded = (struct frame){.function = STACK_NOT_RECORDED};
    is_ok = is_ok && number_of(table, not_recorded, &table->not_recorded);
    if (is_ok) return true;
    frame_table_free(table);
    return error_set(error, "no memory for the table of frames");
}

void frame_table_free(struct frame_table *table) {
    array_free(&table->frames);
    array_free(&table->numbers);
    array_free(&table->stack);
    index_table_free(&table->index);
    free(table->slices);
    table->slices = NULL;
}

static bool append_place(struct frame_table *table, uint32_t place) {
    struct frame_slice slice = table->slices[place];
    for (uint32_t i = 0; i < slice.count; i++) {
        uint32_t *slot = array_push(&table->stack);
        if (!slot) return false;
        *slot = table->numbers.items[slice.first + i];
    }
    return true;
}

static bool is_mark(const struct frame_table *table, uint32_t number) {
    const struct frame *frame = table->frames.items[number];
    return frame >= table->marks && frame <= &table->marks[CAIRN_CUT_LIMIT];
}

// Leaves out internal frames; of a stack of nothing else keeps the first frame that is no
// allocator, as screens do (tool/render/frames.h).
static void hide_internal(struct frame_table *table) {
    uint32_t *stack = table->stack.items;
    size_t kept = 0, first = 0, count = table->stack.count;
    bool has_mark = count && is_mark(table, stack[count - 1]);
    if (has_mark) count--;
    if (!count) return;
    while (first + 1 < count && table->frames.items[stack[first]]->is_allocator) first++;
    uint32_t only = stack[first];
    bool has_python = false;
    for (size_t i = 0; i < count; i++) has_python |= table->frames.items[stack[i]]->is_python;
    for (size_t i = 0; i < count; i++)
        if (!frame_is_hidden(table->frames.items[stack[i]], has_python)) stack[kept++] = stack[i];
    if (!kept) stack[kept++] = only;
    if (has_mark) stack[kept++] = stack[count];
    table->stack.count = kept;
}

bool frame_table_stack(struct frame_table *table, uint32_t node) {
    const struct tree_node *nodes = table->export->profile->tree.nodes.items;
    bool is_picture = table->choice == FRAMES_PICTURE || table->choice == FRAMES_FUNCTIONS;
    table->stack.count = 0;
    for (; node != TREE_ROOT; node = nodes[node].parent)
        if (!append_place(table, nodes[node].place)) return false;
    if (is_picture && !table->export->has_all_frames) hide_internal(table);
    if (table->choice == FRAMES_ALL || table->stack.count) return true;
    uint32_t *slot = array_push(&table->stack);
    if (slot) *slot = table->not_recorded;
    return slot != NULL;
}

void frame_title(const struct frame *frame, char *out, size_t size) {
    enum { OFFSET_BYTES = 24 };
    if (frame->function) {
        text_escape(out, size, frame->function);
        return;
    }
    *out = 0;
    bool has_module = frame->module && *frame->module;
    if (has_module) text_escape(out, size - OFFSET_BYTES, text_base_name(frame->module));
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s0x%" PRIx64, has_module ? "+" : "", frame->offset);
}

void frame_valgrind_text(const struct frame *frame, char *out, size_t size) {
    char title[FRAME_TITLE_BYTES] = "???", place[FRAME_TEXT_BYTES] = "";
    if (frame->function) frame_title(frame, title, sizeof title);
    if (frame->file)
        frame_location(frame, place, sizeof place);
    else if (frame->module)
        text_escape(place, sizeof place, frame->module);
    const char *open = frame->file ? " (" : " (in ";
    snprintf(out, size, "0x%" PRIX64 ": %s%s%s%s", frame->offset, title, *place ? open : "", place,
             *place ? ")" : "");
}

static bool child_of(struct frame_tree *tree, uint32_t parent, uint32_t frame, uint32_t *child) {
    uint64_t hash = hash_mix(index_table_seed(), (uint64_t)parent << 32 | frame);
    struct index_probe probe = index_probe_start(&tree->table, hash);
    while (index_probe_next(&tree->table, &probe, child)) {
        const struct frame_node *node = &tree->nodes.items[*child];
        if (node->parent == parent && node->frame == frame) return true;
    }
    *child = (uint32_t)tree->nodes.count;
    struct frame_node *node = array_push(&tree->nodes);
    if (!node || !index_table_insert(&tree->table, hash, *child)) return false;
    struct frame_node *above = &tree->nodes.items[parent];
    *node = (struct frame_node){.frame = frame,
                                .parent = parent,
                                .depth = above->depth + 1,
                                .next_sibling = above->first_child};
    above->first_child = *child;
    above->child_count++;
    return true;
}

// A damaged recording can claim more than there are numbers.
static void add_value(struct frame_tree *tree, uint32_t node, struct measured value) {
    struct frame_node *sum = &tree->nodes.items[node];
    sum->value = figures_add(sum->value, value.value);
    measured_add(&sum->sum, value);
}

static bool add_stack(struct frame_tree *tree, const struct frame_table *frames,
                      struct measured value) {
    uint32_t node = FRAME_TREE_ROOT;
    add_value(tree, node, value);
    for (size_t i = frames->stack.count; i-- > 0;) {
        if (!child_of(tree, node, frames->stack.items[i], &node)) return false;
        add_value(tree, node, value);
    }
    return true;
}

static int compare(const void *a, const void *b, void *context) {
    const struct frame_node *nodes = context;
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    int64_t x = nodes[first].value, y = nodes[second].value;
    if (x != y) return x < y ? 1 : -1;
    return (first > second) - (first < second);
}

// Puts a node's children into order; `scratch` has room for them.
static void sort_children(struct frame_tree *tree, uint32_t parent, uint32_t *scratch) {
    struct frame_node *nodes = tree->nodes.items;
    size_t count = 0;
    for (uint32_t at = nodes[parent].first_child; at; at = nodes[at].next_sibling)
        scratch[count++] = at;
    if (count < 2) return;
    qsort_r(scratch, count, sizeof *scratch, compare, nodes);
    uint32_t *link = &nodes[parent].first_child;
    for (size_t i = 0; i < count; i++) {
        *link = scratch[i];
        link = &nodes[scratch[i]].next_sibling;
    }
    *link = 0;
}

static bool add_root(struct frame_tree *tree) {
    struct frame_node *root = array_push(&tree->nodes);
    if (root) *root = (struct frame_node){0};
    return root != NULL;
}

static bool sort_all(struct frame_tree *tree) {
    uint32_t *scratch = calloc(tree->nodes.count, sizeof *scratch);
    for (uint32_t i = 0; scratch && i < tree->nodes.count; i++) sort_children(tree, i, scratch);
    free(scratch);
    return scratch != NULL;
}

static bool add_stacks(struct frame_tree *tree, struct frame_table *frames, enum measure by) {
    const struct profile *profile = frames->export->profile;
    for (size_t i = 0; i < profile->stack_count; i++) {
        struct measured value = measure_stack(by, &profile->stacks[i]);
        if (value.value <= 0) continue;
        if (!frame_table_stack(frames, profile->stacks[i].node)) return false;
        if (!add_stack(tree, frames, value)) return false;
    }
    return true;
}

// A stack that is followed outwards, and how far it has come.
struct walker {
    uint32_t stack, node;
};

// One frame further for each walker; those whose node is too small, or that are at their end, stop.
static bool add_level(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      size_t level, struct walker *walkers, size_t *count) {
    const struct profile *profile = frames->export->profile;
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        struct walker walker = walkers[i];
        const struct stack *stack = &profile->stacks[walker.stack];
        if (!frame_table_stack(frames, stack->node)) return false;
        if (level >= frames->stack.count) continue;
        if (!child_of(tree, walker.node, frames->stack.items[level], &walker.node)) return false;
        add_value(tree, walker.node, measure_stack(by, stack));
        walkers[kept++] = walker;
    }
    *count = kept;
    return true;
}

static size_t drop_small(const struct frame_tree *tree, struct walker *walkers, size_t count,
                         int64_t least) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (tree->nodes.items[walkers[i].node].value >= least) walkers[kept++] = walkers[i];
    return kept;
}

static bool add_inverted(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                         unsigned least_share) {
    const struct profile *profile = frames->export->profile;
    struct walker *walkers = calloc(profile->stack_count + 1, sizeof *walkers);
    size_t count = 0;
    bool is_ok = walkers != NULL;
    for (uint32_t i = 0; is_ok && i < profile->stack_count; i++) {
        struct measured value = measure_stack(by, &profile->stacks[i]);
        if (value.value <= 0) continue;
        walkers[count++] = (struct walker){.stack = i, .node = FRAME_TREE_ROOT};
        add_value(tree, FRAME_TREE_ROOT, value);
    }
    for (size_t level = 0; is_ok && count; level++) {
        is_ok = add_level(tree, frames, by, level, walkers, &count);
        int64_t least = tree->nodes.items[FRAME_TREE_ROOT].value / least_share;
        if (is_ok) count = drop_small(tree, walkers, count, least);
    }
    free(walkers);
    return is_ok;
}

static bool finish(struct frame_tree *tree, bool is_built, struct error *error) {
    if (is_built && sort_all(tree)) return true;
    frame_tree_free(tree);
    return error_set(error, "no memory for the tree of frames");
}

bool frame_tree_build(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                      struct error *error) {
    *tree = (struct frame_tree){0};
    return finish(tree, add_root(tree) && add_stacks(tree, frames, by), error);
}

bool frame_tree_build_inverted(struct frame_tree *tree, struct frame_table *frames, enum measure by,
                               unsigned least_share, struct error *error) {
    *tree = (struct frame_tree){0};
    bool is_built = add_root(tree) && add_inverted(tree, frames, by, least_share);
    return finish(tree, is_built, error);
}

void frame_tree_free(struct frame_tree *tree) {
    array_free(&tree->nodes);
    index_table_free(&tree->table);
}
