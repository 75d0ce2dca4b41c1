// SPDX-License-Identifier: Apache-2.0
// A table beside the heap: an entry for each granule of address space, zeroed, in memory that
// exists as far as somebody asked for an entry there.
//
//   address ──bits 36-46──▶ top ──bits 22-35──▶ leaf: the entries of 4 MiB
//
// Leaves are never given back. Any thread may ask, signal handlers included. Private memory: a
// forked child has its own copy.
#ifndef RUNTIME_SYS_SHADOW_TABLE_H
#define RUNTIME_SYS_SHADOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/live_map.h"

struct shadow_table {
    unsigned granule_shift;       // log2 of the granule
    size_t entry_bytes;           // a power of two
    void **tops[LIVE_TOP_COUNT];  // (atomic) each LIVE_MID_COUNT leaves
};

// The entry of an address; NULL: there is none yet, or, if `is_made`, no memory for it.
void *shadow_table_at(struct shadow_table *table, uintptr_t address, bool is_made);

// Calls `visit` for the entries of each leaf in turn; `start` is the first one's address.
typedef void shadow_table_visit(void *context, void *entries, size_t count, uintptr_t start);
void shadow_table_each(const struct shadow_table *table, shadow_table_visit *visit, void *context);

#endif
