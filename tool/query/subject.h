// SPDX-License-Identifier: Apache-2.0
// What a command is about: the recording or run that was named, the process with the pid that was
// named while it is being recorded, the recording in a core dump, or, with nothing named, the
// newest *.cairn of the current directory.
#ifndef TOOL_QUERY_SUBJECT_H
#define TOOL_QUERY_SUBJECT_H

#include <limits.h>
#include <stdbool.h>

#include "tool/base/error.h"
#include "tool/model/run.h"

struct subject {
    char path[PATH_MAX];  // of the recording, or of a run's directory
    char name[PATH_MAX];  // how a user would write it: the path, a pid, a core
    char log[PATH_MAX];   // of the event log that was named, which is the recording's; "": none was
    bool is_run;          // several processes: see tool/model/run.h
};

// `word` may be NULL. A directory without an index and with one recording is that recording.
bool subject_find(const char *word, struct subject *subject, struct error *error);

// Cuts "SUBJECT@SNAPSHOT" in two, unless that is a file's name: the snapshot; NULL if none is
// named.
const char *subject_cut_snapshot(char *word);

// Goes from a run into the process that `word` names; the subject is its recording then. Of a
// single recording, `word` has to name it.
bool subject_enter(struct subject *subject, const char *word, struct error *error);

#endif
