// SPDX-License-Identifier: Apache-2.0
// Finds the claims of a recording: findings, growth, and the statements of its summary.
#ifndef TOOL_RENDER_CLAIMS_FIND_H
#define TOOL_RENDER_CLAIMS_FIND_H

#include "tool/answer/claims.h"
#include "tool/render/findings.h"

// That no stack grows, or that it is not known. False: some do, which is a finding if it is much.
bool claim_of_growth(struct claim *claim, const struct finding_growth *growth);

// The sentences that a summary begins with: why it is so big. None of a part
// of the stacks, of mappings, of owners, or of several processes. False without memory.
enum { FIRST_CLAIMS = 2 };
bool claims_first(struct claim claims[FIRST_CLAIMS], size_t *count, const struct profile *profile,
                  const struct frame_names *names);

// Member "claims": a list, or null where there are none of a part of a process or of a sum
// (`findings` NULL). False without memory.
bool claims_put_json(struct json *json, const struct findings *findings,
                     const struct profile *profile, const struct frame_names *names);

#endif
