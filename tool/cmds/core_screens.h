// SPDX-License-Identifier: Apache-2.0
// What `cairn core` prints about the blocks of a core: lists, sums, one block.
#ifndef TOOL_CMDS_CORE_SCREENS_H
#define TOOL_CMDS_CORE_SCREENS_H

#include "tool/cmds/opened.h"
#include "tool/core/blocks.h"

// A core with the recording found in it (or beside it) and the blocks in use.
struct core_subject {
    struct core_image core;
    struct core_blocks blocks;
    struct opened opened;
    const char *path;  // as the user named it
};

// A line a block: "Used allocation at HEX of size HEX", then the count.
void core_print_list(const struct core_subject *subject);
// "N allocations use 0xHEX (N) bytes."
void core_print_count(const struct core_subject *subject);
// Blocks by the module that asked for them; with `module` by its functions; with `function` too by
// return address. Fails if no block is of these.
bool core_print_groups(const struct core_subject *subject, const char *module, const char *function,
                       struct error *error);
// The block at or around an address: size, thread, stack, contents.
bool core_print_block(const struct core_subject *subject, uint64_t address, struct error *error);
// What the core holds, and the next commands.
bool core_print_overview(const struct core_subject *subject, struct error *error);

#endif
