// SPDX-License-Identifier: Apache-2.0
// Finds out which version of Python a program is, from its file.
#ifndef TOOL_WATCH_PYTHON_H
#define TOOL_WATCH_PYTHON_H

#include <stdint.h>

// The version whose frames the library reads, as Py_Version without its lower half.
#define PYTHON_READ 0x030b0000u
#define PYTHON_READ_TEXT "CPython 3.11"

// Version of the interpreter that an ELF file is or is linked to, in that form; 0: none, or it does
// not say.
uint32_t python_of_image(const char *path);

#endif
