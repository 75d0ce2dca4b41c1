// SPDX-License-Identifier: Apache-2.0
// Which stacks are to blame for a budget that does not hold.
#ifndef TOOL_CHECK_OFFENDERS_H
#define TOOL_CHECK_OFFENDERS_H

#include "tool/check/results.h"
#include "tool/model/measure.h"
#include "tool/query/arguments.h"
#include "tool/query/merged.h"
#include "tool/render/suppressions.h"

// Opens a recording with the names of its stacks; `suppressions`, if not NULL, are filled by what
// the command was given, and what they tell of is taken out.
bool offenders_open(const struct command_args *args, const char *path, struct opened *opened,
                    struct suppressions *suppressions, struct error *error);

// Takes out of what is open, with its names, what is left at the end on purpose; how much that was
// by all rules.
bool offenders_suppress(const struct command_args *args, struct opened *opened,
                        struct suppressions *suppressions, struct error *error);
int64_t offenders_suppressed(const struct suppressions *suppressions);
// Leaves what was allocated in the region and those within it, as if it was all there is. False
// without memory.
bool offenders_keep_region(struct opened *opened, const char *path);

// Fills in a result's offenders and place: the places that hold the most in a recording, of a
// region if one is named. Nothing if none are known; with "" for a path nothing is known.
bool offenders_find(const struct command_args *args, const char *path, const char *region,
                    enum measure measure, struct result *result, struct error *error);
// The same of what is open.
bool offenders_of(const struct opened *opened, enum measure measure, struct result *result,
                  struct error *error);
// The stacks that grew the most from one recording to another, likewise.
bool offenders_find_grown(const struct command_args *args, const char *old_path, const char *path,
                          enum measure measure, struct result *result, struct error *error);

// "13.3 MiB", "363,831 calls".
#define GUILTY_VALUE_BYTES 64
const char *offenders_value(enum measure measure, int64_t value, char out[GUILTY_VALUE_BYTES]);

#endif
