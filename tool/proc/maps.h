// SPDX-License-Identifier: Apache-2.0
// The mappings of a process: the one parser of /proc/PID/maps and smaps, and a list of those that
// may hold a heap, words that lead to it, or what such words lead to.
#ifndef TOOL_PROC_MAPS_H
#define TOOL_PROC_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

enum { MAPPING_PERMISSION_BYTES = 5 };

struct mapping {
    uint64_t start, end;
    uint64_t offset;                             // in its file
    uint64_t inode;                              // of its file; 0: it has none
    char permissions[MAPPING_PERMISSION_BYTES];  // "rw-p"
    const char *name;                            // "" for anonymous memory; valid until maps_next
    // Of smaps only:
    uint64_t rss_bytes, pss_bytes, swap_bytes, huge_bytes;
    uint64_t anonymous_bytes;  // of rss_bytes: pages that are no file's, or no longer
    bool is_unreserved;        // MAP_NORESERVE
    bool is_undumped;          // MADV_DONTDUMP: core dumps leave it out
};

struct maps {
    FILE *file;
    bool has_ahead, is_odd;  // is_odd: a line was skipped that is none of such a file
    struct mapping ahead;    // the next one: smaps says more about a mapping behind its line
    char names[2][PATH_MAX];
    unsigned name;        // of `ahead`
    uint64_t seen_until;  // the end of the last mapping
};

// `which`: "maps" or "smaps". False, with an error, if the process is gone or may not be read.
bool maps_open(struct maps *maps, pid_t pid, const char *which, struct error *error);

// Reads from an open file in that form, which maps_close closes.
void maps_open_file(struct maps *maps, FILE *file);
void maps_close(struct maps *maps);

// Reads the next mapping. False: there is none. The kernel writes such a file in pieces, and a
// mapping that grew in between begins the next piece again: that is left out.
bool maps_next(struct maps *maps, struct mapping *mapping);

// Finds the mapping that holds the address; its name is copied to `name`. False: none does, or they
// cannot be read.
bool maps_find(pid_t pid, uint64_t address, struct mapping *mapping, char name[PATH_MAX]);

// Whether any mapping has `part` in its name. False too if they cannot be read.
bool maps_have_name(pid_t pid, const char *part);

// It maps a file, and no device.
bool mapping_is_file(const struct mapping *mapping);

// Its file has been deleted or replaced; memory without a path is shown so as well.
bool mapping_is_deleted(const struct mapping *mapping);

enum extent_kind {
    EXTENT_CONSTANT,  // private and not writable, of a file: headers and constants of modules
    EXTENT_DATA,      // private and writable, of a file: an allocator's own variables
    EXTENT_BREAK,     // what brk moves
    EXTENT_MEMORY,    // private and writable, of no file
    EXTENT_OTHER,  // no heap, but may refer to one: the main stack, memory that can be read only,
                   // shared memory without a path
};

struct extent {
    uint64_t start, end;
    uint64_t offset;  // in its file
    enum extent_kind kind;
    bool is_code;
};

struct extents {
    ARRAY(struct extent) items;  // ascending
};

// Lists the mappings of these kinds; others are left out, and those of one arena's heap are one.
// False without memory.
bool extents_read(struct maps *maps, struct extents *extents);

// The same of a process; false, with an error, also if it is gone.
bool extents_of_process(pid_t pid, struct extents *extents, struct error *error);

#endif
