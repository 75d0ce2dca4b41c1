// SPDX-License-Identifier: Apache-2.0
// Heaps that are not read: whose they are, as a rule, and what of their own looks into them.
#ifndef TOOL_CMDS_CORE_FOREIGN_H
#define TOOL_CMDS_CORE_FOREIGN_H

#include "tool/heap/image.h"

enum { FOREIGN_BYTES = 160 };

// Says it in a line, by the files that were mapped and by where memory is. `has_python`: that
// Python's own allocator has been read. False: nothing is known.
bool core_foreign_heap(const struct core_image *core, bool has_python, char text[FOREIGN_BYTES]);

#endif
