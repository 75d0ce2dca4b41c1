// SPDX-License-Identifier: Apache-2.0
#include "tool/render/calls.h"

#include <stdlib.h>

static bool is_same(const struct frame *a, const struct frame *b, bool has_lines) {
    if (!a || !b) return a == b;
    return has_lines ? frame_is_same(a, b) : frame_is_same_function(a, b);
}

// The child of `parent` for a frame, made if there is none; 0 without memory.
static uint32_t child_of(struct calls *calls, uint32_t parent, const struct frame *frame,
                         bool has_lines) {
    uint64_t hash = hash_mix(frame ? frame_hash(frame, has_lines) : 0, parent);
    struct index_probe probe = index_probe_start(&calls->table, hash);
    for (uint32_t index; index_probe_next(&calls->table, &probe, &index);) {
        struct call *known = &calls->nodes.items[index];
        if (known->parent != parent || !is_same(known->frame, frame, has_lines)) continue;
        known->has_more_lines |= frame && known->frame->line != frame->line;
        return index;
    }
    uint32_t added = (uint32_t)calls->nodes.count;
    struct call *call = array_push(&calls->nodes);
    if (!call || !index_table_insert(&calls->table, hash, added)) return 0;
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

static void book(struct calls *calls, uint32_t node, struct measured measured,
                 const struct stack *stack) {
    struct call *call = &calls->nodes.items[node];
    measured_add(&call->measured, measured);
    call->calls = figures_add(call->calls, (int64_t)stack->allocations);
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
    book(calls, node, measured, stack);
    size_t i = 0;
    for (; i < count && (!view->depth || i < view->depth); i++) {
        node = child_of(calls, node, path[i], view->has_lines);
        if (!node) break;
        book(calls, node, measured, stack);
    }
    free(path);
    return node != CALLS_ROOT;
}

static int compare(const void *a, const void *b) {
    const struct call *const *first = a, *const *second = b;
    int64_t x = (*first)->measured.value, y = (*second)->measured.value;
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

static bool build(struct calls *calls, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct frame_list *frames) {
    struct call *root = array_push(&calls->nodes);
    if (!root) return false;
    *root = (struct call){0};
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        if (measure_stack(view->by, stack).value <= 0) continue;
        if (!frame_list_fill(frames, profile, names, stack->node, 0)) return false;
        calls->hidden_count += frames->frames.count - frames->shown_count;
        if (!add_stack(calls, frames, view, stack)) return false;
    }
    for (uint32_t i = 0; i < calls->nodes.count; i++)
        if (!sort_children(calls, i)) return false;
    return true;
}

bool calls_build(struct calls *calls, const struct profile *profile,
                 const struct frame_names *names, const struct view_options *view,
                 struct error *error) {
    *calls = (struct calls){0};
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_built = build(calls, profile, names, view, &frames);
    frame_list_free(&frames);
    return is_built || error_set(error, "no memory for the call tree");
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
    index_table_free(&calls->table);
}
