// SPDX-License-Identifier: Apache-2.0
// Claims of the summary: the peak, what is left, how exact a recording is; and why a process that
// is not recorded is so big.
#ifndef TOOL_RENDER_CLAIMS_SUMMARY_H
#define TOOL_RENDER_CLAIMS_SUMMARY_H

#include "tool/answer/claims.h"
#include "tool/model/profile.h"

// Fills in whether each call was counted, where the row has that.
void claim_set_sure(struct claim *claim, const struct profile *profile);

// Of a profile that has frees; the first word of the second is claim_left_word.
void claim_of_peak(struct claim *claim, const struct profile *profile, bool is_plain);
void claim_of_left(struct claim *claim, const struct profile *profile, bool is_plain);

// "at exit", "at detach", "live now" or "kept".
const char *claim_left_word(const struct profile *profile);

// One of CLAIM_EXACT, CLAIM_EXACT_CALLS and CLAIM_NOT_EXACT.
void claim_of_exactness(struct claim *claim, const struct profile *profile);

// False: recording every allocation took little memory beside the program, or not for its stacks.
bool claim_of_cost(struct claim *claim, const struct profile *profile);

// Percent of resident memory from which on a part is told first.
enum { NOW_FREE_SHARE = 20, NOW_WASTE_SHARE = 20, NOW_LARGEST_SHARE = 40, NOW_MOST_SHARE = 50 };

// Resident memory of a process that is not recorded, by parts.
struct claim_now {
    const char *allocator;                       // whose heap it is
    uint64_t all_bytes, used_bytes, free_bytes;  // in use in that heap, and free there
    uint64_t wasted_bytes;                       // of that in use; 0 if it is not known
    uint64_t leaked_bytes;  // of that in use what no root leads to; 0: not known
    uint64_t block_bytes;   // of the largest block in use
    bool knows_waste;
    uint64_t largest_bytes;
    const char *largest;
    bool is_core;  // which pages were touched is not known
    bool is_largest_used;
    bool is_recordable;  // as far as is known: cairn run does not refuse the program
};

// Why it is so big. Each sentence is of figures that were read; of none of them more is said than
// the figure.
void claim_of_now(struct claim *claim, const struct claim_now *now);

#endif
