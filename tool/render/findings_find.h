// SPDX-License-Identifier: Apache-2.0
// When each rule of findings.h holds. A finder adds a finding, or none; false without memory.
#ifndef TOOL_RENDER_FINDINGS_FIND_H
#define TOOL_RENDER_FINDINGS_FIND_H

#include "tool/render/finding.h"

typedef bool finding_finder(struct findings *findings, const struct profile *profile,
                            struct error *error);

finding_finder finding_find_growth, finding_find_realloc, finding_find_temporary,
    finding_find_freed_by, finding_find_ages, finding_find_free, finding_find_reuse,
    finding_find_alike, finding_find_untouched, finding_find_arenas, finding_find_huge;

#endif
