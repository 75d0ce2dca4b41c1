// SPDX-License-Identifier: Apache-2.0
// How old blocks became, by an event log: every block that it has an end of, whichever thread freed
// it. A recording has the same by itself only with --ages.
#ifndef TOOL_QUERY_LOG_AGES_H
#define TOOL_QUERY_LOG_AGES_H

#include "tool/base/error.h"
#include "tool/model/profile.h"
#include "tool/model/shape.h"

// Reads the log at `path`, which is that of the profile's recording. For log_ages_free, also after
// an error.
bool log_ages_read(const char *path, const struct profile *profile, struct shape_log *ages,
                   struct error *error);
void log_ages_free(struct shape_log *ages);

#endif
