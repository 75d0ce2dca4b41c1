// SPDX-License-Identifier: Apache-2.0
// Paths at which a file may lie, in the order in which they are tried. Whether a file is the right
// one is for the caller to find out.
#ifndef TOOL_SYMBOL_CANDIDATES_H
#define TOOL_SYMBOL_CANDIDATES_H

#include "tool/symbol/options.h"
#include "tool/symbol/string_pool.h"

#define CANDIDATES_MAX 64

// Paths belong to the store they were made in; those that do not fit are left out.
struct candidates {
    const char *paths[CANDIDATES_MAX];
    size_t count;
};

// The file that was recorded as `path`. Without a build-id to check it by, a file below the
// sysroot comes before that of this machine.
void candidates_of_module(struct candidates *list, const struct symbol_options *options,
                          const char *path, bool has_build_id, struct string_pool *store);

// One of the files that are held open.
bool candidates_is_held(const char *path);

// Separate debug information by build-id.
void candidates_by_build_id(struct candidates *list, const struct symbol_options *options,
                            const uint8_t *build_id, size_t bytes, struct string_pool *store);

// Separate debug information called `name` (.gnu_debuglink) of the module in `directory`.
void candidates_by_link(struct candidates *list, const struct symbol_options *options,
                        const char *directory, const char *name, struct string_pool *store);

// The package of split debug information (.dwp) of a module and its debug file; either may be NULL.
void candidates_of_package(struct candidates *list, const struct symbol_options *options,
                           const char *module_path, const char *debug_path,
                           struct string_pool *store);

// The object file called `name` by a unit that was compiled in `directory` (NULL: not known), of a
// module or its debug file at `path`.
void candidates_of_object(struct candidates *list, const struct symbol_options *options,
                          const char *path, const char *directory, const char *name,
                          struct string_pool *store);

#endif
