// SPDX-License-Identifier: Apache-2.0
// The directory into which the recordings of one run go. One run is one path: while it lasts a
// directory, so that every process finds a place there even if the tool dies or a child outlives
// it; at the end the only recording takes the directory's place, or an index joins several.
//
// The index gets a line as each process ends, in one write. It begins with the second process, or
// with the first whose recording cannot be written: on a full disk it grows into room that was kept
// free for it.
#ifndef TOOL_WATCH_RUN_DIRECTORY_H
#define TOOL_WATCH_RUN_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"
#include "tool/model/run_row.h"
#include "tool/watch/memory.h"

// Small processes beyond this many are in the index only: `make` runs thousands.
#define RUN_DIRECTORY_SMALL_MAX 64u

#define RUN_LOST_TEXT 512u

struct run_directory {
    char path[PATH_MAX];   // absolute
    bool is_made;          // the directory is there, or in the end the file
    char taken[NAME_MAX];  // what was asked for, if something has that name; "": nothing had
    uint64_t row_count;
    uint64_t small_count;               // files of small processes
    char only[NAME_MAX];                // name of the first file that was written
    char first_line[2 * RUN_LINE_MAX];  // heading and first row, while there is no index
    size_t first_line_bytes;
    int index;    // descriptor, -1: no index yet
    int reserve;  // of an unnamed file in the directory that takes room for the index; -1: none
    uint64_t lost_count;             // recordings that could not be written
    char lost_names[RUN_LOST_TEXT];  // of their processes: "make 12, cc1 14", as far as they fit
    bool has_unnamed;                // that did not fit
    char lost_because[RUN_PROBLEM_MAX];  // of the last of them
};

// Chooses the path: `output` as the user gave it (NULL: NAME.PID.cairn here; an existing directory:
// in there; with a slash at the end it has to exist), with a number before the suffix if something
// is there. Nothing is created; fails if the directory cannot be written.
bool run_directory_choose(struct run_directory *directory, const char *output, const char *name,
                          int pid, struct error *error);

// Makes the directory, under the next free name if the path was taken meanwhile.
bool run_directory_make(struct run_directory *directory, struct error *error);

// The path of a file of the run; is_taken: something has that name.
void run_directory_path_of(const struct run_directory *directory, const char *file_name, char *path,
                           size_t size);
bool run_directory_is_taken(const struct run_directory *directory, const char *file_name);

// A file that a checkpoint left stays if the recording cannot be written.
bool run_directory_save(struct run_directory *directory, const struct memory *memory,
                        const struct memory_end *end, const char *file_name, struct error *error);
// Notes in its row that the recording of a process could not be written, which is what
// run_directory_save has failed at last; the row has to be added then.
void run_directory_note_lost(struct run_directory *directory, struct run_row *row);
bool run_directory_add_row(struct run_directory *directory, const struct run_row *row,
                           struct error *error);

// The run is over: a single recording takes the directory's place unless `is_shared`: others may
// still write there. A directory without anything goes.
bool run_directory_finish(struct run_directory *directory, bool is_shared, struct error *error);

// Packs recordings that processes wrote themselves, since they could not reach the tool (in a
// network namespace of their own, for one), if no process writes to them any more, and adds them to
// the run's index. A killed process leaves its memory as it was, a file of 6 GB with holes. Before
// run_directory_finish.
bool run_directory_take_leftovers(struct run_directory *directory, struct error *error);

#endif
