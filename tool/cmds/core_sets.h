// SPDX-License-Identifier: Apache-2.0
// The sets of blocks that can be asked for in a core, in the words of chap, and what can be asked
// about them: chap's verbs and the forms of its lines.
#ifndef TOOL_CMDS_CORE_SETS_H
#define TOOL_CMDS_CORE_SETS_H

#include "tool/cmds/core_subject.h"

enum core_verb {
    VERB_OVERVIEW,
    VERB_COUNT,
    VERB_LIST,
    VERB_ENUMERATE,
    VERB_SUMMARIZE,
    VERB_DESCRIBE,
    VERB_EXPLAIN,
};

enum core_set {
    SET_NONE,
    SET_USED,
    SET_FREE,
    SET_ALLOCATIONS,   // both, as the allocator sees them
    SET_ANCHORED,      // in use and reachable
    SET_LEAKED,        // in use and not
    SET_UNREFERENCED,  // leaked, and no other leaked one refers to it
    SET_INCOMING,      // those in use that refer to the one at an address
    SET_OUTGOING,      // those that it refers to
    SET_ALLOCATION,    // it alone
};

struct core_question {
    enum core_verb verb;
    enum core_set set;
    uint64_t address;               // of the sets that have one, and where there is no set
    const char *type;               // only blocks of this type ("-": without one); NULL: all
    const char *module, *function;  // of a summary by module; NULL: all
};

// Reads the words behind the core's name.
bool core_read_question(char *const *words, struct core_question *question, struct error *error);

// What of a process the answer takes.
enum heap_depth core_question_depth(const struct core_question *question);

// A block of a set.
struct core_member {
    uint64_t address, size;
    bool is_free;
    uint32_t cell;  // that the recording has it in; 0: it was not recorded
};

// Calls `see` for each member in the order of addresses until it returns false; true if the set
// could be found.
bool core_each_member(struct core_subject *subject, const struct core_question *question,
                      bool (*see)(void *context, const struct core_member *member), void *context,
                      struct error *error);

// The block that the address lies in; false after an error was filled: in none.
bool core_find_member(struct core_subject *subject, uint64_t address, struct core_member *member,
                      struct error *error);

// Sums as chap prints them: "N allocations use 0xHEX (N) bytes."
struct core_sum {
    uint64_t count, bytes;
};
void core_print_sum(const struct core_sum *sum);

// "... with signature HEX(NAME)", if the block has one.
void core_print_signature(struct core_subject *subject, const struct core_member *member);

// cmds/core_sets.c: count, list and enumerate. cmds/core_summary.c: summarize.
bool core_answer_set(struct core_subject *subject, const struct core_question *question,
                     struct error *error);
bool core_print_summary(struct core_subject *subject, const struct core_question *question,
                        struct error *error);

// cmds/core_reachability.c: describe and explain, of a set or of what lies at an address.
bool core_answer_details(struct core_subject *subject, const struct core_question *question,
                         struct error *error);

#endif
