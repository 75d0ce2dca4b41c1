// SPDX-License-Identifier: Apache-2.0
// `cairn run --unreachable`: which blocks nothing leads to when a process ends. Its memory is
// copied while it waits at its end, and marked when its recording is a file, which keeps what was
// found (format/reachability.h).
#ifndef TOOL_CMDS_REACHABILITY_H
#define TOOL_CMDS_REACHABILITY_H

#include "tool/watch/watched.h"

struct last_look reachability_last_look(void);

#endif
