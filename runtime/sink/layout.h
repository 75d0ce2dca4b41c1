// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_SINK_LAYOUT_H
#define RUNTIME_SINK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"

// Fills the section table for a recording of at most `space_bytes`; the bytes it needs, or 0 if
// that is too little. Room for Python code if header->has_python_frames, for
// samples if it is asked for.
uint64_t layout_make(struct cairn_header *header, uint64_t space_bytes, bool has_samples);

#endif
