// SPDX-License-Identifier: Apache-2.0
// Many recordings by few words: each recording of a process that the words of a command line mean,
// and the labels that tell them apart.
//
// A word is a subject (subject.h); a run and a directory of recordings or runs is each recording in
// it; @FILE is a list (@-: standard input) with a subject a line, and behind it, after tabs, labels
// of its recordings: `name.cairn<TAB>host=a<TAB>version=1.2`.
#ifndef TOOL_QUERY_RECORDINGS_H
#define TOOL_QUERY_RECORDINGS_H

#include "tool/base/array.h"
#include "tool/base/error.h"
#include "tool/export/export.h"

struct recording_label {
    char *key, *value;
};

struct listed_recording {
    char *path;
    bool is_of_run;   // or of a directory: if it cannot be read, the others are all the same
    bool is_of_list;  // if it cannot be read, that is told (recordings_leave_out)
    size_t first_label, label_count;  // of its line of a list
};

struct recordings {
    ARRAY(struct listed_recording) list;
    ARRAY(struct recording_label) labels;
    size_t common_count;       // of the labels: those that all recordings have, the first ones
    size_t bad_files;          // of runs, that cannot be read and are not in the list
    size_t left_out;           // of lists, that cannot be read: each was named
    const char *process;       // of each run this one alone; NULL: all
    ARRAY(const char *) keys;  // of all labels, each once; and the values of one recording
    ARRAY(const char *) values;
};

// The word means a list.
bool recordings_is_list(const char *word);

// A label of all recordings, KEY=VALUE; before any is found.
bool recordings_add_label(struct recordings *recordings, const char *text, struct error *error);
// Adds what the words mean; without words, the newest recording here.
bool recordings_find_all(struct recordings *recordings, char *const *words, int count,
                         struct error *error);
void recordings_free(struct recordings *recordings);

// Says on stderr which part of a list is left out, and why. The others are read all the same, and
// the command ends with STATUS_FAILURE.
void recordings_leave_out(struct recordings *recordings, const struct error *why);

// All keys there are; values as recordings_label sets them. False without memory.
bool recordings_labels(struct recordings *recordings, struct export_labels *labels);
// Makes the labels' values those of one recording; where a key was given twice, the later one.
void recordings_label(struct recordings *recordings, size_t index);

#endif
