// SPDX-License-Identifier: Apache-2.0
// Which frames are internal frames: true, but never the answer to "who holds the memory". Allocator
// entries, the insides of standard libraries and the start of processes and threads are left out
// of lists by default; --all-frames shows them.
#ifndef TOOL_SYMBOL_INTERNAL_FRAMES_H
#define TOOL_SYMBOL_INTERNAL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/base/error.h"

enum internal_kind {
    INTERNAL_NONE,
    INTERNAL_ALLOCATOR,  // malloc, operator new, and wrappers such as xmalloc and g_malloc
    INTERNAL_LIBRARY,    // insides of std::, core:: and alloc:: behind their public functions
    INTERNAL_START,      // _start, __libc_start_main, start_thread, runners of Python's tests
    INTERNAL_PYTHON,     // of CPython, PHP, Ruby, a JVM: internal in stacks with its frames
};

// Adds the rules of a file before cairn's own: a line is "KIND NAME [in MODULE]", where KIND is
// allocator, library, start, python or show (no internal frames), NAME may begin or end with a '*'
// for anything, and MODULE is the beginning of a file's name; "/DIRECTORY/FILE" the end of a path,
// "/DIRECTORY/" a directory in it; '#' begins a comment. Not thread-safe.
bool internal_load(const char *path, struct error *error);

// `function` is a readable name (name.h), NULL if unknown; `module_path` may be NULL.
enum internal_kind internal_kind_of(const char *function, const char *module_path);

bool internal_is_hidden(const char *function, const char *module_path);

// A function of a library though it lies in the program, as templates do: by its name, or by the
// file that it was compiled from. Both may be NULL.
bool internal_is_library(const char *function, const char *file);

// A library that starts processes and threads: its code at the outer end of a stack is how they
// begin, also where it has no name. `module_path` may be NULL.
bool internal_is_runtime(const char *module_path);

struct internal_frame {
    const char *function;
    const char *module_path;
};

// Index of the first frame to show of a stack, innermost first: the first that is not internal
// frames. A stack of nothing but internal frames keeps one frame, the first that is not an
// allocator if there is one, else its outermost. frame_count 0 gives 0.
size_t internal_first_shown(const struct internal_frame *frames, size_t frame_count);

// cairn's own table.
enum internal_match { EXACT, PREFIX, SUFFIX, CONTAINS };

struct internal_rule {
    const char *pattern;  // NULL: every function of the module
    enum internal_match match;
    enum internal_kind kind;
    const char *module;  // as MODULE above; of Python code its source file; NULL: any
};

extern const struct internal_rule internal_rules[];
extern const size_t internal_rule_count;

#endif
