// SPDX-License-Identifier: Apache-2.0
// `cairn run --unreachable`: finds the blocks that nothing leads to in the copy of a process'
// memory (looks.h), and keeps them in its recording (format/reachability.h).
#ifndef TOOL_CMDS_REACHABILITY_H
#define TOOL_CMDS_REACHABILITY_H

#include "tool/cmds/core_sets.h"

// `subject`: of the recording at `path`, which the process has waited for so long.
bool reachability_keep(struct core_subject *subject, uint64_t waited_ns, const char *path,
                       struct error *error);
// Keeps why it is not known.
bool reachability_keep_reason(const char *reason, const char *path, struct error *error);

#endif
