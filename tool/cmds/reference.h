// SPDX-License-Identifier: Apache-2.0
// The pages of docs/reference that are made of the tables of commands and views, as Markdown. A
// test compares them with the files (tests/e2e/reference.py); dev/reference.py writes the files
// anew.
#ifndef TOOL_CMDS_REFERENCE_H
#define TOOL_CMDS_REFERENCE_H

#include <stdbool.h>
#include <stdio.h>

// Prints the page "commands" or "views"; false: there is no such page.
bool reference_print(FILE *out, const char *page);

#endif
