// SPDX-License-Identifier: Apache-2.0
// The blocks that a process held of which its recording has a sample (format/sample.h): out of the
// table that the process keeps of them.
#ifndef TOOL_CORE_SAMPLES_H
#define TOOL_CORE_SAMPLES_H

#include "format/format.h"
#include "tool/core/image.h"

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
