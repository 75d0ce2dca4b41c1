// SPDX-License-Identifier: Apache-2.0
// The words of a remedy: its name, how it is applied, what it costs, how sure it is.
#ifndef TOOL_CMDS_CORE_REMEDIES_WORDS_H
#define TOOL_CMDS_CORE_REMEDIES_WORDS_H

#include "tool/heap/remedies.h"

enum { REMEDY_WORDS_BYTES = 256, REMEDY_TITLE_BYTES = 160 };

// The process or core that it would make smaller.
struct remedy_about {
    const struct remedy_facts *facts;
    const char *name;      // of the process or core, for the next command; NULL: it has ended
    const char *obstacle;  // why its events cannot be recorded; "": they can
    bool is_stopped;       // it was, when it was read
};

// "now", "at most", "needs a log".
const char *core_remedy_class(const struct remedy *remedy);
// Writes the remedy in a few words.
void core_remedy_title(const struct remedy *remedy, const struct remedy_facts *facts,
                       char title[REMEDY_TITLE_BYTES]);

// Returns the name that programs know it by.
const char *core_remedy_key(const struct remedy *remedy);

void core_remedy_apply(const struct remedy *remedy, const struct remedy_about *about,
                       char text[REMEDY_WORDS_BYTES]);
void core_remedy_cost(const struct remedy *remedy, const struct remedy_about *about,
                      char text[REMEDY_WORDS_BYTES]);
void core_remedy_sure(const struct remedy *remedy, const struct remedy_about *about,
                      char text[REMEDY_WORDS_BYTES]);

#endif
