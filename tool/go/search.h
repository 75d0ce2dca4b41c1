// SPDX-License-Identifier: Apache-2.0
// The variables of Go's runtime in a program without a table of symbols. Functions of the runtime
// that Go's own table names lead to two of them by their instructions. The others are found by what
// they lead to: a bucket whose sum is right, a list of spans that agree with themselves.
#ifndef TOOL_GO_SEARCH_H
#define TOOL_GO_SEARCH_H

#include "tool/go/program.h"

// Fills in what was found; what was not stays 0: so does the beginning of a profile without
// buckets, since nothing leads there.
void go_search(const struct memory_reader *memory, struct go_program *program);

#endif
