// SPDX-License-Identifier: Apache-2.0
// Estimates in words: how wide their 95 % intervals are, and on how many samples they stand.
//
//     sentences   20.7 MiB ± 1.2 MiB in 812 ± 90 blocks (62 samples), or (3 samples, unreliable);
//                 2.0 MiB (up to 3.8 MiB) in 1 (up to 60,078) blocks (1 certain)
//     columns     ± 6 %, 62 samples      3 samples, unreliable      exact      no sample
//                 + 92 %, 1 certain
//     narrow ones ± 6 %, 62              3, unreliable              exact      none
//                 + 92 %, certain
#ifndef TOOL_RENDER_INTERVAL_H
#define TOOL_RENDER_INTERVAL_H

#include "tool/base/units.h"
#include "tool/model/measure.h"
#include "tool/render/terminal.h"

// " ± 1.2 MiB", " ± 340" for blocks and calls; "" if the number is exact.
struct unit_text interval_text(struct measured measured, bool is_bytes, bool is_plain_number);
// The same of an amount, which is neither below zero nor below what is certain: " (0 to 104,341)"
// where the interval would be, " (up to 3.8 MiB)" where all that was seen is.
struct unit_text interval_amount(struct measured measured, bool is_bytes, bool is_plain_number);
// What ends the sentence: " (62 samples, 4 certain)", " (3 samples, unreliable)"; "" if the number
// is exact, and if there was no sample.
struct unit_text interval_samples(struct measured measured);

// "± 6 %, 62 samples"; "3 samples, unreliable"; "exact" where nothing of it is an estimate.
struct unit_text interval_note(struct measured measured);
// Columns that the longest of them takes, with two more in front.
#define INTERVAL_NOTE_COLUMNS 22
#define INTERVAL_NARROW_COLUMNS 15
// What stands above a column of narrow ones.
#define INTERVAL_NARROW_HEADING "\xc2\xb1, samples"
// A note as a column, at the left of it, with two blanks in front; red if it is unreliable.
void interval_print(const struct terminal *terminal, struct measured measured, bool is_narrow);

// "peak heap ± 1.2 MiB (62 samples)", as a part of a line below figures.
void interval_add_part(struct parts *parts, const char *name, struct measured measured,
                       bool is_bytes, bool is_plain_number);

// "sampled, 1 in 512 KiB", or from the lowest to the highest rate it had.
struct unit_text interval_rate(const struct cairn_sampling *sampling);

#endif
