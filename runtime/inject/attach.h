// SPDX-License-Identifier: Apache-2.0
// The inside of `cairn attach`: what the tool calls in a process into which it loaded this library.
// The tool stops the process, writes settings into cairn_attachment (format/attachment.h), has a
// thread call `start`, and lets the program's calls lead to the hooks by rewriting the slots
// through which modules call. To detach it puts the slots back, waits until no thread is in this
// library's code, and has `stop` called, which leaves the library as it was loaded.
#ifndef RUNTIME_INJECT_ATTACH_H
#define RUNTIME_INJECT_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/attachment.h"

#if defined(CAIRN_STATIC)

static inline bool attach_is_by_tool(void) {
    return false;
}
static inline bool attach_is_running(void) {
    return false;
}
static inline void attach_loaded(void) {}
static inline bool attach_has_entries(void) {
    return false;
}
static inline uintptr_t attach_address(void) {
    return 0;
}

#else

// The library was loaded by the tool, into a running process.
bool attach_is_by_tool(void);

// The tool has started recording, and not stopped it.
bool attach_is_running(void);

// From the constructor: the tool may call now.
void attach_loaded(void);

// An allocator that is linked into the executable is led to the hooks of entries.h, by the tool or
// by entry_patch.h.
bool attach_has_entries(void);

// The hook of a kind of function, and where the mapping is that leads there; 0: nowhere.
uint64_t attach_entry_hook(enum cairn_entry_kind kind);
void attach_set_entries(uintptr_t start);

// Hooks of allocators by name (wrap.h).
void attach_set_wrapped(uintptr_t ways, uintptr_t functions, size_t bytes);

// Where the tool attached: the way of a function of the rows, and where its counts are.
uint32_t attach_wrap_way(uint32_t number);
void attach_set_wrap_scope(uint32_t number, uintptr_t scope);

// Of what the tool and the library tell each other.
uintptr_t attach_address(void);

#endif

#endif
