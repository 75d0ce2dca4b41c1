// SPDX-License-Identifier: Apache-2.0
// What can be claimed of a recording: findings, growth, and the statements of its summary.
#ifndef TOOL_RENDER_CLAIMS_FIND_H
#define TOOL_RENDER_CLAIMS_FIND_H

#include "tool/render/claims.h"
#include "tool/render/findings.h"

// Claims of the summary, of a profile that has them.
void claim_of_peak(struct claim *claim, const struct profile *profile, bool is_plain);
void claim_of_left(struct claim *claim, const struct profile *profile, bool is_plain);
// "at exit", "at detach", "live now" or "kept".
const char *claim_left_word(const struct profile *profile);
// Whether each call was counted, where the row has that.
void claim_set_sure(struct claim *claim, const struct profile *profile);
void claim_of_exactness(struct claim *claim, const struct profile *profile);

// That no stack grows, or that it is not known. False: some do, which is a finding if it is much.
bool claim_of_growth(struct claim *claim, const struct finding_growth *growth);

// Member "claims": a list, or null where there are none of a part of a process or of a sum
// (`findings` NULL). False without memory.
bool claims_put_json(struct json *json, const struct findings *findings,
                     const struct profile *profile, const struct frame_names *names);

#endif
