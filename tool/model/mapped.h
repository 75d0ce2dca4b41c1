// SPDX-License-Identifier: Apache-2.0
// The mappings that the program made itself (cairn run --mmap), by the stacks that made them, apart
// from the heap: none of this is in a profile's totals, unless it is made to show it.
//
// They have the heap's measures: bytes are whole pages mapped, a block is a mapping, or each piece
// of one that was cut. What is only reserved holds nothing: it is counted apart.
#ifndef TOOL_MODEL_MAPPED_H
#define TOOL_MODEL_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/model/profile.h"

struct decoder;

// Fills profile->mapped; called while the profile is built. False without memory.
bool mapped_build(struct profile *profile, struct decoder *decoder);
void mapped_free(struct mapped *mapped);

// Makes the profile one of mappings: its stacks and totals are theirs, its threads and what else is
// known of the heap are gone. False without memory.
bool profile_show_mapped(struct profile *profile);

// Which kinds of mappings a stack made, as "memory, files".
void mapped_kinds_text(uint32_t kinds, char *out, size_t size);
// "memory", "files", "shared", "reserved", "allocator".
const char *mapped_kind_name(enum cairn_mapping_kind kind);

#endif
