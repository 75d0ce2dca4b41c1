// SPDX-License-Identifier: Apache-2.0
// A recording opened for a command: its bytes, the profile made of them, and names for its code.
#ifndef TOOL_CMDS_OPENED_H
#define TOOL_CMDS_OPENED_H

#include "tool/cmds/names.h"
#include "tool/model/profile.h"
#include "tool/model/reader.h"

struct opened {
    struct recording recording;
    struct profile profile;
    struct names *names;
};

bool opened_open(const char *path, struct opened *opened, struct error *error);
void opened_close(struct opened *opened);

// The process of a recording without an end still runs.
bool opened_is_alive(const struct opened *opened);

#endif
