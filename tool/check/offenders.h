// SPDX-License-Identifier: Apache-2.0
// Which stacks are to blame for a budget that does not hold.
#ifndef TOOL_CHECK_OFFENDERS_H
#define TOOL_CHECK_OFFENDERS_H

#include "tool/model/measure.h"
#include "tool/query/arguments.h"
#include "tool/query/merged.h"
#include "tool/render/suppressions.h"

// Opens a recording with the names of its stacks; `suppressions`, if not NULL, are filled by what
// the command was given, and what they tell of is taken out.
bool offenders_open(const struct command_args *args, const char *path, struct opened *opened,
                    struct suppressions *suppressions, struct error *error);

// The places that hold the most in a recording, of a region if one is named, as text for free();
// NULL: none are known. With "" for a path nothing is known.
bool offenders_find(const struct command_args *args, const char *path, const char *region,
                    enum measure measure, char **text, struct error *error);
// The same of what is open.
bool offenders_of(const struct opened *opened, enum measure measure, char **text,
                  struct error *error);
// The stacks that grew the most from one recording to another, likewise.
bool offenders_find_grown(const struct command_args *args, const char *old_path, const char *path,
                          enum measure measure, char **text, struct error *error);

// "13.3 MiB", "363,831 calls".
#define GUILTY_VALUE_BYTES 64
const char *offenders_value(enum measure measure, int64_t value, char out[GUILTY_VALUE_BYTES]);

#endif
