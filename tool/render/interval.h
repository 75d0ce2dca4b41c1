// SPDX-License-Identifier: Apache-2.0
// Estimates in words: how wide their 95 % intervals are, and on how many samples they stand. Empty
// for numbers of a recording without samples.
#ifndef TOOL_RENDER_INTERVAL_H
#define TOOL_RENDER_INTERVAL_H

#include "tool/base/units.h"
#include "tool/model/measure.h"

// " ± 1.2 MiB", " ± 340" for blocks and calls; "" if the number is exact.
struct unit_text interval_text(struct measured measured, bool is_bytes, bool is_plain_number);

// "± 6 %, 62 samples"; "3 samples, unreliable"; "exact" where nothing of it is an estimate.
struct unit_text interval_note(struct measured measured);
// Columns that the longest of them takes.
#define INTERVAL_NOTE_COLUMNS 22

// "sampled, 1 in 512 KiB", or from the lowest to the highest rate it had.
struct unit_text interval_rate(const struct cairn_sampling *sampling);

#endif
