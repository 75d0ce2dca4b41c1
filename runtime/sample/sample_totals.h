// SPDX-License-Identifier: Apache-2.0
// What samples add to the cells: counts beyond one a sample, and variances. One entry a cell,
// beside it, made when the cell gets its first sample. A cell's entry has the cell's one writer;
// only that of CAIRN_CELL_OTHER has several (`is_shared`).
#ifndef RUNTIME_SAMPLE_SAMPLE_TOTALS_H
#define RUNTIME_SAMPLE_SAMPLE_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/sample.h"
#include "runtime/sample/weight.h"
#include "runtime/sys/region.h"

// The section SAMPLE_CELLS of a new recording.
void ledger_open(struct region region);

// Gives back the address space beyond what is in use and `headroom_bytes` more.
void ledger_shrink(uint64_t headroom_bytes);

// Makes sure that the cell has an entry. False without memory.
bool ledger_claim(uint32_t cell);

// A sample of `size` bytes allocated, or one freed. A sample whose weight changes is freed with
// what it loses. Sizes are kept of cells with one writer.
void ledger_alloc(uint32_t cell, uint64_t size, const struct weight *weight, bool is_shared);
void ledger_free(uint32_t cell, const struct weight *weight, bool is_shared);

// Keeps what the cell holds as its value at the peak.
void ledger_save_peak(uint32_t cell);

#endif
