// SPDX-License-Identifier: Apache-2.0
// The sorted table of an executable's unwind information (.eh_frame_hdr), which compilers leave out
// of static programs. Made of the file, which is not trusted: what is malformed ends the table, and
// the walker checks each entry again that it is led to.
#ifndef TOOL_ATTACH_UNWIND_INDEX_H
#define TOOL_ATTACH_UNWIND_INDEX_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "tool/base/array.h"

// Virtual addresses in the file: of a function, and of the entry that describes it.
struct unwind_row {
    uint64_t start, end, entry;
    bool is_made;  // `entry` is an offset in what was made
};

struct unwind_index {
    ARRAY(struct unwind_row) rows;
    uint64_t frames;      // of .eh_frame
    ARRAY(uint8_t) made;  // entries of functions that have none
};

// Lists the entries of a file. False without memory; a file without any has none.
bool unwind_index_read(struct unwind_index *index, Elf *elf);

// Sorts the rows, after some were added (unwind_made.h).
void unwind_index_sort(struct unwind_index *index);

// Place in an entry that was made where the function's beginning is written, once it is known where
// both lie.
enum { UNWIND_MADE_START_AT = 8 };
void unwind_index_free(struct unwind_index *index);

// Bytes of the table, and the table as it lies at the virtual address `at`.
uint64_t unwind_index_bytes(const struct unwind_index *index);
void unwind_index_write(const struct unwind_index *index, uint64_t at, uint8_t *bytes);

#endif
