// SPDX-License-Identifier: Apache-2.0
// What nothing leads to at the end of a run, by its recording (cairn run --unreachable).
#ifndef TOOL_TORTURE_LEAKS_H
#define TOOL_TORTURE_LEAKS_H

#include "tool/torture/torture.h"

// A line for each stack, "ID BYTES "; for free(). NULL: it was not looked for, as of a program that
// was killed, or it is not known. No names are looked up.
char *torture_leaks_of(const struct torture_run *run);

// Whether one is of a stack that the usual run has not.
bool torture_leaks_are_new(const char *leaks, const char *usual);

#endif
