// SPDX-License-Identifier: Apache-2.0
// Interpreters and virtual machines whose own frames are missing in a recording.
#ifndef TOOL_QUERY_LANGUAGES_H
#define TOOL_QUERY_LANGUAGES_H

#include "tool/query/merged.h"
#include "tool/render/terminal.h"

// Prints a line for each language that was recorded without its frames: which option records them,
// or that cairn reads none of it.
void languages_print(const struct terminal *terminal, const struct opened *opened, size_t indent);

#endif
