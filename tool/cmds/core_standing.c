// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/core_standing.h"

// Sets in which no block is reachable need no ways; where there are some, ways tell who is.
bool core_standings_open(struct core_subject *subject, const struct core_question *question,
                         struct core_standings *standings, struct error *error) {
    *standings = (struct core_standings){
        .subject = subject,
        .is_of_one = !question->set || question->set == SET_ALLOCATION,
        .is_with_references = question->verb == VERB_EXPLAIN,
    };
    bool are_leaked = question->set == SET_LEAKED || question->set == SET_UNREFERENCED;
    if (!standings->is_with_references || are_leaked) return core_need_reach(subject, error);
    if (!core_need_map(subject, error)) return false;
    if (standings->is_of_one) return true;
    standings->has_ways = true;
    return core_ways_open(&subject->reach, &standings->ways, error);
}

void core_standings_close(struct core_standings *standings) {
    if (standings->has_ways) core_ways_close(&standings->ways);
    if (standings->has_leaks) core_leaks_close(&standings->leaks);
}

// A block to which no way leads is leaked, and those that refer to it are.
static bool find_one(const struct core_reach *reach, uint64_t address,
                     struct core_standing *standing) {
    uint64_t place;
    standing->reached = CORE_NO_BLOCK;
    if (!block_map_find(&reach->map, address, &place)) return true;
    if (!core_find_path(reach, address, &standing->references)) return false;
    standing->reached = CORE_REACHABLE;
    if (standing->references.items.count) return true;
    if (!core_find_incoming(reach, address, &standing->references)) return false;
    standing->count = standing->references.items.count;
    standing->reached = standing->count ? CORE_LEAKED : CORE_UNREFERENCED;
    return true;
}

static bool find_referring(struct core_standings *standings, uint64_t address,
                           struct core_standing *standing) {
    if (!standings->has_leaks) {
        standings->has_leaks = true;
        if (!core_leaks_open(&standings->subject->reach, &standings->leaks)) return false;
    }
    return core_leaks_to(&standings->leaks, address, STANDING_REFERENCES, &standing->references,
                         &standing->count);
}

static bool find(struct core_standings *standings, uint64_t address,
                 struct core_standing *standing) {
    const struct core_reach *reach = &standings->subject->reach;
    if (standings->is_with_references && standings->is_of_one)
        return find_one(reach, address, standing);
    standing->reached = core_reach_of(reach, address);
    if (!standings->is_with_references || standing->reached == CORE_NO_BLOCK) return true;
    if (standing->reached == CORE_REACHABLE)
        return core_ways_to(&standings->ways, address, &standing->references);
    return find_referring(standings, address, standing);
}

bool core_standing_of(struct core_standings *standings, const struct core_member *member,
                      struct core_standing *standing, struct error *error) {
    *standing = (struct core_standing){.reached = CORE_NO_BLOCK};
    if (member->is_free || find(standings, member->address, standing)) return true;
    core_references_free(&standing->references);
    return error_set(error, "out of memory");
}
