// SPDX-License-Identifier: Apache-2.0
// Shows a file in the user's web browser.
#ifndef TOOL_CMDS_BROWSER_H
#define TOOL_CMDS_BROWSER_H

#include "tool/base/error.h"

// Starts the first of $BROWSER, xdg-open and the usual browsers that can be started; it goes on
// when cairn has ended. False with the reason if there is none.
bool browser_show(const char *path, struct error *error);

#endif
