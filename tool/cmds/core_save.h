// SPDX-License-Identifier: Apache-2.0
// Who keeps the blocks of a process or core dump, as a recording: its call stacks are the ways of
// owning (a root, what it keeps, what that keeps), innermost the type of blocks where it is known.
// So all views, pages, exports and comparisons are of them. No contents of blocks are in it, unless
// they are asked for.
#ifndef TOOL_CMDS_CORE_SAVE_H
#define TOOL_CMDS_CORE_SAVE_H

#include <limits.h>
#include <stdio.h>

#include "tool/cmds/core_owner_rows.h"

// `listing`: with the blocks.
bool core_image_write(FILE *out, const struct owner_listing *listing, struct error *error);

// The same opened, without a file.
bool core_image_open(const struct owner_listing *listing, struct opened *opened,
                     struct error *error);

// That of a process or core dump, as a file in memory: its descriptor, to be closed, and a path to
// it; -1 with an error.
int core_image_take(const char *word, bool has_limit, bool has_contents, char path[PATH_MAX],
                    struct error *error);

// `cairn core SUBJECT save FILE`.
struct core_saving {
    bool can_replace;
    bool has_contents;  // the beginnings of texts are kept as innermost places
};
bool core_save(struct core_subject *subject, const char *path, const struct core_saving *how,
               struct error *error);

#endif
