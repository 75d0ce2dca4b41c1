// SPDX-License-Identifier: Apache-2.0
// Which blocks of a process can still be reached: from registers, stacks, data of modules and other
// memory of the process (tool/core/roots.h), through blocks in use. What cannot is leaked; of the
// leaked, those that no other leaked block refers to are unreferenced: the words are chap's.
//
// A reference is an aligned word that leads to a block's start or into it. So it is conservative:
// a number that looks like an address keeps a block reachable, and a pointer that is kept in
// another form (with bits of its own, or not aligned) is not seen.
//
// Blocks are looked through window by window of the heap, so that a core may be larger than memory.
#ifndef TOOL_CORE_REACH_H
#define TOOL_CORE_REACH_H

#include "tool/core/block_map.h"
#include "tool/core/roots.h"

struct core_reach {
    const struct core_image *core;
    struct core_heap heap;  // every block that is known, recorded ones among them
    struct core_spans roots;
    struct block_map map;  // reachable blocks are marked
};

// Takes over the heap. `others` (settled) is memory that refers to nothing: the recording.
// `are_all_glibc`: the heap's chunks are as core_read_heap found them.
bool core_reach_open(const struct core_image *core, struct core_heap *heap, bool are_all_glibc,
                     const struct core_spans *others, struct core_reach *reach,
                     struct error *error);
void core_reach_close(struct core_reach *reach);

enum core_reached { CORE_REACHABLE, CORE_LEAKED, CORE_UNREFERENCED, CORE_NO_BLOCK };

// What became of the block in use that the address lies in.
enum core_reached core_reach_of(const struct core_reach *reach, uint64_t address);

// Goes through memory: calls `see` for each aligned word of [start, end) that may lead to a block.
struct core_scan {
    const struct core_image *core;
    const struct block_map *map;
    bool (*see)(void *context, uint64_t at, uint64_t word);  // false: no memory, or enough seen
    void *context;
    bool is_ascending;  // nearly all of memory is looked through, in order: it is read, not mapped
    uint64_t places;    // for core_looked_at
    uint8_t *scratch;   // for what is read
    uint64_t start, end;  // addresses of what was read or of the last segment, and its bytes
    const uint8_t *bytes;
};
bool core_scan_open(struct core_scan *scan);
void core_scan_close(struct core_scan *scan);
bool core_scan_words(struct core_scan *scan, uint64_t start, uint64_t end);

#endif
