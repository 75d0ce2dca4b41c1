// SPDX-License-Identifier: Apache-2.0
// A rule of plumbing.h and cairn's own table of them.
#ifndef TOOL_SYMBOL_PLUMBING_RULES_H
#define TOOL_SYMBOL_PLUMBING_RULES_H

#include "tool/symbol/plumbing.h"

enum plumbing_match { EXACT, PREFIX, SUFFIX, CONTAINS };

struct plumbing_rule {
    const char *pattern;  // NULL: every function of the module
    enum plumbing_match match;
    enum plumbing_kind kind;
    const char *module;  // beginning of the module's file name; NULL: any module
};

extern const struct plumbing_rule plumbing_rules[];
extern const size_t plumbing_rule_count;

#endif
