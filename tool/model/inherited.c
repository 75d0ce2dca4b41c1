// SPDX-License-Identifier: Apache-2.0
#include "tool/model/inherited.h"

#include "format/sample.h"
#include "tool/model/figures.h"

void inherited_add(struct inherited *sum, const struct inherited *added) {
    sum->blocks += added->blocks;
    sum->bytes += added->bytes;
    sum->peak_blocks = figures_add(sum->peak_blocks, added->peak_blocks);
    sum->peak_bytes = figures_add(sum->peak_bytes, added->peak_bytes);
    sum->exit_blocks = figures_add(sum->exit_blocks, added->exit_blocks);
    sum->exit_bytes = figures_add(sum->exit_bytes, added->exit_bytes);
}

bool inherited_is_cell(const struct recording *recording, size_t cell) {
    uint16_t slot;
    return cell != CAIRN_CELL_OTHER && recording_owner(recording, cell, &slot) &&
           slot == CAIRN_SLOT_SHARED;
}

bool inherited_is_about(const struct recording *recording, size_t cell,
                        const struct record *record) {
    return inherited_is_cell(recording, record->is_foreign ? record->older : cell);
}

// Blocks that a cell holds; of samples, those they stand for.
static int64_t held_blocks(const struct recording *recording, size_t cell,
                           const struct cairn_cell *hot, const struct cairn_cell_cold *cold) {
    enum { HIGH_HALF_SHIFT = 32 };
    uint64_t calls = hot->calls | (uint64_t)cold->calls_high << HIGH_HALF_SHIFT;
    uint64_t frees = hot->frees | (uint64_t)cold->frees_high << HIGH_HALF_SHIFT;
    struct cairn_sample_cell sums;
    recording_sample_cell(recording, cell, &sums);
    return figures_add((int64_t)(calls - frees),
                       estimate_whole_blocks(sums.extra_calls - sums.extra_frees));
}

struct inherited inherited_of(const struct recording *recording) {
    const struct figures figures = figures_of(recording);
    const struct decoder decoder = {.recording = (struct recording *)recording};
    struct inherited sum = {.blocks = figures.inherited_blocks, .bytes = figures.inherited_bytes};
    struct cairn_cell hot;
    struct cairn_cell_cold cold;
    if (!sum.blocks) return sum;
    for (uint32_t id = CAIRN_CELL_OTHER + 1; recording_cell(recording, id, &hot, &cold); id++) {
        struct record record;
        if (!decoder_record(&decoder, id, &record) || !inherited_is_about(recording, id, &record))
            continue;
        sum.exit_blocks = figures_add(sum.exit_blocks, held_blocks(recording, id, &hot, &cold));
        sum.exit_bytes =
            figures_add(sum.exit_bytes, (int64_t)(hot.allocated_bytes - hot.freed_bytes));
    }
    return sum;
}
