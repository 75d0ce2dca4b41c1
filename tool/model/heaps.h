// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap) by the stacks that asked for their blocks: each is a heap of its own,
// which can be put in the place of malloc's, so that all that is known of stacks is shown of it.
// What such an allocator takes from malloc is malloc's; the blocks that it makes of that are here
// alone.
#ifndef TOOL_MODEL_HEAPS_H
#define TOOL_MODEL_HEAPS_H

#include "tool/base/error.h"
#include "tool/model/profile.h"

struct decoder;

// Reads them; fails only without memory.
bool heaps_build(struct profile *profile, struct decoder *decoder);

// Puts a heap, or what is of one name in it ("HEAP/NAME"), in the place of malloc's. False: there
// is no such heap. `name` outlives the profile.
bool profile_show_heap(struct profile *profile, const char *name, struct error *error);

// Of malloc's heap: what functions of such allocators took for themselves, at the peak and at the
// end. 0 where there are none.
struct backing {
    int64_t peak_bytes, exit_bytes;
};
struct backing heaps_backing(const struct profile *profile);

#endif
