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

// Adds a finding of the kind.
struct finding *finding_add(struct findings *findings, enum finding_kind kind);

// Returns a part as 0 to 1: figures of a damaged recording contradict one another.
double finding_part(uint64_t part, uint64_t whole);

// Notes what a fix saves, and ranks the finding by it. Calls are half as dear as memory: what is
// short of memory stops, what makes calls is slower.
void finding_saves_bytes(struct finding *finding, uint64_t bytes, uint64_t of_bytes);
void finding_saves_calls(struct finding *finding, uint64_t calls, const struct profile *profile);

// Of two findings about the same, what says how is first: by so much its gain is raised.
static const double finding_specific = 0.1;

// Adds a stack with its part; those with least are a sum.
void finding_note_stack(struct finding_stacks *stacks, const struct stack *stack, uint64_t part);

// Growth by call site, for findings_settle: the finding of a stack of the list, another stack of
// the same call site, and whether it is worth a line.
struct finding finding_of_growth(const struct finding_growth *growth, size_t index);
void finding_add_growth(struct finding *finding, const struct growth_stack *how);
bool finding_growth_is_much(struct finding *finding, const struct profile *profile);

// Of equal strings; `whose` (NULL: said otherwise) outlives the finding. False: not worth a line.
struct string_copies {
    uint64_t bytes, count, strings;  // copies beside the first ones, and of how many
    const char *whose;
    bool is_estimate;  // from a part; the counts are of that
};
bool finding_of_strings(const struct string_copies *copies, uint64_t heap_bytes,
                        struct finding *finding);

#endif
