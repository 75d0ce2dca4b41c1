// SPDX-License-Identifier: Apache-2.0
// What is left at the end on purpose: blocks whose stacks match are taken out of a list of leaks
// and counted by rule. Rules come from files in LeakSanitizer's syntax and from a table of what
// common libraries allocate once and keep.
//
// A line of a file is "leak:PATTERN", a comment (#) or empty. A pattern is found anywhere in the
// name of a function, source file or module of any frame; `*` stands for anything, `^` and `$` for
// the ends of the name.
#ifndef TOOL_RENDER_SUPPRESSIONS_H
#define TOOL_RENDER_SUPPRESSIONS_H

#include "tool/base/array.h"
#include "tool/render/frames.h"
#include "tool/render/terminal.h"

struct suppression {
    const char *name;           // what is printed: the pattern, or the library and its habit
    const char *function;       // pattern; NULL: any
    const char *module;         // pattern of the module's base name; NULL: any
    const char *caller_module;  // the frame that called it is in such a module; NULL: any
    bool is_any_text;           // `function` may match file or module as well
    int64_t bytes, blocks;      // what it took out ...
    struct estimate estimate;   // ... and of samples, how sure that is
};

struct suppressions {
    ARRAY(struct suppression) rules;
    ARRAY(char *) texts;  // lines of files
    bool has_blocks;  // numbers of blocks are known (profile_has_blocks), once they were applied
};

void suppressions_start(struct suppressions *suppressions);
void suppressions_free(struct suppressions *suppressions);

// The rules for libc, ld.so, libstdc++, glib, fontconfig and openssl. False without memory.
bool suppressions_add_common(struct suppressions *suppressions, struct error *error);
// False with an error that names file and line, or without memory.
bool suppressions_add_file(struct suppressions *suppressions, const char *path,
                           struct error *error);

// The same of a text in memory; errors begin with `name`.
bool suppressions_add_text(struct suppressions *suppressions, const char *text, const char *name,
                           struct error *error);

// Takes stacks that match out of a profile. Names of all its stacks are needed. False without
// memory.
bool suppressions_apply(struct suppressions *suppressions, struct profile *profile,
                        const struct frame_names *names, struct error *error);

// What rules took out, all of them together.
void suppressions_sum(const struct suppressions *suppressions, int64_t *bytes, int64_t *blocks);

// The rules that took something out, and how much; nothing if there are none.
void suppressions_print(const struct suppressions *suppressions, const struct terminal *terminal,
                        const struct view_options *view);

// True if `pattern` is found in `text`, by the rules above.
bool suppression_matches(const char *pattern, const char *text);

#endif
