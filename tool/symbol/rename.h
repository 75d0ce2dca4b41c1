// SPDX-License-Identifier: Apache-2.0
// The user's rules for names: regular expressions and what to put in the place of what they match.
#ifndef TOOL_SYMBOL_RENAME_H
#define TOOL_SYMBOL_RENAME_H

#include <stddef.h>

#include "tool/base/error.h"

struct rename_rules;

// `rules` is one rule, "s/EXPRESSION/REPLACEMENT/" with any delimiter, or a file with one a line
// ('#' begins a comment). Expressions are extended ones (regex(7)); in the replacement, & is what
// was matched and \1 to \9 are its groups. Every match is replaced. `*list` may hold rules already,
// or NULL.
bool rename_rules_add(struct rename_rules **list, const char *rules, struct error *error);
void rename_rules_free(struct rename_rules *list);

// Applies all rules in order. Returns memory for free(), NULL only without memory.
char *rename_apply(const struct rename_rules *list, const char *name);

#endif
