// SPDX-License-Identifier: Apache-2.0
// Pages for a browser, for `cairn open` and `cairn run --open`.
#ifndef TOOL_CMDS_OPEN_H
#define TOOL_CMDS_OPEN_H

#include "tool/base/error.h"

// Writes the page of a recording or run to a new file of the temporary directory and shows it in a
// browser. False with an error that names the file if it was written but could not be shown.
bool open_show(const char *path, struct error *error);

#endif
