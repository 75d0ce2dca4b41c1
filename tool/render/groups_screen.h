// SPDX-License-Identifier: Apache-2.0
// Groups of stacks, or threads, as rows: what each holds itself and with all it calls.
#ifndef TOOL_RENDER_GROUPS_SCREEN_H
#define TOOL_RENDER_GROUPS_SCREEN_H

#include "tool/answer/answer.h"
#include "tool/answer/claims.h"
#include "tool/render/groups.h"

// False without memory.
bool groups_answer(struct answer *answer, const struct grouping *grouping,
                   const struct profile *profile, const struct frame_names *names,
                   const struct view_options *view, struct error *error);

// What a thread has of a measure; calls for any that is not known by thread.
int64_t thread_value(const struct profile_thread *thread, enum measure by);

// That threads share an account. False: none do.
bool claim_of_accounts(struct claim *claim, const struct profile *profile);

// Threads with what they allocated, ranked by the measure, most first; `is_grouped`: those of one
// name added up. False without memory.
bool threads_answer(struct answer *answer, const struct profile *profile,
                    const struct view_options *view, bool is_grouped, struct error *error);

#endif
