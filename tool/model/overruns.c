// SPDX-License-Identifier: Apache-2.0
#include "tool/model/overruns.h"

// The stack of a cell. TREE_ROOT if it has none.
static bool node_of(struct recording *recording, struct decoder *decoder, uint32_t cell,
                    uint32_t *node) {
    *node = TREE_ROOT;
    if (cell <= CAIRN_CELL_OTHER || cell >= recording_count(recording, CAIRN_SECTION_CELLS))
        return true;
    return decoder_stack(decoder, cell, node);
}

bool overruns_read(struct overruns *overruns, struct recording *recording,
                   struct decoder *decoder) {
    struct overrun found = {0};
    if (!recording_guard(recording, &overruns->guard)) return true;
    for (size_t i = 0; i < CAIRN_OVERRUN_LIMIT; i++) {
        if (!recording_overrun(recording, i, &found.entry)) break;
        if (!found.entry.found_at) continue;
        struct overrun *overrun = array_push(&overruns->list);
        if (!overrun || !node_of(recording, decoder, found.entry.cell, &found.node) ||
            !node_of(recording, decoder, found.entry.found_cell, &found.found_node))
            return false;
        *overrun = found;
    }
    return true;
}

void overruns_free(struct overruns *overruns) {
    array_free(&overruns->list);
    overruns->guard = (struct cairn_guard){0};
}

int64_t overrun_before(const struct overrun *overrun) {
    return -(int64_t)overrun->entry.before.farthest;
}

int64_t overrun_behind(const struct overrun *overrun) {
    return (int64_t)(overrun->entry.size + overrun->entry.behind.nearest - 1);
}
