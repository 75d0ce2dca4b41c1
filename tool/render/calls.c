// SPDX-License-Identifier: Apache-2.0
#include "tool/render/calls.h"

#include <stdlib.h>

static bool is_same(const struct frame *a, const struct frame *b, bool has_lines) {
    if (!a || !b) return a == b;
    return has_lines ? frame_is_same(a, b) : frame_is_same_function(a, b);
}

static bool is_child(const struct calls *calls, uint32_t node, uint32_t parent,
                     const struct frame *frame, bool has_lines) {
    const struct call *call = &calls->nodes.items[node];
    return call->parent == parent && is_same(call->frame, frame, has_lines);
}

// The child that is there already; 0: none. The first child of a call lies right behind it.
static uint32_t find_child(const struct calls *calls, uint32_t parent, const struct frame *frame,
                           uint64_t hash, bool has_lines) {
    uint32_t next = parent + 1;
    if (next < calls->nodes.count && is_child(calls, next, parent, frame, has_lines)) return next;
    struct index_probe probe = index_probe_start(&calls->table, hash);
    for (uint32_t index; index_probe_next(&calls->table, &probe, &index);)
        if (is_child(calls, index, parent, frame, has_lines)) return index;
    return 0;
}

// The child of `parent` for a frame, made if there is none; 0 without memory.
static uint32_t child_of(struct calls *calls, uint32_t parent, const struct frame *frame,
                         bool has_lines) {
    uint64_t hash = hash_mix(frame ? frame_hash(frame, has_lines) : 0, parent);
    uint32_t known = find_child(calls, parent, frame, hash, has_lines);
    if (known) {
        struct call *call = &calls->nodes.items[known];
        call->has_more_lines |= frame && call->frame->line != frame->line;
        return known;
    }
    uint32_t added = (uint32_t)calls->nodes.count;
    struct call *call = array_push(&calls->nodes);
    if (!call) return 0;
    if (added != parent + 1 && !index_table_insert(&calls->table, hash, added)) return 0;
    struct call *above = &calls->nodes.items[parent];
    *call = (struct call){.frame = frame, .parent = parent, .next_sibling = above->first_child};
    above->first_child = added;
    above->child_count++;
    return added;
}

// The frames to be shown, in the order of the tree's levels, into `path`.
static size_t path_of(const struct frame_list *frames, const struct view_options *view,
                      const struct frame **path) {
    size_t count = 0, index = 0;
    const struct frame *frame;
    while ((frame = frame_list_next(frames, &index))) {
        // direct recursion stays on one level
        if (count && is_same(frame, path[count - 1], view->has_lines)) continue;
        path[count++] = frame;
    }
    for (size_t i = 0; !view->is_inverted && i < count / 2; i++) {
        frame = path[i];
        path[i] = path[count - 1 - i];
        path[count - 1 - i] = frame;
    }
    return count;
}

// Cuts a path to what lies behind its first occurrence of a function, itself included; 0: it does
// not occur.
static size_t cut_to_pivot(const struct frame **path, size_t count, const struct frame *pivot) {
    size_t first = 0;
    while (first < count && !frame_is_same_function(path[first], pivot)) first++;
    for (size_t i = first; i < count; i++) path[i - first] = path[i];
    return count - first;
}

// How sure the values are, of the call and all above it.
static bool book_estimate(struct calls *calls, uint32_t node, const struct estimate *estimate) {
    static const struct estimate nothing;
    if (estimate_is_none(estimate)) return true;
    while (calls->estimates.count < calls->nodes.count) {
        struct estimate *slot = array_push(&calls->estimates);
        if (!slot) return false;
        *slot = nothing;
    }
    for (;; node = calls->nodes.items[node].parent) {
        estimate_add(&calls->estimates.items[node], estimate);
        if (node == CALLS_ROOT) return true;
    }
}

// A stack is booked where it ends; when all are, each call's values go to the one above it.
static bool book(struct calls *calls, uint32_t node, const struct measured *measured,
                 const struct stack *stack) {
    struct call *call = &calls->nodes.items[node];
    call->value = (int64_t)((uint64_t)call->value + (uint64_t)measured->value);
    call->blocks = (int64_t)((uint64_t)call->blocks + (uint64_t)measured->blocks);
    call->calls = figures_add(call->calls, (int64_t)stack->allocations);
    calls->is_in_blocks |= measured->is_in_blocks;
    return book_estimate(calls, node, &measured->estimate);
}

// Children come behind their parents.
static void add_up(struct calls *calls) {
    struct call *nodes = calls->nodes.items;
    for (size_t i = calls->nodes.count - 1; i > CALLS_ROOT; i--) {
        struct call *above = &nodes[nodes[i].parent];
        above->value = (int64_t)((uint64_t)above->value + (uint64_t)nodes[i].value);
        above->blocks = (int64_t)((uint64_t)above->blocks + (uint64_t)nodes[i].blocks);
        above->calls = figures_add(above->calls, nodes[i].calls);
    }
}

static bool add_stack(struct calls *calls, const struct frame_list *frames,
                      const struct view_options *view, const struct stack *stack) {
    struct measured measured = measure_stack(view->by, stack);
    const struct frame **path = calloc(frames->frames.count + 1, sizeof(struct frame *));
    if (!path) return false;
    size_t count = path_of(frames, view, path);
    if (view->pivot) count = cut_to_pivot(path, count, view->pivot);
    if (view->pivot && !count) {
        free(path);
        return true;
    }
    if (!count) path[count++] = NULL;
    uint32_t node = CALLS_ROOT;
    for (size_t i = 0; i < count && (!view->depth || i < view->depth); i++) {
        node = child_of(calls, node, path[i], view->has_lines);
        if (!node) break;
    }
    free(path);
    return node != CALLS_ROOT && book(calls, node, &measured, stack);
}

// --- stacks that begin like the one before

// The twin of add_stack for the tree from the outermost frame, where no frame's being shown depends
// on frames further in (no code in Python): what a stack has in common with the one before it is
// not walked again. Neighbours have most of their frames in common, as a recording says how each
// stack differs from an older one. Direct recursion stays on one level, as the frame furthest in;
// so the run of frames that a level ends with is no call of the tree before the next function
// comes.

struct level {
    uint32_t node;              // of the profile's tree
    uint32_t call, call_depth;  // outside of the run of one function that it ends with
    const struct frame *run;    // its frame furthest in; NULL: nothing was shown so far
    size_t frame_count, shown_count;
};

struct chain {
    struct calls *calls;
    const struct profile *profile;
    const struct frame_names *names;
    const struct view_options *view;
    ARRAY(struct level) levels;  // of the last stack, from the root of the profile's tree
    ARRAY(uint32_t) fresh;       // nodes that it had not, from the innermost
};

static bool end_run(const struct chain *chain, struct level *level) {
    const struct view_options *view = chain->view;
    if (!level->run || (view->depth && level->call_depth >= view->depth)) return true;
    level->call = child_of(chain->calls, level->call, level->run, view->has_lines);
    level->call_depth++;
    return level->call != CALLS_ROOT;
}

static bool add_frame(const struct chain *chain, struct level *level, const struct frame *frame) {
    level->frame_count++;
    if (!chain->view->has_all_frames && frame_is_hidden(frame, false)) return true;
    level->shown_count++;
    bool goes_on = level->run && is_same(level->run, frame, chain->view->has_lines);
    if (!goes_on && !end_run(chain, level)) return false;
    level->run = frame;
    return true;
}

static bool add_place(const struct chain *chain, struct level *level, uint32_t place) {
    size_t count;
    uint32_t cut = chain->profile->places.list.items[place].cut;
    const struct frame *bucket = frame_of_cut(cut);
    if (cut) return !bucket || add_frame(chain, level, bucket);
    const struct frame *frames = chain->names->of_place(chain->names->context, place, &count);
    while (count-- > 0)
        if (!add_frame(chain, level, &frames[count])) return false;
    return true;
}

// Makes the levels those of a stack. False without memory.
static bool chain_follow(struct chain *chain, uint32_t node) {
    const struct tree_node *nodes = chain->profile->tree.nodes.items;
    uint32_t at = node;
    chain->fresh.count = 0;
    while (nodes[at].depth >= chain->levels.count ||
           chain->levels.items[nodes[at].depth].node != at) {
        uint32_t *slot = array_push(&chain->fresh);
        if (!slot) return false;
        *slot = at;
        at = nodes[at].parent;
    }
    chain->levels.count = nodes[at].depth + 1;
    for (size_t i = chain->fresh.count; i-- > 0;) {
        struct level level = chain->levels.items[chain->levels.count - 1];
        level.node = chain->fresh.items[i];
        struct level *slot = array_push(&chain->levels);
        if (!slot || !add_place(chain, &level, nodes[level.node].place)) return false;
        *slot = level;
    }
    return true;
}

// `has_ended` is false for a stack of which nothing is shown: add_stack knows what stands for it.
static bool chain_add(struct chain *chain, const struct stack *stack, bool *has_ended) {
    struct measured measured = measure_stack(chain->view->by, stack);
    if (!chain_follow(chain, stack->node)) return false;
    struct level end = chain->levels.items[chain->levels.count - 1];
    *has_ended = end.run != NULL;
    if (!*has_ended) return true;
    chain->calls->hidden_count += end.frame_count - end.shown_count;
    return end_run(chain, &end) && book(chain->calls, end.call, &measured, stack);
}

static bool chain_start(struct chain *chain) {
    struct level *root = array_push(&chain->levels);
    if (root) *root = (struct level){.node = TREE_ROOT, .call = CALLS_ROOT};
    return root != NULL;
}

static bool is_for_chain(const struct profile *profile, const struct frame_names *names,
                         const struct view_options *view) {
    if (view->is_inverted || view->pivot) return false;
    for (size_t place = 0; place < profile->places.list.count; place++) {
        size_t count = 0;
        const struct frame *frames = profile->places.list.items[place].cut
                                         ? NULL
                                         : names->of_place(names->context, (uint32_t)place, &count);
        for (size_t i = 0; i < count; i++)
            if (frames[i].is_python) return false;
    }
    return true;
}

static int compare(const void *a, const void *b) {
    const struct call *const *first = a, *const *second = b;
    int64_t x = (*first)->value, y = (*second)->value;
    if (x != y) return x < y ? 1 : -1;
    return (*first > *second) - (*first < *second);
}

static bool sort_children(struct calls *calls, uint32_t parent) {
    struct call *above = &calls->nodes.items[parent];
    if (above->child_count < 2) return true;
    const struct call **children = calloc(above->child_count, sizeof(struct call *));
    if (!children) return false;
    size_t count = 0;
    for (uint32_t at = above->first_child; at; at = calls->nodes.items[at].next_sibling)
        children[count++] = &calls->nodes.items[at];
    qsort(children, count, sizeof *children, compare);
    uint32_t *link = &above->first_child;
    for (size_t i = 0; i < count; i++) {
        uint32_t index = (uint32_t)(children[i] - calls->nodes.items);
        *link = index;
        link = &calls->nodes.items[index].next_sibling;
    }
    *link = 0;
    free(children);
    return true;
}

static bool add_whole_stack(struct calls *calls, const struct profile *profile,
                            const struct frame_names *names, const struct view_options *view,
                            const struct stack *stack, struct frame_list *frames) {
    if (!frame_list_fill(frames, profile, names, stack->node, 0)) return false;
    calls->hidden_count += frames->frames.count - frames->shown_count;
    return add_stack(calls, frames, view, stack);
}

static bool add_stacks(struct chain *chain, struct frame_list *frames) {
    const struct profile *profile = chain->profile;
    bool is_chain = is_for_chain(profile, chain->names, chain->view);
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        bool has_ended = false;
        if (measure_stack(chain->view->by, stack).value <= 0) continue;
        if (is_chain && !chain_add(chain, stack, &has_ended)) return false;
        if (!has_ended &&
            !add_whole_stack(chain->calls, profile, chain->names, chain->view, stack, frames))
            return false;
    }
    return true;
}

static bool build(struct chain *chain, struct frame_list *frames) {
    struct calls *calls = chain->calls;
    struct call *root = array_push(&calls->nodes);
    if (!root) return false;
    *root = (struct call){0};
    if (!chain_start(chain) || !add_stacks(chain, frames)) return false;
    add_up(calls);
    for (uint32_t i = 0; i < calls->nodes.count; i++)
        if (!sort_children(calls, i)) return false;
    return true;
}

bool calls_build(struct calls *calls, const struct profile *profile,
                 const struct frame_names *names, const struct view_options *view,
                 struct error *error) {
    *calls = (struct calls){0};
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    struct chain chain = {.calls = calls, .profile = profile, .names = names, .view = view};
    bool is_built = build(&chain, &frames);
    frame_list_free(&frames);
    array_free(&chain.levels);
    array_free(&chain.fresh);
    return is_built || error_set(error, "no memory for the call tree");
}

struct measured call_measured(const struct calls *calls, const struct call *call) {
    struct measured measured = {call->value, call->blocks, calls->is_in_blocks, {0}};
    size_t index = (size_t)(call - calls->nodes.items);
    if (index < calls->estimates.count) measured.estimate = calls->estimates.items[index];
    return measured;
}

void call_location(const struct call *call, char *out, size_t size) {
    *out = 0;
    if (!call->frame) return;
    struct frame frame = *call->frame;
    if (call->has_more_lines) frame.line = 0;
    frame_location(&frame, out, size);
}

void calls_free(struct calls *calls) {
    array_free(&calls->nodes);
    array_free(&calls->estimates);
    index_table_free(&calls->table);
}
