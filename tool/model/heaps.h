// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap) by the stacks that asked for their blocks: each is a heap of its own,
// which can be put in the place of malloc's, so that all that is known of stacks is shown of it.
// What such an allocator takes from malloc is malloc's; the blocks that it makes of that are here
// alone.
#ifndef TOOL_MODEL_HEAPS_H
#define TOOL_MODEL_HEAPS_H

#include "tool/base/error.h"
#include "tool/model/profile.h"
#include "tool/model/scopes.h"

struct decoder;

// Of a recording: a heap, or what is of one name in it. Both have stacks.
struct heap_name {
    uint32_t scope, heap;  // ids; the same of a whole heap
    bool is_peak_now;      // the heap never held more than it does now, or did at the end
};

struct heap_names {
    struct scopes scopes;
    ARRAY(struct heap_name) list;
};

// In the order in which they came. False without memory.
bool heap_names_read(struct heap_names *names, struct recording *recording);
void heap_names_free(struct heap_names *names);
const char *heap_name_path(const struct heap_names *names, const struct heap_name *name);
// NULL: there is no such one.
const struct heap_name *heap_names_find(const struct heap_names *names, const char *path);
// Says which there are. False.
bool heap_names_refuse(const struct heap_names *names, const char *path, struct error *error);

// A heap or a name within one over time, by its scope. False: it is not recorded.
bool heap_points_find(const struct recording *recording, uint32_t scope,
                      struct cairn_heap_points *points);
// The last point that was used up to then. False: there was none.
bool heap_points_at(const struct cairn_heap_points *points, uint64_t at_ns,
                    struct cairn_point *point);

// An entry that is complete, with calls in it.
bool heap_stack_is_used(const struct cairn_heap_stack *entry);
bool heap_name_has(const struct heap_names *names, const struct heap_name *name,
                   const struct cairn_heap_stack *entry);
// What an entry adds to its stack: as it is now; and with what it held at the heap's peak.
struct cell_values heap_stack_values(const struct cairn_heap_stack *entry);
struct cell_values heap_name_values(const struct heap_names *names, const struct heap_name *name,
                                    const struct cairn_heap_stack *entry);

// Reads them; fails only without memory.
bool heaps_build(struct profile *profile, struct decoder *decoder);

// Puts a heap, or what is of one name in it ("HEAP/NAME"), in the place of malloc's. False: there
// is no such heap. `name` outlives the profile.
bool profile_show_heap(struct profile *profile, const char *name, struct error *error);

// Then what threads have of it, once none is chosen any more (profile_keep_threads). False without
// memory.
bool profile_sum_heap_threads(struct profile *profile);

// What a cell has of the heap that was put there (profile_cell).
bool heaps_cell(const struct profile *profile, size_t cell, struct cell_values *values);

// Of malloc's heap: what functions of such allocators took for themselves, at the peak and at the
// end. 0 where there are none.
struct backing {
    int64_t peak_bytes, exit_bytes;
};
struct backing heaps_backing(const struct profile *profile);
// Whether a stack of malloc's is one of theirs: a hook is among the callers.
bool heaps_is_backing(const struct profile *profile, uint32_t node);

#endif
