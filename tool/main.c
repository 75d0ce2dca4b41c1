// SPDX-License-Identifier: Apache-2.0
// Finds the command in the table, runs it, and makes sure that what it printed has arrived.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/cmds/commands.h"

int main(int argc, char **argv) {
    int status = commands_run(argc, argv);
    bool is_written = !fflush(stdout) && !ferror(stdout);
    if (is_written || status != STATUS_OK || errno == EPIPE) return status;
    struct error error;
    error_set(&error, "cannot write the output: %s", strerror(errno));
    return command_fail(STATUS_FAILURE, &error);
}
