// SPDX-License-Identifier: Apache-2.0
// What cells held at snapshots (format.h, cairn_value): each thread saves the values of its own
// cells, in chunks of the section that it keeps for good.
//
// Snapshots are left out as the run goes on. Values that no moment is left for make room for
// others: a thread whose chunk is full looks through a few of its chunks before it takes a new one.
// The order of the entries means nothing, so none is ever moved, and whatever interrupts this
// leaves each entry whole or free.
#ifndef RUNTIME_STACK_VALUES_H
#define RUNTIME_STACK_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "format/sample.h"
#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

// Chunks are numbered from 1; 0: none. The first entry of each stays free and has the number of the
// next one in from_epoch.
struct value_log {
    uint32_t first, last, current;
    uint32_t place;       // next entry of `current` to look at
    uint32_t pass;        // the chunk that is looked through next; 0: all were, or none need be
    uint32_t thin_count;  // when a pass began last
};

struct values {
    struct region entries;
    // Where blocks are sampled from the start: what was behind each entry, at the same index, from
    // what stands beside the cell now. Else without base.
    struct region samples, sample_cells;
    struct cairn_header *header;
    const struct cairn_snapshot *snapshots;
    uint64_t *snapshot_bytes;  // of SNAPSHOTS that are in use
};

extern HIDDEN struct values values;

ALWAYS_INLINE bool values_have_samples(void) {
    return values.samples.base != NULL;
}

// Saves a value that held from after from_epoch to to_epoch, when the cell had so many calls.
// Without room the snapshots in between note that one is missing.
void values_save(struct value_log *log, const struct cairn_value *value, uint64_t calls);

// Uncovers room for so many threads that save their first value at once: after a barrier, say, of
// which the next free is each one's first since the last snapshot.
void values_expect(uint32_t thread_count);

#endif
