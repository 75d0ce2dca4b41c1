// SPDX-License-Identifier: Apache-2.0
// What cairn leaks and the view of leaks do besides filters: takes out what is suppressed, and what
// an older recording has as well.
#ifndef TOOL_QUERY_LEAKS_H
#define TOOL_QUERY_LEAKS_H

#include "tool/query/views.h"
#include "tool/render/suppressions.h"

struct leaks {
    struct suppressions suppressions;
    const char *baseline;  // a recording; NULL: none
    int error_status;      // to end with if a leak is left; 0 if not asked for
    size_t found_count;    // stacks that are left, over all profiles it was applied to
    bool has_own_rules;    // those of the program are wanted
    bool is_own_read;      // ... and were added
    const char *note;      // about them; NULL: none
};

// Reads the options and sets request->leaks, if it is of leaks; else they are not taken.
// False with an error: wrong use, or a file that cannot be read.
bool leaks_read(const struct command_args *args, struct request *request, struct leaks *leaks,
                struct error *error);
void leaks_free(struct leaks *leaks);

// Adds what the program's own __lsan_default_suppressions() returns, if it has one that can be read
// without running it; `note` says if it cannot, else it is NULL. False with an error.
bool leaks_add_own_rules(struct suppressions *suppressions, const struct opened *opened,
                         const char **note, struct error *error);

// Rules as the options say: common ones and those of a file. False with an error.
bool leaks_read_rules(const struct command_args *args, struct suppressions *suppressions,
                      struct error *error);

// Takes out of a profile what is no leak. Names of all stacks are needed. False with an error.
bool leaks_apply(struct leaks *leaks, const struct request *request, struct opened *opened,
                 const struct frame_names *names, struct error *error);

// What was taken out, behind a view.
void leaks_print(const struct leaks *leaks, const struct terminal *terminal,
                 const struct view_options *options);

// The same in a line. False: nothing was.
bool leaks_say(const struct leaks *leaks, const struct view_options *options, char *out,
               size_t size);

#endif
