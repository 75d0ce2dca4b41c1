// SPDX-License-Identifier: Apache-2.0
// Which frames are plumbing: true, but never the answer to "who holds the memory". Allocator
// entries, the insides of standard libraries and the start of processes and threads are left out
// of lists by default; --all-frames shows them.
#ifndef TOOL_SYMBOL_PLUMBING_H
#define TOOL_SYMBOL_PLUMBING_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/base/error.h"

enum plumbing_kind {
    PLUMBING_NONE,
    PLUMBING_ALLOCATOR,  // malloc, operator new, and wrappers such as xmalloc and g_malloc
    PLUMBING_LIBRARY,    // insides of std::, core:: and alloc:: behind their public functions
    PLUMBING_START,      // _start, __libc_start_main, start_thread
    PLUMBING_PYTHON,     // a function of CPython: plumbing in stacks that have Python's own frames
};

// Adds the rules of a file before cairn's own: a line is "KIND NAME [in MODULE]", where KIND is
// allocator, library, start, python or show (no plumbing), NAME may begin or end with a '*' for
// anything, and MODULE is the beginning of a file's name; '#' begins a comment. Not thread-safe.
bool plumbing_load(const char *path, struct error *error);

// `function` is a readable name (name.h), NULL if unknown; `module_path` may be NULL.
enum plumbing_kind plumbing_kind_of(const char *function, const char *module_path);

bool plumbing_is_hidden(const char *function, const char *module_path);

struct plumbing_frame {
    const char *function;
    const char *module_path;
};

// Index of the first frame to show of a stack, innermost first: the first that is not plumbing.
// A stack of nothing but plumbing keeps one frame, the first that is not an allocator if there
// is one, else its outermost. frame_count 0 gives 0.
size_t plumbing_first_shown(const struct plumbing_frame *frames, size_t frame_count);

#endif
