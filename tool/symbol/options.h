// SPDX-License-Identifier: Apache-2.0
// Where symbols may come from, as the user chose. All zero: files of this machine only, by the
// paths that were recorded.
#ifndef TOOL_SYMBOL_OPTIONS_H
#define TOOL_SYMBOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_file;
struct rename_rules;

struct symbol_options {
    const char *const *debug_dirs;  // each like /usr/lib/debug, or with the files themselves
    size_t debug_dir_count;
    const char *sysroot;    // tree that recorded paths are looked for in; NULL: none
    uint32_t process;       // a running process whose root is such a tree too; 0: not known
    const char *directory;  // in which the program was started; NULL: unknown
    uint32_t generator;     // process that may have named code it generated; 0: none
    uint32_t generator_user;
    uint64_t generator_start_ns;  // its start, since 1970
    bool has_debuginfod;          // missing debug files may be downloaded ($DEBUGINFOD_URLS)
    bool is_quick;  // large debug information is left out, symbol tables serve instead
    bool is_anew;   // names that the recording or the cache keeps do not count
    const struct held_file *held;  // files that are open, whatever has their paths by now
    size_t held_count;
    bool is_closed;              // no file is read: what is kept already has to do
    bool is_raw;                 // frames get no readable names: they are only to be kept
    uint64_t foreign_bytes_max;  // debug information of all modules that are not the program's own:
                                 // where there is more, their symbol tables serve; 0: no bound
    uint64_t deadline_ns;        // CLOCK_MONOTONIC: no more debug information is read then; 0: none
    const char *cache_dir;       // answers are kept below it; NULL: they are not
    bool has_full_names;         // names whole, with parameters and all template arguments
    const struct rename_rules *renames;  // what the user wants names to become; NULL: nothing
};

#endif
