// SPDX-License-Identifier: Apache-2.0
// How far a recording can be believed, and how its process ended, as parts of a sentence.
#ifndef TOOL_RENDER_TRUST_H
#define TOOL_RENDER_TRUST_H

#include "tool/model/profile.h"
#include "tool/render/terminal.h"

// "exact · nothing lost · 3 of 812 stacks incomplete", indented, in as many lines as it takes.
void trust_print(const struct terminal *terminal, const struct profile *profile);

// "sqlite3 ended with status 0 after 0.52 s", without end of line. `is_alive`: the process of a
// recording without an end is known to run.
void ending_print(const struct terminal *terminal, const struct profile *profile, bool is_alive);

// Name of the program: last part of what it was started as; escaped.
void program_name(const struct profile *profile, char *out, size_t size);

// Name of a kind of loss in JSON ("no_thread") and in a sentence; NULL: not known.
const char *loss_key(size_t kind);
const char *loss_sentence(size_t kind);

#endif
