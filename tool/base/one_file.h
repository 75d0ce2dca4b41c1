// SPDX-License-Identifier: Apache-2.0
// What the tool carries when it was built as one file (`make dist`): the runtime's libraries, and
// descriptions of terminals for systems that have none. The tool of `make` carries nothing: its
// libraries lie beside it.
#ifndef TOOL_BASE_ONE_FILE_H
#define TOOL_BASE_ONE_FILE_H

struct carried_library {
    const char *name;  // "libcairn.so"
    const unsigned char *bytes, *end;
};

// NULL: this tool carries none of that name.
const struct carried_library *one_file_library(const char *name);

// The description of a terminal in the form that ncurses reads from the variable TERMINFO
// ("hex:..."); NULL: it is not carried.
const char *one_file_terminal(const char *name);

#endif
