// SPDX-License-Identifier: Apache-2.0
// A directory of recordings as one run: what its index says (run_row.h), corrected and completed by
// the files that are there. Children that outlive the run's tool leave a file without a row; a
// process without a file is in the index alone. A directory without an index is read as well.
#ifndef TOOL_MODEL_RUN_H
#define TOOL_MODEL_RUN_H

#include <limits.h>

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/model/run_row.h"

#define RUN_ROWS_MAX (1u << 18)  // more than any machine runs at a time; the rest is not shown

struct run {
    char directory[PATH_MAX];
    ARRAY(struct run_row) rows;  // by peak, the highest first
    size_t first;                // row of the program that was started: its last image
    size_t root_count;           // processes whose parent is none of the others
    uint64_t bad_lines;          // of the index: not of its form, or too many
    uint64_t bad_files;          // recordings that cannot be read
    uint64_t lost_files;         // that could not be written, as the index says
    bool has_index;
    size_t inner_count;        // runs of their own in it, which are not read
    char inner[RUN_TEXT_MAX];  // the last of them by name
};

// Sums over all processes.
struct run_sums {
    uint64_t allocations, allocated_bytes, lost, bytes_of_files;
    int64_t exit_blocks, exit_bytes;
    struct estimate exit_estimate;
    size_t small_count, file_count;
    uint64_t small_peak_bytes;  // highest of the small ones
};

// False if the directory cannot be read, or without memory.
bool run_open(const char *directory, struct run *run, struct error *error);
void run_close(struct run *run);

struct run_sums run_sum(const struct run *run);

// Index of the process that `word` names: a pid, a program's name or a recording's file name. False
// with an error that lists what there is, if it names none or several.
bool run_find(const struct run *run, const char *word, size_t *index, struct error *error);

// The directory has an index.
bool run_has_index(const char *directory);

#endif
