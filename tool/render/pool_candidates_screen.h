// SPDX-License-Identifier: Apache-2.0
// Where pools would take the place of malloc and free, as rows.
#ifndef TOOL_RENDER_POOL_CANDIDATES_SCREEN_H
#define TOOL_RENDER_POOL_CANDIDATES_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/base/error.h"
#include "tool/model/pool_candidates.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

// A row for each candidate of the profile, which must be known, with its stacks below it. False
// with an error.
bool pool_candidates_answer(struct answer *answer, const struct profile *profile,
                            const struct frame_names *names, const struct view_options *view,
                            struct error *error);

// What a pool of that kind is: "a slab of blocks of 48 B"; what its blocks are like that it would
// do; and what it takes from malloc instead. Short sentences without an end.
#define POOL_TEXT_BYTES 256
void pool_candidate_name(const struct pool_candidate *candidate, bool is_plain_number, char *out);
void pool_candidate_reason(const struct pool_candidate *candidate, char *out);
void pool_candidate_gain(const struct pool_candidate *candidate, bool is_plain_number, char *out);

#endif
