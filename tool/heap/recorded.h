// SPDX-License-Identifier: Apache-2.0
// The recording of a process in its core dump, which the kernel and gdb write out with the rest of
// its memory; and the live blocks of which it has a sample (format/sample.h).
#ifndef TOOL_HEAP_RECORDED_H
#define TOOL_HEAP_RECORDED_H

#include <limits.h>

#include "format/format.h"
#include "tool/heap/image.h"

// Finds the recording's header, which tells its own address. A process may hold that of its parent
// besides: the one with the core's own pid counts. False if there is none.
bool core_find_recording(const struct core_image *core, struct cairn_header *header);

// Copies the recording out of the core into memory that can be opened as the file `path` as long as
// this program runs. Pages that the core lacks are empty there.
bool core_copy_recording(const struct core_image *core, const struct cairn_header *header,
                         char path[PATH_MAX], struct error *error);

struct core_sample {
    uint64_t address;
    uint64_t size;  // as requested
    double weight;  // blocks that it stands for: 1 over the chance that it had
    uint32_t cell;
};

struct core_samples {
    ARRAY(struct core_sample) items;  // ascending by address
    uint64_t rejected_count;          // places that contradict themselves, or were at work
};

// `cell_count`: cells with higher numbers do not exist. Nothing sampled: no items. False without
// memory, or if the table is not in the image.
bool core_read_samples(const struct core_image *core, const struct cairn_header *header,
                       size_t cell_count, struct core_samples *samples, struct error *error);
void core_free_samples(struct core_samples *samples);

#endif
