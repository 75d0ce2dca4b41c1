// SPDX-License-Identifier: Apache-2.0
// Regular expressions of users: Perl's syntax (PCRE2), searched anywhere in a text. No text makes a
// search endless: PCRE2 gives up at its own limits, which counts as no match.
#ifndef TOOL_BASE_PATTERN_H
#define TOOL_BASE_PATTERN_H

#include "tool/base/error.h"

struct pattern;

// False with an error that says where the expression is wrong, or without memory.
bool pattern_compile(const char *text, struct pattern **pattern, struct error *error);
void pattern_free(struct pattern *pattern);  // takes NULL

bool pattern_matches(const struct pattern *pattern, const char *text);

#endif
