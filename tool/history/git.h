// SPDX-License-Identifier: Apache-2.0
// What git says of the project in the current directory. git itself is asked: repositories have
// many forms.
#ifndef TOOL_HISTORY_GIT_H
#define TOOL_HISTORY_GIT_H

#include <limits.h>
#include <stdint.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

enum { GIT_HASH_BYTES = 72, GIT_SUBJECT_BYTES = 160, GIT_SHORT = 10 };

struct git_commit {
    char hash[GIT_HASH_BYTES];        // or what --commit said, where there is no repository
    char subject[GIT_SUBJECT_BYTES];  // safe text
    int64_t time_s;                   // of the commit; 0: not known
    bool is_changed;                  // tracked files differ from it
};

struct git_project {
    bool is_there;
    bool is_shallow;     // its first commits are not here
    char top[PATH_MAX];  // of the work tree
};

// Without git or a repository `is_there` is false. False with an error if git refuses.
bool git_find(struct git_project *project, struct error *error);

// A commit by any name that git knows; "HEAD" with whether files were changed since.
bool git_describe(const char *name, struct git_commit *commit, struct error *error);

// The hashes of the commits without a parent that `name` goes back to, sorted, a blank between two;
// for free(). NULL with an error.
char *git_roots(const char *name, struct error *error);

// The repository has that commit.
bool git_has(const char *hash);
// `older` is `newer` or among its ancestors.
bool git_is_ancestor(const char *older, const char *newer);

// The line of first parents that ends at a commit, the oldest first.
struct git_line {
    char *text;                   // hashes point into it
    ARRAY(const char *) commits;  // in their order
    ARRAY(uint32_t) sorted;       // indexes into them, by hash
};
bool git_line_read(const char *name, struct git_line *line, struct error *error);
void git_line_free(struct git_line *line);
// Where a commit is in the line; -1: it is not there.
long git_line_find(const struct git_line *line, const char *hash);

#endif
