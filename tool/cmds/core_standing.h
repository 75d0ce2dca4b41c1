// SPDX-License-Identifier: Apache-2.0
// What `cairn core` says of how a block is reached. Of one block that is looked for by itself; who
// asks of a set gets what is common to all its blocks prepared once.
#ifndef TOOL_CMDS_CORE_STANDING_H
#define TOOL_CMDS_CORE_STANDING_H

#include "tool/cmds/core_sets.h"
#include "tool/core/leaks.h"
#include "tool/core/paths.h"

struct core_standings {
    struct core_subject *subject;
    bool is_of_one;            // block
    bool is_with_references;   // otherwise only what became of blocks
    bool has_ways, has_leaks;  // those below are open
    struct core_ways ways;
    struct core_leaks leaks;
};

struct core_standing {
    enum core_reached reached;
    struct core_references references;  // reachable: the way there; leaked: some that refer to it
    size_t count;                       // of all that refer to it
};
enum { STANDING_REFERENCES = 8 };

bool core_standings_open(struct core_subject *subject, const struct core_question *question,
                         struct core_standings *standings, struct error *error);
void core_standings_close(struct core_standings *standings);

// `standing` is to be released by core_references_free of its references.
bool core_standing_of(struct core_standings *standings, const struct core_member *member,
                      struct core_standing *standing, struct error *error);

#endif
