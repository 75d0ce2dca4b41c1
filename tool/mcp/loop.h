// SPDX-License-Identifier: Apache-2.0
// The server on its two streams, until the client closes one of them.
//
// Bounded whatever the client does: one line at a time is kept, up to 1 MiB; answers that the
// client does not read stop the reading of further messages; so many questions run and wait.
#ifndef TOOL_MCP_LOOP_H
#define TOOL_MCP_LOOP_H

#include "tool/mcp/jobs.h"

struct loop_options {
    struct roots roots;
    bool can_run;
    jobs_command *run;
    char *(*make_page)(void);  // as in struct server
    int in, out;
};

// False with an error if it could not begin or the streams failed.
bool loop_run(const struct loop_options *options, struct error *error);

#endif
