// SPDX-License-Identifier: Apache-2.0
// The recording that belongs to a log, which has the stacks of its cells and the names of its
// threads: it lies beside the log, in the directory of the run, or where it was made.
#ifndef TOOL_EVENTS_LOG_RECORDING_H
#define TOOL_EVENTS_LOG_RECORDING_H

#include <limits.h>
#include <stdbool.h>

#include "format/event_file.h"
#include "tool/base/error.h"

// Writes into a log's header where its recording is made, if that is not beside the log; the header
// gets that longer.
void log_recording_note(struct cairn_event_file *file, const char *recording, const char *log);

// False, with where it was looked for, if it is not there.
bool log_recording_find(const char *log, char path[PATH_MAX], struct error *error);

#endif
