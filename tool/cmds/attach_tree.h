// SPDX-License-Identifier: Apache-2.0
// The processes that cairn attach records: the one that was named and, with --children, all that
// descend from it, there already or to come.
//
// A process comes to be recorded in one of two ways:
//
//     attached to   it is found by a look at all processes, several times a second; one a turn, so
//                   that the watch is heard in between
//     by a fork     of a process that is recorded: the library in it asks the watch for a memory at
//                   its first call, and what it inherited is known. It is opened here only to be
//                   followed, and left in the end.
//
// One that starts another program (exec) loses the library, and is attached to anew. What cannot be
// attached to is said in a line, and nothing else depends on it.
//
// To leave, the tool takes its slots back from each one. Forks of processes that were not left yet
// may come meanwhile, so that it looks again until there are none.
#ifndef TOOL_CMDS_ATTACH_TREE_H
#define TOOL_CMDS_ATTACH_TREE_H

#include "tool/attach/attach.h"
#include "tool/proc/family.h"
#include "tool/watch/watch.h"

enum { ATTACH_NAME_BYTES = 4 * NAME_MAX, ATTACH_SAID_MAX = 16 };

enum member_state {
    MEMBER_FOUND,    // to be opened when its time has come
    MEMBER_HELD,     // open; its calls lead to the library
    MEMBER_REFUSED,  // not recorded, and said
    MEMBER_LEFT,     // goes on without the library, or with one that is idle
};

struct attach_tree;

struct attach_member {
    struct attach_tree *tree;
    pid_t pid;
    uint64_t born;                 // family_born: with the pid, who it is
    char name[ATTACH_NAME_BYTES];  // of its program, safe to print
    enum member_state state;
    uint64_t image;    // programs that it was before, and that were recorded
    bool is_named;     // by the user
    bool is_open;      // `attach` is
    bool is_idle;      // ATTACH_IDLES when it was last looked
    bool is_recorded;  // it is, or was
    unsigned tries;
    uint64_t next_try_ns;
    struct error why;  // the last try failed
    struct attach attach;
};

// What was said of a program is not said of the next process of it.
struct attach_said {
    uint64_t hash;
};

struct attach_tree {
    // Set by the caller.
    const char *library_path;
    bool is_anyway, has_children, is_quiet;
    struct attach_request request;  // `take_memory` is the tree's
    struct watch *watch;            // open before attach_tree_start

    struct family family;
    ARRAY(struct attach_member *) processes;
    struct attach_member *named;  // it is in the list even when it has ended
    uint64_t next_look_ns;
    bool is_settled;  // those that were there at the start were looked at
    uint64_t left_count;
    uint64_t pause_ns, longest_pause_ns;  // of the stops to begin; then of those to leave
    uint64_t refused_count, unsaid_count, missed_count;
    struct attach_said said[ATTACH_SAID_MAX];
    unsigned said_count;
    struct error problem;  // why the named process was left, or could not be
};

// Looks at the process without stopping it. False: it cannot be attached to, and there is nothing
// else to record.
bool attach_tree_open(struct attach_tree *tree, pid_t pid, struct error *error);

// Attaches to it.
bool attach_tree_start(struct attach_tree *tree, struct error *error);

// What has to be done now; false: there is nothing left to record.
bool attach_tree_turn(struct attach_tree *tree);

// Leaves all of them.
void attach_tree_leave(struct attach_tree *tree);

void attach_tree_close(struct attach_tree *tree);

#endif
