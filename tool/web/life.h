// SPDX-License-Identifier: Apache-2.0
// The live heap of a process as a few numbers, for the small line of its row.
#ifndef TOOL_WEB_LIFE_H
#define TOOL_WEB_LIFE_H

#include "tool/model/reader.h"

#define LIFE_STEPS 48

// The highest of each of LIFE_STEPS equal stretches from the start of the process to its end, or
// to the last that is known of it. False if the recording has no time at all.
bool life_read(const struct recording *recording, uint64_t live[LIFE_STEPS]);

#endif
