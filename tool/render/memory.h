// SPDX-License-Identifier: Apache-2.0
// The memory picture: what resident memory consisted of, in parts that add up to it.
#ifndef TOOL_RENDER_MEMORY_H
#define TOOL_RENDER_MEMORY_H

#include "tool/answer/answer.h"
#include "tool/answer/claims.h"
#include "tool/base/json.h"
#include "tool/model/figures.h"
#include "tool/model/profile.h"
#include "tool/render/terminal.h"

// A row for each part of both. False without memory.
bool memory_answer(struct answer *answer, const struct profile *profile,
                   const struct view_options *view, struct error *error);

// For rows: a part in words, safe to print; false: it is in another one, not told apart; why there
// is no picture.
void memory_part_text(const struct picture *picture, enum picture_part part,
                      const struct view_options *view, char *out, size_t size);
bool memory_part_is_known(const struct picture *picture, enum picture_part part);
const char *memory_reason_of_none(struct recording *recording);

// The resident memory that belongs to the heap.
uint64_t picture_heap_bytes(const struct picture *picture);
// A row for each moment at which somebody looked: what a recording has of the views heap and pages.
bool memory_totals_answer(struct answer *answer, const struct profile *profile,
                          const struct view_options *view, bool are_pages, struct error *error);

// Lines of the summary: "resident  27.1 MiB = 19.5 MiB live + …". Nothing without a picture, or if
// that is of a time at which far less was resident than at the peak.
void memory_print_line(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view);

// The claims that these make; of the heap at CAIRN_PICTURE_AT_PEAK or CAIRN_PICTURE_LAST. False:
// there is none.
bool claim_of_resident(struct claim *claim, const struct profile *profile, bool is_plain);
// Most of what was resident is no live heap, and enough to be asked for.
bool claim_of_not_heap(struct claim *claim, const struct profile *profile);
bool claim_of_heap(struct claim *claim, const struct profile *profile, size_t index);

// Members "at_peak", "last" (null without a picture) and "points" of the object "rss".
void memory_json_put(struct json *json, const struct recording *recording);

#endif
