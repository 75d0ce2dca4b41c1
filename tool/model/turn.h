// SPDX-License-Identifier: Apache-2.0
// Entries turned on their side, as the packed form stores them (format/packed.h): the first byte of
// every entry, then the second of every entry, and so on. Each is the other way round of the other.
#ifndef TOOL_MODEL_TURN_H
#define TOOL_MODEL_TURN_H

#include <stddef.h>
#include <stdint.h>

// `count` entries; `entries` and `columns` do not overlap.
void turn_to_columns(const uint8_t *entries, size_t count, size_t entry_bytes, uint8_t *columns);
void turn_to_entries(const uint8_t *columns, size_t count, size_t entry_bytes, uint8_t *entries);

#endif
