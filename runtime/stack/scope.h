// SPDX-License-Identifier: Apache-2.0
// Names that the program gives to stretches of its run (regions) and to allocators of its own
// (pools), as numbered entries of the recording.
//
// A name is looked up in a table of numbers that all threads share and nobody locks: a new entry is
// completed first and then put into its place by one exchange. Two threads that bring the same name
// at once may make two entries, of which one stays unused. Numbers never change, so that a forked
// child goes on with its parent's.
#ifndef RUNTIME_STACK_SCOPE_H
#define RUNTIME_STACK_SCOPE_H

#include <stdint.h>

#include "format/format.h"
#include "runtime/sys/region.h"
#include "runtime/sys/sys.h"

struct scopes {
    struct region entries;
    uint32_t *table;  // (atomic) ids by hash, 0: empty; NULL until a name is given
};

extern HIDDEN struct scopes scopes;

// The scope of that name within `parent` (0: none), made if need be; 0 when there is no room.
uint32_t scope_of_name(enum cairn_scope_kind kind, uint32_t parent, const char *name);

// The same if it is there already; 0: it is not.
uint32_t scope_seek(enum cairn_scope_kind kind, uint32_t parent, const char *name);

// `id` is one that scope_of_name returned.
ALWAYS_INLINE struct cairn_scope *scope_at(uint32_t id) {
    return (struct cairn_scope *)scopes.entries.base + id;
}

// Ids in use lie below this.
uint32_t scope_limit(void);

const char *scope_name(const struct cairn_scope *scope);

// In a forked child: nothing has happened yet. What pools have is counted by themselves.
void scopes_inherit(void);

#endif
