// SPDX-License-Identifier: Apache-2.0
// Which ranges of addresses are mapped, and by whom: a list without overlaps, the highest address
// first, since the kernel mostly maps below what is there already.
//
// The list lies in memory of the process, so that a forked child has its own. A reader outside of
// the process (format.h, cairn_mapping_table) takes it if `change` was even before and the same
// after. One caller at a time.
#ifndef RUNTIME_RECORD_RANGES_H
#define RUNTIME_RECORD_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"

struct ranges {
    struct cairn_mapping_table table;
    uint32_t limit;  // entries that the list has room for
};

// A piece of a range is taken away; whole: it was all of it, split: its rest is two ranges.
enum ranges_loss { RANGES_WHOLE, RANGES_CUT, RANGES_SPLIT };
typedef void ranges_lost(uint32_t mapper, uint64_t bytes, enum ranges_loss loss);

// Room for one more entry and for the rest of a split. False without memory.
bool ranges_prepare(struct ranges *ranges);

// Takes [start, end) away, but for ranges that are younger than `stamp`. Needs ranges_prepare.
void ranges_remove(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t stamp,
                   ranges_lost *lost);

// Adds a range where there is none. Needs ranges_prepare.
void ranges_add(struct ranges *ranges, const struct cairn_mapping_range *range);

// The range that holds the address, or NULL.
const struct cairn_mapping_range *ranges_find(const struct ranges *ranges, uint64_t address);

#endif
