// SPDX-License-Identifier: Apache-2.0
// Heaps that are not read: whose they are, as a rule, and what of their own looks into them.
#ifndef TOOL_CMDS_CORE_FOREIGN_H
#define TOOL_CMDS_CORE_FOREIGN_H

#include <sys/types.h>

#include "tool/heap/image.h"

enum { FOREIGN_BYTES = 160 };

struct foreign_subject {
    const struct core_image *core;  // NULL: a process of which nothing was copied
    pid_t pid;
    bool has_python;        // Python's own allocator has been read
    const char *allocator;  // so has that of this name, as "tcmalloc"; NULL: none but glibc's
};

// Says it in a line, by the files that are mapped, by where memory is, and by what the executable
// of a process defines. False: nothing is known.
bool core_foreign_heap(const struct foreign_subject *subject, char text[FOREIGN_BYTES]);

#endif
