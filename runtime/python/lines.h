// SPDX-License-Identifier: Apache-2.0
// From an instruction to its line, by the table that CPython keeps, in the form of its version:
//   - CHANGES (co_lnotab): pairs of bytes, so many bytes of instructions and then so many lines
//     further.
//   - RANGES: pairs of bytes, so many bytes of instructions that are so many lines further, or in
//     no line.
//   - POSITIONS (PEP 626 and 657): entries of a byte that says the form and how many code units it
//     covers, then what the form has: changes of the line as signed numbers of six bits a byte, and
//     columns, which are skipped.
#ifndef RUNTIME_PYTHON_LINES_H
#define RUNTIME_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/python/layout.h"

// Line of the instruction at an offset in bytes; 0: the table has none for it.
uint32_t lines_find(enum python_lines form, const uint8_t *table, size_t size, uint32_t first_line,
                    uint32_t instruction);

#endif
