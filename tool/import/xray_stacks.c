// SPDX-License-Identifier: Apache-2.0
// A thread's entries and exits are its stack. What does not fit is taken as it comes: an exit ends
// all that was entered since its function was, which exceptions leave behind, and an exit of what
// was never entered (before the log begins) ends nothing.
#include "tool/import/xray.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// No process has more memory; what is more is no size. The depth is a bound on what a file that is
// made up costs.
static const uint64_t bytes_max = (uint64_t)1 << 47;
enum { DEPTH_MAX = 4096, THREADS_MAX = 1 << 20, TEXT_BYTES = 64 };

// From LLVM 20 on, the upper bits say which library a function is of.
enum { OBJECT_SHIFT = 24, IN_OBJECT_MASK = (1 << OBJECT_SHIFT) - 1 };

void xray_stacks_free(struct xray_stacks *stacks) {
    for (size_t i = 0; i < stacks->threads.count; i++) array_free(&stacks->threads.items[i].calls);
    array_free(&stacks->threads);
    index_table_free(&stacks->thread_table);
    array_free(&stacks->map.functions);
}

struct xray_thread *xray_thread_of(struct xray_stacks *stacks, uint32_t tid) {
    uint64_t hash = hash_mix(index_table_seed(), tid);
    struct index_probe probe = index_probe_start(&stacks->thread_table, hash);
    for (uint32_t index; index_probe_next(&stacks->thread_table, &probe, &index);)
        if (stacks->threads.items[index].tid == tid) return &stacks->threads.items[index];
    struct xray_thread *thread =
        stacks->threads.count < THREADS_MAX ? array_push(&stacks->threads) : NULL;
    if (!thread) return NULL;
    *thread = (struct xray_thread){.tid = tid};
    return index_table_insert(&stacks->thread_table, hash, (uint32_t)stacks->threads.count - 1)
               ? thread
               : NULL;
}

// IMPORT_NONE, with the error: no memory, or a number that the program does not have.
static uint32_t place_of(struct xray_stacks *stacks, uint32_t function, struct error *error) {
    uint32_t object = function >> OBJECT_SHIFT, number = function & IN_OBJECT_MASK;
    size_t known = stacks->map.functions.count;
    char text[TEXT_BYTES];
    uint32_t place;
    if (stacks->has_map && !object) {
        if (!number || number > known) {
            error_set(error,
                      "a call of function %" PRIu32 ", of which the program has %zu: --program is "
                      "not the one that wrote the log",
                      number, known);
            return IMPORT_NONE;
        }
        place = import_address(stacks->imported, stacks->map.functions.items[number - 1]);
    } else {
        if (object)
            snprintf(text, sizeof text, "object %" PRIu32 " function %" PRIu32, object, number);
        else
            snprintf(text, sizeof text, "function %" PRIu32, number);
        place = import_place_of_text(stacks->imported, text);
    }
    if (place == IMPORT_NONE) import_no_memory(error);
    return place;
}

static bool child_of(struct xray_stacks *stacks, uint32_t parent, uint32_t function, uint32_t *node,
                     struct error *error) {
    uint32_t place = place_of(stacks, function, error);
    return place != IMPORT_NONE &&
           (tree_child(&stacks->imported->tree, parent, place, node) || import_no_memory(error));
}

// The tree gets the stacks in which something was allocated, no others.
static bool node_of(struct xray_stacks *stacks, struct xray_thread *thread, uint32_t *node,
                    struct error *error) {
    struct xray_call *calls = thread->calls.items;
    size_t first = thread->calls.count;
    while (first && calls[first - 1].node == IMPORT_NONE) first--;
    *node = first ? calls[first - 1].node : TREE_ROOT;
    for (size_t i = first; i < thread->calls.count; i++) {
        if (!child_of(stacks, *node, calls[i].function, node, error)) return false;
        calls[i].node = *node;
    }
    return true;
}

static bool enter(struct xray_thread *thread, uint32_t function, uint64_t at, struct error *error) {
    if (thread->calls.count == DEPTH_MAX) {
        thread->hidden_count++;
        return true;
    }
    struct xray_call *call = array_push(&thread->calls);
    if (!call) return import_no_memory(error);
    *call = (struct xray_call){function, IMPORT_NONE};
    thread->entered_at = at;
    return true;
}

static void leave(struct xray_stacks *stacks, struct xray_thread *thread, uint32_t function,
                  uint64_t at) {
    size_t count = thread->calls.count;
    if (thread->hidden_count) {
        thread->hidden_count--;
        return;
    }
    while (count && thread->calls.items[count - 1].function != function) count--;
    if (!count) {
        stacks->unmatched_count++;
        return;
    }
    bool is_innermost = count == thread->calls.count;
    uint64_t since = thread->entered_at;
    if (is_innermost && since && at >= since && at - since < stacks->shortest)
        stacks->shortest = at - since;
    thread->entered_at = 0;
    thread->calls.count = count - 1;
}

bool xray_stacks_add(struct xray_stacks *stacks, struct xray_thread *thread, enum xray_kind kind,
                     uint32_t function, uint64_t at, struct error *error) {
    if (kind == XRAY_ENTER || kind == XRAY_ENTER_ARGUMENT)
        return enter(thread, function, at, error);
    leave(stacks, thread, function, at);
    return true;
}

bool xray_stacks_argument(struct xray_stacks *stacks, struct xray_thread *thread, uint32_t function,
                          uint64_t argument, bool is_entered, struct error *error) {
    uint32_t node;
    bool is_deep = !is_entered || thread->hidden_count;
    if (argument > bytes_max) {
        stacks->odd_count++;
        return true;
    }
    stacks->argument_count++;
    stacks->deep_count += is_deep;
    if (!node_of(stacks, thread, &node, error)) return false;
    if (is_deep && !child_of(stacks, node, function, &node, error)) return false;
    const struct import_values values = {.calls = 1, .allocated_bytes = (int64_t)argument};
    return import_node(stacks->imported, node, &values) || import_no_memory(error);
}
