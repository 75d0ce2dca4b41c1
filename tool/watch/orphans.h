// SPDX-License-Identifier: Apache-2.0
// Processes of a run that outlive its main process without having recorded yet: daemons that were
// forked a moment ago. They are known by the name of the run's socket in their environment.
#ifndef TOOL_WATCH_ORPHANS_H
#define TOOL_WATCH_ORPHANS_H

#include <stdbool.h>

bool orphans_exist(const char *socket_name);

#endif
