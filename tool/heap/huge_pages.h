// SPDX-License-Identifier: Apache-2.0
// Finds the transparent huge pages of a process, and what of each was never written. That is not
// resident where there are none, and no more than that is saved: a page of the usual size with a
// byte other than zero was written, and is there in any case.
//
// The kernel tells how much of a mapping lies on huge pages, not where. They are among the units
// that are resident from end to end; where those are more, the ones that save most are taken.
#ifndef TOOL_HEAP_HUGE_PAGES_H
#define TOOL_HEAP_HUGE_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/base/array.h"

#define HUGE_UNIT_BYTES (UINT64_C(2) << 20)

struct huge_unit {
    uint64_t start;
    uint64_t zero_bytes;  // of pages of the usual size that hold zeros alone
};

struct huge_pages {
    ARRAY(struct huge_unit) units;  // by address
    uint64_t unseen_bytes;          // of such pages that are in none of the units
    uint64_t bytes_left;            // to be read; what lies beyond counts as never written
};

// Reads them of a process that may go on: zero it before. `is_recorded`: those of cairn's own map
// of blocks are left out. False without memory, or if the process is gone or may not be read.
bool huge_pages_find(pid_t pid, bool is_recorded, struct huge_pages *pages);
void huge_pages_free(struct huge_pages *pages);

uint64_t huge_pages_bytes(const struct huge_pages *pages);
// The most of them that was never written.
uint64_t huge_pages_zero_bytes(const struct huge_pages *pages);

// The unit that the address lies in; NULL: in none.
const struct huge_unit *huge_pages_unit(const struct huge_pages *pages, uint64_t address);

#endif
