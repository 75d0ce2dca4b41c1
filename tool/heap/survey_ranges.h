// SPDX-License-Identifier: Apache-2.0
// Tells which pages of the heap's areas count (tool/model/residency.h): those of a process that
// were resident. A core does not say that: a page that it leaves out, that is a hole of its file,
// or that has nothing but zeros may never have been touched, and does not count.
#ifndef TOOL_HEAP_SURVEY_RANGES_H
#define TOOL_HEAP_SURVEY_RANGES_H

#include "tool/heap/stopped.h"
#include "tool/model/heap_state.h"

struct survey_ranges {
    ARRAY(struct residency_range) list;
    uint8_t *are_written;  // of a core: a byte a page, for all ranges
};

// Makes the ranges of the areas, and leaves those parts of areas that were looked at. `live` is
// NULL of a core. Returns false without memory.
bool survey_ranges_make(const struct core_image *core, const struct stopped_image *live,
                        struct heap_state *state, struct survey_ranges *ranges);
void survey_ranges_free(struct survey_ranges *ranges);

#endif
