// SPDX-License-Identifier: Apache-2.0
// The functions of an allocator that is linked into an executable: malloc and its relatives, C++'s
// operator new and delete beside them, and those of jemalloc, tcmalloc and mimalloc under the names
// with a prefix that programs link them by (je_, _rjem_ of Rust's crates, tc_, mi_). Found by the
// executable's own symbols, since no search of the dynamic linker leads to them.
//
// All or nothing: with a function left out, blocks would appear or vanish unseen.
#ifndef TOOL_ATTACH_ENTRIES_H
#define TOOL_ATTACH_ENTRIES_H

#include "format/attachment.h"
#include "tool/attach/code.h"
#include "tool/base/array.h"
#include "tool/proc/remote.h"

// ENTRY_MAX_BYTES: more than any allocator's function has.
enum { ENTRY_NAME_BYTES = 64, ENTRY_MAX_BYTES = 1 << 20 };

struct entry {
    char name[ENTRY_NAME_BYTES];
    uint64_t address, size;
    enum cairn_entry_kind kind;
    uint64_t way;     // to a hook of this function's own, which replaces that of its kind; or 0
    unsigned number;  // with `way`: of the wish
};

// Code of the allocator elsewhere than between its entries.
struct entry_part {
    uint64_t start, end;
};

struct entries {
    ARRAY(struct entry) items;  // none: there is no such allocator
    const char *allocator;      // its name; NULL without entries
    bool is_malloc;             // it is what the program calls malloc, not beside that
    uint64_t low, high;         // the executable's segments
    uint64_t start;             // where it begins to execute
    uint64_t heart, heart_end;  // from the first to the last entry, once they were searched
    ARRAY(struct entry_part) parts;
};

// Finds them in the process' executable. False, with a clause, if there is such an allocator but
// not all of it can be led elsewhere.
bool entries_find(struct entries *entries, const struct remote *remote, struct error *error);
void entries_free(struct entries *entries);

// A function of the executable that the user names (cairn run --wrap), and the way to its hook.
struct entry_wish {
    char name[ENTRY_NAME_BYTES];
    uint64_t way;
    bool is_variable;  // its address is wanted and nothing else
    bool may_lack;     // nothing is said if it is not there
    uint64_t address;  // of a variable that was found; 0
};

// Adds those that the executable has; others may be in libraries. False, with a clause: one of them
// cannot be led elsewhere.
bool entries_add_wishes(struct entries *entries, const struct remote *remote,
                        struct entry_wish *wishes, size_t count, struct error *error);
// The same of a file, for the question whether it can be done.
bool entries_check_wishes(const char *path, struct entry_wish *wishes, size_t count,
                          struct error *error);

// The same of a file, as if it lay at 0. `visit` gets each entry once all are known to be possible,
// with its code; false, with a clause: it has failed.
typedef bool entries_visitor(void *context, const struct entry *entry,
                             const struct code_function *code, struct error *error);
bool entries_find_in_file(struct entries *entries, const char *path, entries_visitor *visit,
                          void *context, struct error *error);

// Finds the allocator's code, by which threads that are in it are known. False, with a clause, if
// it cannot be distinguished from the program's.
bool entries_find_parts(struct entries *entries, const struct remote *remote, struct error *error);

// Whether code at `pc`, of a function called `name` (NULL: not known), may be the allocator's.
bool entries_may_hold(const struct entries *entries, uint64_t pc, const char *name);

// The entry at an address, or of a name; NULL: there is none.
const struct entry *entries_at(const struct entries *entries, uint64_t address);
const struct entry *entries_named(const struct entries *entries, const char *name);

#endif
