// SPDX-License-Identifier: Apache-2.0
// What nothing led to at a process' end, or at a moment, in words.
#ifndef TOOL_RENDER_REACHABILITY_H
#define TOOL_RENDER_REACHABILITY_H

#include "tool/base/json.h"
#include "tool/model/profile.h"
#include "tool/render/terminal.h"

// "directly lost: 24 B in 1 block; indirectly: ...; still reachable: ...".
enum { REACHABILITY_BYTES = 256 };
void reachability_text(const struct cairn_reachability *sums, char text[REACHABILITY_BYTES]);

// The same of what was recorded, as a line, with why it is not known. Nothing if nobody asked.
void reachability_print_line(const struct terminal *terminal, const struct profile *profile);

// The line of a summary.
void reachability_print_fact(const struct terminal *terminal, const struct profile *profile);

// The sums as members of the open object.
void reachability_put_sums(struct json *json, const struct cairn_reachability *sums);

// Object "reachability". Nothing if nobody asked.
void reachability_put(struct json *json, const struct profile *profile);

#endif
