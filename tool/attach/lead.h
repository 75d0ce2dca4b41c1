// SPDX-License-Identifier: Apache-2.0
// What has to be written into a process to lead an allocator in its executable to the library,
// worked out from the file alone. For `cairn run --exec`, which leaves no tool beside the process:
// there the library does it (runtime/lead.c). The code is that of patch.h.
#ifndef TOOL_ATTACH_LEAD_H
#define TOOL_ATTACH_LEAD_H

#include <stdbool.h>

#include "tool/base/error.h"

// The value of CAIRN_ENTRIES for an executable (struct cairn_lead), which the caller frees; NULL:
// it has no such allocator. False, with a clause: it has one that cannot be led there.
bool lead_make(const char *path, char **digits, struct error *error);

#endif
