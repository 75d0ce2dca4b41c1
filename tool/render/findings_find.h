// SPDX-License-Identifier: Apache-2.0
// When each rule of findings.h holds. A finder adds a finding, or none; false without memory.
#ifndef TOOL_RENDER_FINDINGS_FIND_H
#define TOOL_RENDER_FINDINGS_FIND_H

#include "tool/render/finding.h"

typedef bool finding_finder(struct findings *findings, const struct profile *profile,
                            struct error *error);

finding_finder finding_find_growth, finding_find_realloc, finding_find_temporary,
    finding_find_freed_by, finding_find_ages, finding_find_free, finding_find_reuse,
    finding_find_alike, finding_find_untouched, finding_find_arenas, finding_find_strings,
    finding_find_waste, finding_find_huge;

// Of equal strings; `whose` (NULL: said otherwise) outlives the finding. False: not worth a line.
struct string_copies {
    uint64_t bytes, count, strings;  // copies beside the first ones, and of how many
    const char *whose;
    bool is_estimate;  // from a part; the counts are of that
};
bool finding_of_strings(const struct string_copies *copies, uint64_t heap_bytes,
                        struct finding *finding);

#endif
