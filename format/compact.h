// SPDX-License-Identifier: Apache-2.0
// The compact form of a recording: header, then the used part of every section, one after another.
// Both sides write it: the tool at the end of a run, the process itself when no tool is there.
#ifndef CAIRN_COMPACT_H
#define CAIRN_COMPACT_H

#include "format/format.h"

#define CAIRN_COMPACT_ALIGN 64u

// Turns the copy of a raw header into that of the compact file; `copy` must have a section count of
// at most CAIRN_SECTION_MAX. Section i's bytes are those at the raw offset, cut to the new
// used_bytes. Returns the size of the file.
static inline uint64_t cairn_compact_layout(struct cairn_header *copy) {
    uint64_t at = CAIRN_HEADER_BYTES;
    for (uint32_t i = 0; i < copy->section_count; i++) {
        struct cairn_section *section = &copy->sections[i];
        if (section->used_bytes > section->capacity_bytes)
            section->used_bytes = section->capacity_bytes;
        section->capacity_bytes = section->used_bytes;
        section->offset = at;
        at +=
            (section->used_bytes + CAIRN_COMPACT_ALIGN - 1) & ~(uint64_t)(CAIRN_COMPACT_ALIGN - 1);
    }
    copy->is_compact = 1;
    copy->mapped_bytes = at;
    return at;
}

#endif
