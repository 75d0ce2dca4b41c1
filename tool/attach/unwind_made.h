// SPDX-License-Identifier: Apache-2.0
// Entries of unwind information that cairn makes: of functions that have none by their code
// (code_frames.h), where a program and a thread begin as the end of all stacks, and where signal
// handlers return to.
#ifndef TOOL_ATTACH_UNWIND_MADE_H
#define TOOL_ATTACH_UNWIND_MADE_H

#include "tool/attach/unwind_index.h"

// Adds rows for functions of the file that have none. False without memory.
bool unwind_made_add(struct unwind_index *index, Elf *elf);

#endif
