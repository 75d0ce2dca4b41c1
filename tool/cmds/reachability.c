// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/reachability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/reachability.h"
#include "tool/base/text.h"
#include "tool/cmds/core_sets.h"
#include "tool/heap/owners.h"
#include "tool/model/rewrite.h"

// What was found, as the recording has it.
struct verdict {
    struct core_subject *subject;
    struct cairn_reachability sums;
    struct cairn_lost *cells;  // by cell; those with lost blocks are kept
    size_t cell_count;
};

static uint32_t cell_of(const struct verdict *verdict, uint64_t address) {
    struct core_block block;
    bool is_recorded = core_block_of(&verdict->subject->blocks, address, &block);
    return is_recorded && block.cell < verdict->cell_count ? block.cell : CAIRN_CELL_OTHER;
}

static bool add(void *context, const struct core_lost_block *lost) {
    struct verdict *verdict = context;
    uint32_t id = cell_of(verdict, lost->address);
    struct cairn_lost *cell = &verdict->cells[id];
    cell->cell = id;
    cell->below_blocks += lost->below_blocks + !lost->is_direct;
    cell->below_bytes += lost->below_bytes + (lost->is_direct ? 0 : lost->size);
    if (lost->is_direct) {
        cell->direct_blocks++;
        cell->direct_bytes += lost->size;
        verdict->sums.direct_blocks++;
        verdict->sums.direct_bytes += lost->size;
    }
    return true;
}

static void sum_up(struct verdict *verdict, const struct core_owners *owners) {
    struct cairn_reachability *sums = &verdict->sums;
    const struct stopped_image *live = &verdict->subject->look.live;
    sums->indirect_blocks = owners->leaked_count - sums->direct_blocks;
    sums->indirect_bytes = owners->leaked_bytes - sums->direct_bytes;
    sums->reachable_blocks = owners->counts[0] - owners->leaked_count;
    sums->reachable_bytes = owners->retained[0] - owners->leaked_bytes;
    sums->copied_bytes = live->copied_bytes;
    sums->is_known = 1;
}

static bool find(struct verdict *verdict, struct error *error) {
    struct core_owners owners;
    const size_t count = verdict->subject->opened.profile.cell_count;
    if (verdict->subject->opened.profile.sampling.is_on)
        return error_set(error, "a sample was recorded");
    verdict->cell_count = count > CAIRN_CELL_OTHER ? count : CAIRN_CELL_OTHER + 1;
    verdict->cells = calloc(verdict->cell_count, sizeof *verdict->cells);
    if (!verdict->cells) return error_set(error, "out of memory");
    if (!core_need_map(verdict->subject, error) ||
        !core_owners_find(&verdict->subject->reach, NULL, false, &owners, error))
        return false;
    bool is_ok = core_owners_each_lost(&owners, add, verdict) || error_set(error, "out of memory");
    if (is_ok) sum_up(verdict, &owners);
    core_owners_free(&owners);
    return is_ok;
}

// Cells without lost blocks are left out.
static size_t close_up(struct verdict *verdict) {
    size_t kept = 0;
    for (size_t i = 0; i < verdict->cell_count; i++) {
        const struct cairn_lost *cell = &verdict->cells[i];
        if (cell->direct_blocks || cell->below_blocks) verdict->cells[kept++] = *cell;
    }
    return kept;
}

static void blame(struct verdict *verdict, const char *reason) {
    verdict->sums = (struct cairn_reachability){0};
    text_escape(verdict->sums.reason, sizeof verdict->sums.reason, reason);
}

static bool save(struct verdict *verdict, const char *path, struct error *error) {
    bool is_known = verdict->sums.is_known;
    size_t kept = is_known ? close_up(verdict) : 0;
    bool is_ok =
        recording_set_section(path, CAIRN_SECTION_REACHABILITY, sizeof verdict->sums,
                              &verdict->sums, sizeof verdict->sums, error) &&
        (!kept || recording_set_section(path, CAIRN_SECTION_LOST, sizeof *verdict->cells,
                                        verdict->cells, kept * sizeof *verdict->cells, error));
    free(verdict->cells);
    return is_ok;
}

// Keeps the reason where the answer is not known, and does not fail.
bool reachability_keep(struct core_subject *subject, uint64_t waited_ns, const char *path,
                       struct error *error) {
    struct verdict verdict = {.subject = subject, .sums = {.pause_ns = waited_ns}};
    struct error problem;
    if (!find(&verdict, &problem)) blame(&verdict, problem.text);
    return save(&verdict, path, error);
}

bool reachability_keep_reason(const char *reason, const char *path, struct error *error) {
    struct verdict verdict = {0};
    blame(&verdict, reason);
    return save(&verdict, path, error);
}
