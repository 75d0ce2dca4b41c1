// SPDX-License-Identifier: Apache-2.0
// A process' resident memory in parts that add up to it, as `cairn report PID` tells it.
#ifndef TOOL_CMDS_CORE_OVERVIEW_PARTS_H
#define TOOL_CMDS_CORE_OVERVIEW_PARTS_H

#include "tool/glibc/giveback.h"
#include "tool/heap/image.h"
#include "tool/heap/python_pools.h"
#include "tool/model/heap_state.h"
#include "tool/watch/rss_parts.h"

enum { RESIDENT_NAMES = 3, RESIDENT_PARTS_MAX = 11 + RESIDENT_NAMES };
enum { RESIDENT_TEXT_BYTES = 4 * MAPPED_NAME_BYTES + 16 };

// PART_CLOSED: in a core, and perhaps never resident.
enum part_kind { PART_USED, PART_FREE, PART_OTHER, PART_REST, PART_CLOSED };

struct resident_part {
    enum part_kind kind;
    uint64_t bytes;
    char text[RESIDENT_TEXT_BYTES];  // safe to print
};

struct resident_parts {
    struct resident_part items[RESIDENT_PARTS_MAX];
    size_t count;
    uint64_t all_bytes;  // their sum
    bool are_dumped;     // set before: of a core, which does not say what was resident
};

// `heap`: its figures; NULL: they are not known, and what is free is as far as `giveback` says.
// `python`: NULL likewise. Memory that the program named is told by name, the largest
// RESIDENT_NAMES.
void resident_parts_find(const struct rss_parts *resident, const struct heap_state *heap,
                         const struct giveback *giveback, const struct python_pools *python,
                         struct resident_parts *parts);

// The heap of another allocator than glibc's, whose blocks are known.
struct other_resident {
    const char *name;     // of the allocator
    uint64_t bytes;       // of its pages and tables that are resident
    uint64_t used_bytes;  // of them what blocks in use take
};

// The same where that is what the process has.
void resident_parts_find_other(const struct rss_parts *resident, const struct other_resident *other,
                               struct resident_parts *parts);

// Fills in what the memory in a core consists of, as if it had been resident. Thread stacks are
// known by the pointers of the threads.
void resident_of_dump(const struct core_image *core, struct rss_parts *resident);

// Prints those of a process as `request` has it. `name` is safe to print.
struct request;
bool resident_parts_print(const struct resident_parts *parts, const char *name, pid_t pid,
                          const struct request *request, struct error *error);

// Sums up those of a kind.
uint64_t resident_parts_bytes(const struct resident_parts *parts, enum part_kind kind);

#endif
