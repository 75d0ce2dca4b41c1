// SPDX-License-Identifier: Apache-2.0
// Sections that the tool puts into a recording when it is a file: what it found in the process'
// memory.
#include "tool/model/reader.h"

bool recording_reachability(const struct recording *recording,
                            struct cairn_reachability *reachability) {
    if (!recording_copy(recording, CAIRN_SECTION_REACHABILITY, 0, reachability,
                        sizeof *reachability))
        return false;
    reachability->reason[CAIRN_REASON_BYTES - 1] = 0;
    return true;
}

bool recording_waste(const struct recording *recording, struct cairn_waste *waste) {
    if (!recording_copy(recording, CAIRN_SECTION_WASTE, 0, waste, sizeof *waste)) return false;
    waste->most[CAIRN_WASTE_LABEL_BYTES - 1] = waste->most_strings[CAIRN_WASTE_LABEL_BYTES - 1] = 0;
    return true;
}

bool recording_look(const struct recording *recording, size_t index, struct cairn_look *look) {
    if (index >= CAIRN_LOOKS_MAX ||
        !recording_copy(recording, CAIRN_SECTION_LOOKS, index, look, sizeof *look))
        return false;
    look->reason[CAIRN_LOOK_REASON_BYTES - 1] = 0;
    return true;
}

const uint8_t *recording_look_answers(const struct recording *recording,
                                      const struct cairn_look *look, size_t *bytes) {
    const struct recording_section *section = &recording->sections[CAIRN_SECTION_LOOK_ANSWERS];
    *bytes = 0;
    if (look->answers_offset > section->size) return NULL;
    const uint64_t left = section->size - look->answers_offset;
    *bytes = (size_t)(look->answers_bytes < left ? look->answers_bytes : left);
    return *bytes ? section->bytes + look->answers_offset : NULL;
}

bool recording_lost_cell(const struct recording *recording, size_t index, struct cairn_lost *lost) {
    return recording_copy(recording, CAIRN_SECTION_LOST, index, lost, sizeof *lost);
}
