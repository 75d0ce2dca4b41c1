// SPDX-License-Identifier: Apache-2.0
// What `cairn run` and `cairn attach` do when the recording is complete.
#ifndef TOOL_CMDS_FINISH_H
#define TOOL_CMDS_FINISH_H

#include "tool/cmds/report_run.h"

// Opens a recording or run that was just made, keeps names in it, and prints its summary, starting
// with "cairn: NAME ended ...", unless `out` is NULL. The names are looked up once for both.
bool finish_print(FILE *out, const char *path, const struct summary_options *options,
                  struct error *error);

#endif
