// SPDX-License-Identifier: Apache-2.0
// Cells in recordings of the versions CAIRN_VERSION_OLDER and CAIRN_VERSION_OLDER_PACKED: three
// entries at the same index, each in a section of its own.
#ifndef TOOL_MODEL_CELLS_OLDER_H
#define TOOL_MODEL_CELLS_OLDER_H

#include <stdint.h>

enum { OLDER_SECTION_CELLS = 5, OLDER_SECTION_CELLS_COLD = 6, OLDER_SECTION_CELLS_USE = 10 };

struct older_cell {
    uint64_t allocated_bytes, freed_bytes;
    uint32_t calls, frees, epoch, check;
};

struct older_cell_cold {
    uint32_t record, generation;
    int64_t peak_bytes;
    int32_t peak_blocks;
    uint16_t calls_high, frees_high;
    uint32_t sizes, reallocs, ages;
    uint16_t temporary_high, aligned;
    uint32_t watched, short_lived;
};
#define OLDER_NO_SIZES UINT32_MAX  // in `sizes`: different sizes that were not counted

// Not there where an imported file did not say it.
struct older_cell_use {
    uint64_t slack_bytes;
    uint32_t size, temporary;
};

_Static_assert(sizeof(struct older_cell) == 32, "layout");
_Static_assert(sizeof(struct older_cell_cold) == 48, "layout");
_Static_assert(sizeof(struct older_cell_use) == 16, "layout");

#endif
