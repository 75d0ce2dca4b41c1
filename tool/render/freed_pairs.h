// SPDX-License-Identifier: Apache-2.0
// Threads by slot, and whose blocks those of each freed: who freed is known by slot, which threads
// hand on to each other.
#ifndef TOOL_RENDER_FREED_PAIRS_H
#define TOOL_RENDER_FREED_PAIRS_H

#include "tool/model/shape.h"

enum { SLOT_NAME_BYTES = 64 };

struct slot_names {
    const struct profile *profile;
    struct slot_thread *threads;  // by slot, those of a slot one after the other
};

// False without memory.
bool slot_names_make(struct slot_names *names, const struct profile *profile);
void slot_names_free(struct slot_names *names);

// Writes "worker", or of a slot that threads of several names had: "worker/writer". Says how many
// names.
size_t slot_name(const struct slot_names *names, uint32_t slot, char *out, size_t size);

// Returns the number of the only thread of a slot; 0: it had several.
uint32_t slot_only_thread(const struct slot_names *names, uint32_t slot);

struct freed_pairs {
    struct slot_names names;
    struct shape_freed *list;  // by owner, then by who freed
    size_t count;
    bool *are_told;
};

// False without memory.
bool freed_pairs_make(struct freed_pairs *pairs, const struct profile *profile);
void freed_pairs_free(struct freed_pairs *pairs);

// Returns the next pair whose blocks were allocated by threads of a slot, where threads of another
// one freed some of them; each once. NULL: that were all, or they freed all themselves.
const struct shape_freed *freed_pairs_next(struct freed_pairs *pairs, uint32_t slot);

#endif
