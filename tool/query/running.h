// SPDX-License-Identifier: Apache-2.0
// Running processes, recorded or not, as a user names them: by number, or by any name that
// process_names has. A process that is called so (process_name) comes before others.
#ifndef TOOL_QUERY_RUNNING_H
#define TOOL_QUERY_RUNNING_H

#include <stdbool.h>
#include <sys/types.h>

#include "tool/base/array.h"
#include "tool/base/error.h"

bool running_is_number(const char *text);

// Whether a command's word may mean a process: it is no file, and no path.
bool running_may_be(const char *word);

// Those called `name` that `is_wanted` (NULL: all), by number, without cairn itself.
struct running_list {
    ARRAY(pid_t) pids;
};
typedef bool running_is_wanted(void *context, pid_t pid);
bool running_list(const char *name, running_is_wanted *is_wanted, void *context,
                  struct running_list *list, struct error *error);

// The only process that `which` means. Whether there is one with a number is not looked at.
bool running_find(const char *which, pid_t *pid, struct error *error);

// The same; of several that are called so, the one that all others are children of (nginx and its
// workers), or their children, if they are called so too.
bool running_find_tree(const char *which, pid_t *pid, struct error *error);

// One has to be chosen: the error says what distinguishes them. `are`: "processes are".
bool running_tell_several(const char *name, const char *are, const struct running_list *list,
                          struct error *error);

#endif
