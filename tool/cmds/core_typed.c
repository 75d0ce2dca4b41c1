// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_typed.h"

#include <stdlib.h>

enum { ALLOCATING_FRAMES = 6 };  // operator new, and what it is made of, are the innermost ones

// What the calls of stacks allocate, each looked for once.
struct known_types {
    const struct profile *profile;
    const struct core_blocks *blocks;
    const struct type **types;  // by stack
    bool *are_known;
};

// The innermost call that says it.
static const struct type *type_of_stack(const struct profile *profile, struct typed *typed,
                                        size_t stack) {
    const struct tree_node *nodes = profile->tree.nodes.items;
    uint32_t node = profile->stacks[stack].node;
    for (int depth = 0; depth < ALLOCATING_FRAMES && node != TREE_ROOT; depth++) {
        const struct place *place = &profile->places.list.items[nodes[node].place];
        const struct type *type = NULL;
        if (place->module != MODULE_NONE && !place->cut && !(place->address & PLACE_PYTHON))
            type = typed_allocated(typed, profile->modules.modules[place->module].bias,
                                   place->address + 1);
        if (type) return type;
        node = nodes[node].parent;
    }
    return NULL;
}

static const struct type *type_of(void *context, struct typed *typed, uint64_t address) {
    struct known_types *known = context;
    struct core_block block;
    if (!core_block_of(known->blocks, address, &block)) return NULL;
    size_t stack = profile_stack_of(known->profile, block.cell);
    if (stack >= known->profile->stack_count) return NULL;
    if (!known->are_known[stack]) known->types[stack] = type_of_stack(known->profile, typed, stack);
    known->are_known[stack] = true;
    return known->types[stack];
}

struct typed *core_typed_open(const struct core_reach *reach, struct core_types *types,
                              const struct profile *profile, const struct core_blocks *blocks,
                              struct error *error) {
    if (!profile) return typed_open(reach, types, NULL, error);
    struct known_types known = {.profile = profile,
                                .blocks = blocks,
                                .types = calloc(profile->stack_count + 1, sizeof *known.types),
                                .are_known =
                                    calloc(profile->stack_count + 1, sizeof *known.are_known)};
    const struct typed_allocations allocations = {type_of, &known};
    struct typed *typed = NULL;
    if (known.types && known.are_known)
        typed = typed_open(reach, types, &allocations, error);
    else
        error_set(error, "out of memory");
    free(known.types);
    free(known.are_known);
    return typed;
}
