// SPDX-License-Identifier: Apache-2.0
// What cairn says it is: in help, in the man page, and in files that it writes.
#ifndef TOOL_BASE_VERSION_H
#define TOOL_BASE_VERSION_H

#include <stdio.h>

// The one place of the version: the Makefile, packages and tests read this line.
#define CAIRN_TOOL_VERSION "0.2.0"

// Version, commit, compiler with the date of the sources, and processor, a line each. What was made
// of the same sources says the same (tests/e2e/version.py): no name and no clock of the machine.
void version_print(FILE *out);

// The commit of the sources; "unknown" outside of a repository.
const char *version_commit(void);

#endif
