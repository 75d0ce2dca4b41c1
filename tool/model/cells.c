// SPDX-License-Identifier: Apache-2.0
// Puts a cell together from its parts, of which older versions of the format have others.
#include <string.h>

#include "format/packed.h"
#include "tool/model/cells_older.h"
#include "tool/model/reader.h"

enum { HIGH_SHIFT = 32 };

static uint64_t join(uint16_t high, uint32_t low) {
    return (uint64_t)high << HIGH_SHIFT | low;
}

static bool read_older(const struct recording *recording, size_t id, struct recorded_cell *cell) {
    struct older_cell hot;
    struct older_cell_cold cold = {0};
    struct older_cell_use use = {0};
    if (!recording_copy(recording, OLDER_SECTION_CELLS, id, &hot, sizeof hot)) return false;
    recording_copy(recording, OLDER_SECTION_CELLS_COLD, id, &cold, sizeof cold);
    bool has_use = recording_copy(recording, OLDER_SECTION_CELLS_USE, id, &use, sizeof use);
    bool is_varied = cold.sizes == OLDER_NO_SIZES;
    *cell = (struct recorded_cell){.calls = join(cold.calls_high, hot.calls),
                                   .frees = join(cold.frees_high, hot.frees),
                                   .allocated_bytes = hot.allocated_bytes,
                                   .freed_bytes = hot.freed_bytes,
                                   .slack_bytes = use.slack_bytes,
                                   .temporary = join(cold.temporary_high, use.temporary),
                                   .peak_bytes = cold.peak_bytes,
                                   .peak_blocks = cold.peak_blocks,
                                   .epoch = hot.epoch,
                                   .record = cold.record,
                                   .generation = cold.generation,
                                   .usual_size = use.size,
                                   .has_sizes = has_use && !is_varied,
                                   .sizes = is_varied ? 0 : cold.sizes,
                                   .reallocs = cold.reallocs,
                                   .ages = cold.ages,
                                   .aligned = cold.aligned,
                                   .watched = cold.watched,
                                   .short_lived = cold.short_lived};
    return true;
}

static void add_rare(const struct recording *recording, uint32_t number,
                     struct recorded_cell *cell) {
    struct cairn_cell_rare rare;
    if (!recording_copy(recording, CAIRN_SECTION_CELLS_RARE, number - 1, &rare, sizeof rare))
        return;
    cell->calls |= (uint64_t)rare.calls_high << HIGH_SHIFT;
    cell->frees |= (uint64_t)rare.frees_high << HIGH_SHIFT;
    cell->slack_bytes += (uint64_t)rare.slack_high * CAIRN_SLACK_UNIT;
    cell->temporary |= (uint64_t)rare.temporary_high << HIGH_SHIFT;
    cell->generation = rare.generation;
    cell->sizes = rare.sizes;
    cell->has_sizes |= rare.sizes != 0;
    cell->reallocs = rare.reallocs;
    cell->ages = rare.ages;
    cell->aligned = rare.aligned;
    cell->watched = rare.watched;
    cell->short_lived = rare.short_lived;
}

bool recording_cell(const struct recording *recording, size_t id, struct recorded_cell *cell) {
    struct cairn_cell from;
    if (cairn_is_older(recording->header.version)) return read_older(recording, id, cell);
    if (!recording_copy(recording, CAIRN_SECTION_CELLS, id, &from, sizeof from)) return false;
    *cell = (struct recorded_cell){.calls = from.calls,
                                   .frees = from.frees,
                                   .allocated_bytes = from.allocated_bytes,
                                   .freed_bytes = from.freed_bytes,
                                   .slack_bytes = from.slack_bytes,
                                   .temporary = from.temporary,
                                   .peak_bytes = from.peak_bytes,
                                   .peak_blocks = from.peak_blocks,
                                   .epoch = from.epoch,
                                   .record = from.record,
                                   .usual_size = from.size,
                                   .has_sizes = from.size != CAIRN_SIZE_VARIES};
    if (from.rare) add_rare(recording, from.rare, cell);
    return true;
}

bool recording_cell_is_used(const struct recording *recording, size_t id) {
    struct cairn_cell from;
    struct recorded_cell cell;
    bool is_older = cairn_is_older(recording->header.version);
    if (!is_older && !recording_copy(recording, CAIRN_SECTION_CELLS, id, &from, sizeof from))
        return false;
    if (!is_older && (from.calls || from.frees || from.freed_bytes)) return true;
    // the upper halves of its counts are in its rare part
    return (is_older || from.rare) && recording_cell(recording, id, &cell) &&
           (cell.calls || cell.frees || cell.freed_bytes);
}

// The cell as it lies there; of an earlier format what the two below ask for.
static bool read_plain(const struct recording *recording, size_t id, struct cairn_cell *plain) {
    struct recorded_cell cell;
    if (!cairn_is_older(recording->header.version))
        return recording_copy(recording, CAIRN_SECTION_CELLS, id, plain, sizeof *plain);
    if (!recording_cell(recording, id, &cell)) return false;
    *plain = (struct cairn_cell){.allocated_bytes = cell.allocated_bytes,
                                 .freed_bytes = cell.freed_bytes,
                                 .record = cell.record};
    return true;
}

bool recording_cell_left(const struct recording *recording, size_t id, int64_t *bytes) {
    struct cairn_cell plain;
    if (!read_plain(recording, id, &plain)) return false;
    *bytes = (int64_t)(plain.allocated_bytes - plain.freed_bytes);
    return true;
}

bool recording_cell_record(const struct recording *recording, size_t id, uint32_t *record) {
    struct cairn_cell plain;
    if (!read_plain(recording, id, &plain)) return false;
    *record = plain.record;
    return true;
}

bool recording_has_temporary(const struct recording *recording) {
    if (cairn_is_older(recording->header.version))
        return recording_count(recording, OLDER_SECTION_CELLS_USE) != 0;
    return !recording->header.has_no_temporary;
}
