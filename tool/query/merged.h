// SPDX-License-Identifier: Apache-2.0
// Subjects opened: one recording as it is, several of them and the processes of a run added up
// (tool/model/merge.h). One after the other is opened, narrowed, added and closed, so that memory
// grows with the distinct stacks and not with the number of recordings.
//
// A recording that brings names of its own (imported, kept by cairn run) has them
// looked up before it is added; code that only its names tell apart is the same if they are.
#ifndef TOOL_QUERY_MERGED_H
#define TOOL_QUERY_MERGED_H

#include "tool/query/opened.h"
#include "tool/query/subject.h"

struct opening {
    char **words;         // subjects
    int count;            // 0: the newest recording here
    const char *process;  // of a run, this one alone; NULL: all
    // What is taken away from each recording before it is added; NULL: nothing.
    bool (*narrow)(const void *context, struct profile *profile, struct error *error);
    const void *context;
};

// Several subjects were given, or a run of which no process is chosen.
bool opening_is_sum(const struct opening *opening, const struct subject *first);

// Adds up all of it; false with an error.
bool merged_open(const struct opening *opening, struct opened *opened, struct error *error);

// Finds the first subject, enters the process if one is chosen, and opens what is meant.
bool opening_open(const struct opening *opening, struct opened *opened, struct error *error);

#endif
