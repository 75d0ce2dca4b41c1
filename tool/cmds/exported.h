// SPDX-License-Identifier: Apache-2.0
// What commands that hand a recording to another format have to put together: every name, and the
// texts about program and trust.
#ifndef TOOL_CMDS_EXPORTED_H
#define TOOL_CMDS_EXPORTED_H

#include "tool/cmds/opened.h"
#include "tool/export/export.h"
#include "tool/model/merge.h"
#include "tool/render/report_json.h"

#define EXPORTED_NAME_BYTES 256

struct exported {
    struct export export;  // points into the rest and into what was opened
    struct frame_names names;
    char program[EXPORTED_NAME_BYTES];
    char command[REPORT_COMMAND_BYTES];
    char *trust;
};

// The recordings of several subjects, and of the processes of runs, added up (tool/model/merge.h).
struct merged {
    struct merge merge;
    struct names *names;
};
bool merged_open(char **words, int count, struct merged *merged, struct error *error);
void merged_close(struct merged *merged);

// The same for what was added up.
bool exported_prepare_merged(struct merged *merged, struct exported *exported, struct error *error);

// Resolves all names. `exported` must not be moved afterwards; the measure is the caller's to set.
bool exported_prepare(struct opened *opened, struct exported *exported, struct error *error);
void exported_free(struct exported *exported);

#endif
