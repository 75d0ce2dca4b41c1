// SPDX-License-Identifier: Apache-2.0
// A part of what a running process holds, beside its stacks: what each label of the program's own
// holds (tenant, request, ...), or the stacks of one label alone. A program gets new labels as it
// runs; a row stays where it is. Likewise allocators by name (--wrap), which are heaps of their own
// and no part of malloc's.
#ifndef TOOL_MODEL_LIVE_PART_H
#define TOOL_MODEL_LIVE_PART_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/model/index_table.h"
#include "tool/model/profile.h"

enum live_part_kind {
    LIVE_WHOLE,      // no part
    LIVE_BY_LABELS,  // a row for each value of a key, or for each set of labels
    LIVE_OF_LABELS,  // the stacks of a set of labels, with their own numbers
    LIVE_BY_HEAPS,   // a row for each name of heaps
    LIVE_OF_HEAP,    // the stacks of a heap, or of a name in it, with their own numbers
};

// A set of labels. Texts are the program's own, not safe.
struct live_set {
    char *labels;  // "key=value", one behind the other, each with its 0
    size_t bytes;  // 0: none
};

struct live_part {
    enum live_part_kind kind;
    struct live_set of;  // the labels, or heap, wanted; or the key alone, none: whole sets
    ARRAY(struct live_set) sets;
    struct index_table index;
    uint32_t *row_of_scope;  // row + 1; 0: not in it
    size_t scope_count;
    bool is_new;  // it was not looked at yet
};

// Rows are sets of labels, or names of heaps, and no stacks.
static inline bool live_part_is_of_sets(const struct live_part *part) {
    return part->kind == LIVE_BY_LABELS || part->kind == LIVE_BY_HEAPS;
}
static inline bool live_part_is_of_heaps(const struct live_part *part) {
    return part->kind == LIVE_BY_HEAPS || part->kind == LIVE_OF_HEAP;
}

// Takes the place of the part that was there. False without memory.
bool live_part_begin(struct live_part *part, enum live_part_kind kind, const struct live_set *of);
void live_part_end(struct live_part *part);

// The scopes as the recording has them now. False without memory.
bool live_part_read(struct live_part *part, struct recording *recording);

// The row of a cell, or an entry of a heap, that belongs to `stack`, in that scope; false: it is
// not of the part.
static inline bool live_part_row(const struct live_part *part, uint32_t scope, uint32_t stack,
                                 uint32_t *row) {
    uint32_t found = scope < part->scope_count ? part->row_of_scope[scope] : 0;
    *row = live_part_is_of_sets(part) ? found - 1 : stack;
    return found != 0;
}

// A set of one text, which stays where it is.
struct live_set live_set_of(const char *text);
// The next label of a set; NULL: no more. `last`: NULL at first.
const char *live_set_next(const struct live_set *set, const char *last);
// One of its values is what stands for all labels beyond the limit.
bool live_set_is_other(const struct live_set *set);

// The keys of the program's labels in order: the first one after `key` (NULL: of all) for free(),
// or NULL behind the last one. False without memory.
bool live_part_next_key(struct recording *recording, const char *key, char **next);
// Whether allocators by name have recorded anything; `path` (NULL: any): one of that name. False
// without memory.
bool live_part_has_heap(struct recording *recording, const char *path, bool *has_it);
// Whether there is a label "key=value", or one of that key alone. False without memory.
bool live_part_has_label(struct recording *recording, const char *text, bool *has_it);

#endif
