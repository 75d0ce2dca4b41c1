// SPDX-License-Identifier: Apache-2.0
// Functions, lines and inlined functions of a Go program, by the table that its runtime needs
// (pclntab, Go 1.18 and later). A stripped program has it too, and its lines are those that
// runtime.Callers says, where Go's debug information has others.
#ifndef TOOL_SYMBOL_GO_TABLE_H
#define TOOL_SYMBOL_GO_TABLE_H

#include "tool/symbol/image.h"
#include "tool/symbol/job.h"
#include "tool/symbol/string_pool.h"

// Answers the queries that are in code of Go; `answered` tells how many. What the file says is not
// trusted. False only without memory.
bool go_table_answer(const struct image *image, struct string_pool *names,
                     struct symbol_query *queries, size_t count, size_t *answered);

// Finds the code of a function in the file by its name, and its virtual address there. False: the
// program has no such function, or it is not of Go.
bool go_table_find_code(const struct image *image, const char *name, struct bytes *code,
                        uint64_t *address);

#endif
