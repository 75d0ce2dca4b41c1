// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_SINK_LAYOUT_H
#define RUNTIME_SINK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "runtime/sink/sink.h"

// Fills the section table for a recording of at most `space_bytes`; the bytes it needs, or 0 if
// that is too little.
uint64_t layout_make(struct cairn_header *header, uint64_t space_bytes, struct sink_rooms rooms);

#endif
