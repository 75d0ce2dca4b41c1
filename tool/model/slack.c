// SPDX-License-Identifier: Apache-2.0
#include "tool/model/slack.h"

#include "tool/model/decode.h"

enum { HIGH_HALF_SHIFT = 32, HEADER_BYTES = 8 };

struct counts {
    uint64_t calls, frees;
};

static bool counts_of(const struct recording *recording, size_t id, struct counts *counts) {
    struct cairn_cell cell;
    struct cairn_cell_cold cold;
    if (!recording_cell(recording, id, &cell, &cold)) return false;
    *counts = (struct counts){cell.calls | (uint64_t)cold.calls_high << HIGH_HALF_SHIFT,
                              cell.frees | (uint64_t)cold.frees_high << HIGH_HALF_SHIFT};
    return true;
}

// Rounding of a cell's blocks on average.
static double average(const struct recording *recording, size_t id) {
    struct counts counts;
    struct cairn_cell_use use;
    if (!counts_of(recording, id, &counts) || !counts.calls) return 0;
    recording_cell_use(recording, id, &use);
    return (double)use.slack_bytes / (double)counts.calls;
}

uint64_t slack_of_live(const struct recording *recording) {
    const struct decoder decoder = {.recording = (struct recording *)recording};
    size_t count = recording_count(recording, CAIRN_SECTION_CELLS);
    double slack = 0;
    if (count > UINT32_MAX) count = UINT32_MAX;
    for (size_t id = CAIRN_CELL_OTHER; id < count; id++) {
        struct counts counts;
        struct record record;
        if (!counts_of(recording, id, &counts) || counts.calls == counts.frees) continue;
        // frees of blocks that another cell counts
        bool is_foreign =
            !counts.calls && decoder_record(&decoder, (uint32_t)id, &record) && record.is_foreign;
        double live = (double)counts.calls - (double)counts.frees;
        slack += live * (average(recording, is_foreign ? record.older : id) + HEADER_BYTES);
    }
    return slack > 0 ? (uint64_t)slack : 0;
}
