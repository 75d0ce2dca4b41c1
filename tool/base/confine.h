// SPDX-License-Identifier: Apache-2.0
// Where files may lie whose content is shown. A command of a user reads what the user may read; one
// that answers for somebody else (cairn mcp) is confined to some directories.
//
// Files are judged as they are opened, by the descriptor: a symbolic link, "..", or a name that
// changed meanwhile leads nowhere else. Files without a name (copies in memory, recordings of
// processes) are no matter of directories; which processes may be looked at is for the caller.
// Executables and debug files are read for names wherever they lie: their content is not shown.
#ifndef TOOL_BASE_CONFINE_H
#define TOOL_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/base/error.h"

// From now on, in this process, files have to lie below one of these: absolute, without symbolic
// links, valid as long as the process. None: nothing is confined (as at the start).
void confine_to(char *const *directories, size_t count);

// Whether that was asked for: somebody else is answered, who has no use for command lines.
bool confine_is_on(void);

// Whether an absolute path without symbolic links lies at or below a directory.
bool confine_is_below(const char *path, const char *directory);

// Whether an open file may be shown. False with an error that does not tell where it lies.
bool confine_allows(int descriptor, struct error *error);

#endif
