// SPDX-License-Identifier: Apache-2.0
// What a command looks at, opened: its bytes, the profile made of them, and names for its code. One
// recording, or several that were added up (cmds/merged.h).
#ifndef TOOL_QUERY_OPENED_H
#define TOOL_QUERY_OPENED_H

#include "tool/model/merge.h"
#include "tool/model/profile.h"
#include "tool/model/reader.h"
#include "tool/model/strings.h"
#include "tool/query/names.h"

struct opened {
    struct recording recording;  // of a sum: facts, no sections
    struct profile profile;
    struct names *names;
    struct merge *merge;    // NULL: one recording
    struct strings *texts;  // of a sum: names that its recordings brought
    size_t bad_files;       // of a run, that could not be read
    char at_text[768];  // which snapshots the values "at" are of (query/snapshot_options.h); "": no
                        // moment was asked for
    size_t process_count;  // that were added up; 1 for one recording
};

bool opened_open(const char *path, struct opened *opened, struct error *error);
void opened_close(struct opened *opened);

// The process of a recording without an end still runs.
bool opened_is_alive(const struct opened *opened);

#endif
