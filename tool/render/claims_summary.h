// SPDX-License-Identifier: Apache-2.0
// Claims of the summary: the peak, what is left, and how exact a recording is.
#ifndef TOOL_RENDER_CLAIMS_SUMMARY_H
#define TOOL_RENDER_CLAIMS_SUMMARY_H

#include "tool/model/profile.h"
#include "tool/render/claims.h"

// Fills in whether each call was counted, where the row has that.
void claim_set_sure(struct claim *claim, const struct profile *profile);

// Of a profile that has frees; the first word of the second is claim_left_word.
void claim_of_peak(struct claim *claim, const struct profile *profile, bool is_plain);
void claim_of_left(struct claim *claim, const struct profile *profile, bool is_plain);

// "at exit", "at detach", "live now" or "kept".
const char *claim_left_word(const struct profile *profile);

// One of CLAIM_EXACT, CLAIM_EXACT_CALLS and CLAIM_NOT_EXACT.
void claim_of_exactness(struct claim *claim, const struct profile *profile);

#endif
