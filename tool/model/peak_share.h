// SPDX-License-Identifier: Apache-2.0
// Shares out by stack how far a sampled peak is above the heap's level (sampled_peak.h): blocks
// that had replaced others before have the noise that made this sum the highest.
#ifndef TOOL_MODEL_PEAK_SHARE_H
#define TOOL_MODEL_PEAK_SHARE_H

#include "tool/model/profile.h"

// Shares it out among the stacks, and keeps that in the profile. False without memory.
bool peak_share_make(struct profile *profile);

// Takes the part of a cell off what that held at the peak; none before the parts are known.
void peak_share_take(const struct profile *profile, size_t id, struct cell_values *values);

// Returns true if the heap holds more now than at the highest total that was noted. That counter
// moves when the heap shrinks; and with several threads it may be ahead of what cells saved by as
// much as the peak may err: then the peak is now, too, so that it is never below what is live.
bool peak_is_at_end(const struct recording *recording, int64_t exit_bytes);

#endif
