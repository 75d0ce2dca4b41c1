// SPDX-License-Identifier: Apache-2.0
// Subjects opened: one recording as it is, several of them and the processes of a run added up
// (tool/model/merge.h). One after the other is opened, narrowed, added and closed, so that memory
// grows with the distinct stacks and not with the number of recordings.
//
// A recording that brings names of its own (imported, kept by cairn run) has them looked up before
// it is added; code that only its names tell apart is the same if they are.
//
// What is opened (struct opened) has the recording's bytes, the profile made of them, and names for
// its code; the profile of several is their sum.
#ifndef TOOL_QUERY_MERGED_H
#define TOOL_QUERY_MERGED_H

#include "tool/model/merge.h"
#include "tool/model/profile.h"
#include "tool/model/reader.h"
#include "tool/model/strings.h"
#include "tool/query/names.h"
#include "tool/query/subject.h"

struct opened {
    struct recording recording;  // of a sum: facts, no sections
    struct profile profile;
    struct names *names;
    struct merge *merge;    // NULL: one recording
    struct strings *texts;  // of a sum: names that its recordings brought
    size_t bad_files;       // of a run or list, that could not be read
    size_t left_out;        // those of a list among them
    char at_text[768];  // which snapshots the values "at" are of (query/snapshot_options.h); "": no
                        // moment was asked for
    size_t process_count;          // that were added up; 1 for one recording
    char path[PATH_MAX];           // of a sum ""
    char log[PATH_MAX];            // the event log; "": none was named or found (query/log_views.h)
    struct pool_candidates pools;  // of a view that asks for them
};

bool opened_open(const char *path, struct opened *opened, struct error *error);

// A recording that is not in a file yet; `bytes` must outlive what is opened. `settle` completes
// the header. `is_for_names`: its code alone is asked for, none of its figures.
bool opened_open_memory(const void *bytes, size_t size, bool is_for_names,
                        void (*settle)(void *context, struct cairn_header *header), void *context,
                        struct opened *opened, struct error *error);
// The same recording was written to a file meanwhile: that is what is open from then on.
bool opened_moved(struct opened *opened, const char *path, struct error *error);
void opened_close(struct opened *opened);

// The process of a recording without an end still runs.
bool opened_is_alive(const struct opened *opened);

struct opening {
    char **words;         // subjects
    int count;            // 0: the newest recording here
    const char *process;  // of a run, this one alone; NULL: all
    // What is taken away from each recording before it is added; NULL: nothing.
    bool (*narrow)(const void *context, struct profile *profile, struct error *error);
    const void *context;
    // Code is the same if its names are, whatever build it is of and wherever its module lies;
    // lines of a function are told apart only with `has_lines`.
    bool is_by_names, has_lines;
};

// Adds up all of it; false with an error.
bool merged_open(const struct opening *opening, struct opened *opened, struct error *error);

// Finds the first subject, enters the process if one is chosen, and opens what is meant.
bool opening_open(const struct opening *opening, struct opened *opened, struct error *error);

#endif
