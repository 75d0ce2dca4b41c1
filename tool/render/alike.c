// SPDX-License-Identifier: Apache-2.0
// A key of 64 bits stands for what is read of a stack: the frames of each node are mixed into the
// key of its parent, in one pass, since parents come first. The seed is of this run, so that no
// file can aim for equal keys.
//
// Most stacks of most programs read like no other one. A place with a frame that is hidden, or that
// reads like another place, is needed for two stacks to read the same: a table has those alone that
// go through such a place, and memory grows with them.
#include "tool/render/alike.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/join.h"

enum { NODE_PYTHON = 1, NODE_TWIN = 2 };

struct alike {
    const struct profile *profile;
    const struct frame_names *names;
    enum measure by;
    struct alike_reading reading;
    bool has_python;
    uint32_t *first;          // by place: where its frames begin in `frames`; one more at the end
    ARRAY(uint64_t) frames;   // keys of the frames of all places, the outermost first; 0: hidden
    uint8_t *places, *nodes;  // bits of each
    uint64_t *keys;           // by node
    uint64_t *stack_keys;
    uint32_t *into;  // by stack
    struct index_table table;
};

static uint64_t add_text(uint64_t key, const char *text) {
    for (; *text; text++) key = hash_mix(key, (unsigned char)*text);
    return hash_mix(key, 0);
}

static uint64_t add_path(uint64_t key, const char *path, bool is_whole) {
    if (!path) return hash_mix(key, 1);
    return add_text(key, is_whole ? path : text_base_name(path));
}

// Takes what frame_label and frame_location say, or what JSON has but for the address.
static uint64_t key_of(const struct alike *alike, const struct frame *frame) {
    const bool is_whole = alike->reading.is_by_programs, has_module = is_whole || !frame->file;
    uint64_t key = hash_mix(index_table_seed(), frame->is_inlined);
    key = frame->function ? add_text(key, frame->function) : hash_mix(key, frame->offset);
    key = hash_mix(key, frame->file ? frame->line : 0);
    key = add_path(key, frame->file, is_whole);
    if (has_module || !frame->function) key = add_path(key, frame->module, is_whole);
    return key | 1;
}

static bool add_frames(struct alike *alike, uint32_t place, bool hides_interpreter) {
    size_t count = 0;
    const struct frame *frames = alike->profile->places.list.items[place].cut
                                     ? NULL
                                     : alike->names->of_place(alike->names->context, place, &count);
    for (size_t i = count; i-- > 0;) {
        const bool is_hidden =
            !alike->reading.are_all_shown && frame_is_hidden(&frames[i], hides_interpreter);
        uint64_t *key = array_push(&alike->frames);
        if (!key) return false;
        *key = is_hidden ? 0 : key_of(alike, &frames[i]);
        if (frames[i].is_python) alike->places[place] |= NODE_PYTHON;
        if (frames[i].is_python) alike->has_python = true;
        if (!*key || frames[i].is_interpreter) alike->places[place] |= NODE_TWIN;
    }
    return true;
}

// Returns the key of a node below one with `key`.
static uint64_t go_on(const struct alike *alike, uint64_t key, uint32_t place) {
    const uint64_t *frames = alike->frames.items;
    for (uint32_t i = alike->first[place]; frames && i < alike->first[place + 1]; i++)
        if (frames[i]) key = hash_mix(key, frames[i]);
    return key;
}

// Marks places that read like another one. False without memory.
static bool mark_twins(struct alike *alike) {
    const size_t count = alike->profile->places.list.count;
    struct index_table table = {0};
    bool is_ok = true;
    for (uint32_t place = 0; is_ok && place < count; place++) {
        if (alike->places[place] & NODE_TWIN) continue;
        const uint64_t key = go_on(alike, 0, place);
        struct index_probe probe = index_probe_start(&table, key);
        for (uint32_t other; index_probe_next(&table, &probe, &other);)
            if (go_on(alike, 0, other) == key)
                alike->places[place] |= NODE_TWIN, alike->places[other] |= NODE_TWIN;
        is_ok = index_table_insert(&table, key, place);
    }
    index_table_free(&table);
    return is_ok;
}

static bool read_places(struct alike *alike, bool hides_interpreter) {
    const size_t count = alike->profile->places.list.count;
    alike->frames.count = 0;
    for (uint32_t place = 0; place < count; place++) {
        alike->first[place] = (uint32_t)alike->frames.count;
        if (!add_frames(alike, place, hides_interpreter)) return false;
    }
    alike->first[count] = (uint32_t)alike->frames.count;
    return hides_interpreter || mark_twins(alike);
}

// Finds the keys of all nodes; false: no two stacks read the same.
static bool read_nodes(struct alike *alike) {
    const struct tree_node *nodes = alike->profile->tree.nodes.items;
    bool has_twins = false;
    alike->keys[TREE_ROOT] = index_table_seed();
    for (size_t i = 1; i < alike->profile->tree.nodes.count; i++) {
        const struct tree_node *node = &nodes[i];
        alike->keys[i] = go_on(alike, alike->keys[node->parent], node->place);
        alike->nodes[i] = alike->nodes[node->parent] | alike->places[node->place];
        has_twins |= (alike->nodes[i] & NODE_TWIN) != 0;
    }
    return has_twins;
}

// Returns the key of a stack of nothing but internal frames, of which one is shown.
static uint64_t key_of_only(const struct alike *alike, uint32_t node) {
    struct frame_list frames = {.are_all_shown = false};
    uint64_t key = index_table_seed();
    size_t index = 0;
    if (frame_list_fill(&frames, alike->profile, alike->names, node, 0)) {
        const struct frame *frame = frame_list_next(&frames, &index);
        if (frame && !frame_is_bucket(frame)) key = hash_mix(key, key_of(alike, frame));
    }
    frame_list_free(&frames);
    return key;
}

static uint64_t key_of_node(const struct alike *alike, uint32_t node) {
    const bool is_hidden = node != TREE_ROOT && alike->keys[node] == alike->keys[TREE_ROOT];
    return is_hidden ? key_of_only(alike, node) : alike->keys[node];
}

// Finds the keys of the stacks with code in Python, or of those without.
static void read_stacks(struct alike *alike, unsigned python) {
    for (size_t i = 0; i < alike->profile->stack_count; i++) {
        const struct stack *stack = &alike->profile->stacks[i];
        if ((alike->nodes[stack->node] & NODE_PYTHON) != python) continue;
        const uint64_t key = hash_mix(key_of_node(alike, stack->node), stack->cut);
        alike->stack_keys[i] = hash_mix(key, stack->heap);
    }
}

// Returns true if the first is before the second in a ranking.
static bool is_before(const struct alike *alike, const struct stack *a, const struct stack *b) {
    const int64_t first = measure_value(alike->by, a), second = measure_value(alike->by, b);
    return first != second ? first > second : a->id < b->id;
}

// Finds the stack that reads like stack `index` and comes first; `adds`: or becomes that itself.
static bool find(struct alike *alike, uint32_t index, bool adds) {
    const struct stack *stacks = alike->profile->stacks;
    const uint64_t key = alike->stack_keys[index];
    struct index_probe probe = index_probe_start(&alike->table, key);
    for (uint32_t other; index_probe_next(&alike->table, &probe, &other);) {
        if (alike->stack_keys[other] != key) continue;
        const uint32_t first = alike->into[other];
        if (is_before(alike, &stacks[index], &stacks[first]))
            alike->into[other] = alike->into[first] = index;
        else
            alike->into[index] = first;
        return true;
    }
    return !adds || index_table_insert(&alike->table, key, index);
}

// Finds what each stack is added to: those that go through no such place are only looked up.
static bool find_all(struct alike *alike) {
    const struct profile *profile = alike->profile;
    bool is_ok = true;
    for (int adds = 1; adds >= 0; adds--)
        for (uint32_t i = 0; is_ok && i < profile->stack_count; i++) {
            const uint32_t node = profile->stacks[i].node;
            const bool is_twin = (alike->nodes[node] & NODE_TWIN) || node == TREE_ROOT;
            if (is_twin == adds) is_ok = find(alike, i, adds);
        }
    index_table_free(&alike->table);
    return is_ok;
}

// Follows a stack that was added to another one, which may have been added to a third.
static uint32_t last_of(uint32_t *into, uint32_t at) {
    while (into[at] != at) at = into[at] = into[into[at]];
    return at;
}

static bool join(struct alike *alike, struct profile *profile) {
    bool has_any = false;
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        alike->into[i] = last_of(alike->into, i);
        has_any |= alike->into[i] != i;
    }
    return !has_any || profile_join(profile, alike->into);
}

static bool join_stacks(struct alike *alike, struct profile *profile) {
    if (!read_places(alike, false)) return false;
    if (!read_nodes(alike)) return true;
    alike->into = calloc(profile->stack_count + 1, sizeof *alike->into);
    alike->stack_keys = calloc(profile->stack_count + 1, sizeof *alike->stack_keys);
    if (!alike->into || !alike->stack_keys) return false;
    for (uint32_t i = 0; i < profile->stack_count; i++) alike->into[i] = i;
    read_stacks(alike, 0);
    if (alike->has_python) {
        if (!read_places(alike, true)) return false;
        read_nodes(alike);
        read_stacks(alike, NODE_PYTHON);
    }
    return find_all(alike) && join(alike, profile);
}

// Finds the first of the nodes that were asked for that reads like this one. False without memory.
static bool find_first(struct alike *alike, uint32_t *node) {
    const uint64_t key = key_of_node(alike, *node);
    struct index_probe probe = index_probe_start(&alike->table, key);
    for (uint32_t other; index_probe_next(&alike->table, &probe, &other);)
        if (key_of_node(alike, other) == key) {
            *node = other;
            return true;
        }
    return index_table_insert(&alike->table, key, *node);
}

// Gives the stacks of damaged blocks, and those that freed, the node of the first one that reads
// the same. Places that freed are told with all frames.
static bool join_others(struct alike *alike, struct profile *profile) {
    const bool is_of_freed = profile->freed_at.count;
    bool is_ok = true;
    if (!is_of_freed && !profile->overruns.list.count) return true;
    if (is_of_freed) alike->reading = (struct alike_reading){true, true};
    memset(alike->places, 0, profile->places.list.count);
    if (!read_places(alike, false)) return false;
    if (!read_nodes(alike)) return true;
    for (size_t i = 0; is_ok && i < profile->freed_at.count; i++)
        is_ok = find_first(alike, &profile->freed_at.items[i].node);
    for (size_t i = 0; is_ok && i < profile->overruns.list.count; i++)
        is_ok = find_first(alike, &profile->overruns.list.items[i].node) &&
                find_first(alike, &profile->overruns.list.items[i].found_node);
    index_table_free(&alike->table);
    return is_ok;
}

bool alike_join(struct profile *profile, const struct frame_names *names, enum measure by,
                struct alike_reading reading, struct error *error) {
    const size_t places = profile->places.list.count, nodes = profile->tree.nodes.count;
    struct alike alike = {.profile = profile,
                          .names = names,
                          .by = by,
                          .reading = reading,
                          .first = calloc(places + 1, sizeof *alike.first),
                          .places = calloc(places + 1, sizeof *alike.places),
                          .nodes = calloc(nodes + 1, sizeof *alike.nodes),
                          .keys = calloc(nodes + 1, sizeof *alike.keys)};
    bool is_ok = alike.first && alike.places && alike.nodes && alike.keys &&
                 join_stacks(&alike, profile) && join_others(&alike, profile);
    free(alike.first);
    array_free(&alike.frames);
    free(alike.places);
    free(alike.nodes);
    free(alike.keys);
    free(alike.stack_keys);
    free(alike.into);
    index_table_free(&alike.table);
    return is_ok || error_set(error, "no memory for the list of stacks");
}

char *alike_other_ids(const struct profile *profile, const struct stack *stack) {
    enum { ID_BYTES = 2 * sizeof(uint64_t) + 1 };
    size_t count;
    const struct joined_id *ids = profile_joined_ids(profile, stack, &count);
    char *text = count ? calloc(count, ID_BYTES) : NULL;
    for (size_t i = 0; text && i < count; i++) {
        if (i) text[i * ID_BYTES - 1] = ' ';
        snprintf(text + i * ID_BYTES, ID_BYTES, "%016" PRIx64, ids[i].id);
    }
    return text;
}
