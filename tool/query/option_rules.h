// SPDX-License-Identifier: Apache-2.0
// The one table of options that exclude each other, or that need something beside them. The parser
// checks what can be seen on the command line; what follows from it (a preset samples, a view shows
// mappings) is a circumstance, which its reader names as soon as it is known.
#ifndef TOOL_QUERY_OPTION_RULES_H
#define TOOL_QUERY_OPTION_RULES_H

#include "tool/query/arguments.h"

// Counted on from the options, so that a rule may name either.
enum circumstance {
    SAMPLED = OPTION_COUNT,  // a sample is recorded
    OF_MAPPINGS,             // the view shows mappings
    OF_HEAP_NOW,             // the view shows a heap as it is now
    OF_LEAKS,                // the view shows leaks
    OF_SNAPSHOTS,            // snapshots of recordings are compared
    CIRCUMSTANCE_END,
};

struct option_rule {
    int subject;         // an option or a circumstance
    const int *others;   // ends with CIRCUMSTANCE_END
    bool is_needed;      // one of the others has to be there; else none of them may be
    const char *reason;  // NULL: it is plain
};

extern const struct option_rule option_rules[];  // ends with others NULL

// Whether the options that were given go together. False with an error that names two of them.
bool options_check(const struct command_args *args, struct error *error);

// The same, under a circumstance, or without it.
bool options_check_under(const struct command_args *args, enum circumstance circumstance,
                         struct error *error);
bool options_check_without(const struct command_args *args, enum circumstance circumstance,
                           struct error *error);

// How a circumstance is called, and the option that can bring it about; OPTION_COUNT: a word
// "SUBJECT@SNAPSHOT" does.
const char *circumstance_name(int circumstance);
enum option_id circumstance_cause(int circumstance);

#endif
