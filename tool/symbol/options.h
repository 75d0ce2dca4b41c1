// SPDX-License-Identifier: Apache-2.0
// Where symbols may come from, as the user chose. All zero: files of this machine only, by the
// paths that were recorded.
#ifndef TOOL_SYMBOL_OPTIONS_H
#define TOOL_SYMBOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rename_rules;

struct symbol_options {
    const char *const *debug_dirs;  // each like /usr/lib/debug, or with the files themselves
    size_t debug_dir_count;
    const char *sysroot;  // tree that recorded paths are looked for in; NULL: none
    uint32_t process;     // a running process whose root is such a tree too; 0: none
    uint32_t generator;   // process that may have told about code it generated; 0: none
    uint32_t generator_user;
    uint64_t generator_start_ns;      // its start, since 1970
    const char *generator_directory;  // its working directory; NULL: unknown
    bool has_debuginfod;              // missing debug files may be downloaded ($DEBUGINFOD_URLS)
    bool is_quick;          // large debug information is left out, symbol tables serve instead
    bool is_anew;           // names that the recording or the cache keeps do not count
    const char *cache_dir;  // answers are kept below it; NULL: they are not
    bool has_full_names;    // names whole, with parameters and all template arguments
    const struct rename_rules *renames;  // what the user wants names to become; NULL: nothing
};

#endif
