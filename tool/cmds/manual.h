// SPDX-License-Identifier: Apache-2.0
// What else is made of the table of commands: completion for shells and the manual page.
#ifndef TOOL_CMDS_MANUAL_H
#define TOOL_CMDS_MANUAL_H

#include <stdbool.h>
#include <stdio.h>

// Completion for "bash", "zsh" or "fish"; false: no such shell.
bool manual_print_completion(FILE *out, const char *shell);

// The source of the manual page, in the language of scdoc.
void manual_print_page(FILE *out);

#endif
