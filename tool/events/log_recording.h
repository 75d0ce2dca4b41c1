// SPDX-License-Identifier: Apache-2.0
// The recording that belongs to a log, which has the stacks of its cells and the names of its
// threads: it lies beside the log, or in the directory of the run.
#ifndef TOOL_EVENTS_LOG_RECORDING_H
#define TOOL_EVENTS_LOG_RECORDING_H

#include <limits.h>
#include <stdbool.h>

#include "tool/base/error.h"

// False, with where it was looked for, if it is not there.
bool log_recording_find(const char *log, char path[PATH_MAX], struct error *error);

#endif
