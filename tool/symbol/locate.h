// SPDX-License-Identifier: Apache-2.0
// Finds the files that can name the code of one module: the file itself, its separate debug file,
// the small symbol table packed into it. A file is only accepted when its build-id is the
// recorded one (or, for a file linked by name, when its checksum is right).
//
// Debug files come from debuginfod servers too, when the user asked for that.
#ifndef TOOL_SYMBOL_LOCATE_H
#define TOOL_SYMBOL_LOCATE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/symbol/image.h"
#include "tool/symbol/job.h"
#include "tool/symbol/options.h"
#include "tool/symbol/string_pool.h"

// Images are closed where nothing was found. Paths and note belong to the store.
struct located {
    struct image module;
    struct image debug;
    struct image packed;  // .gnu_debugdata of the module, unpacked
    const char *module_path;
    const char *debug_path;
    bool is_gone;      // the module's own file is not there as it was recorded
    bool is_data;      // the file is there and is no ELF file
    const char *note;  // what is missing or doubtful, NULL if nothing
};

void locate_open(struct located *located, const struct symbol_module *module,
                 const struct symbol_options *options, struct string_pool *store);
void locate_close(struct located *located);

// Opens the file of shared debug information that `from_path` refers to as `name`, by build-id;
// closed if it is not there or is another one.
void locate_alternate(struct image *alternate, const char *from_path, const char *name,
                      const uint8_t *build_id, size_t build_id_bytes,
                      const struct symbol_options *options, struct string_pool *store);

// Why there was no download although one was asked for; NULL if all went well. A missing file on
// the servers is no reason.
const char *download_problem(void);

#endif
