// SPDX-License-Identifier: Apache-2.0
// The slots through which the modules of a process call the functions that the library wraps: the
// words that the dynamic linker fills in for calls (bound when they are first used, or at once) and
// for addresses that lie in data. Each is one aligned word, so that a thread finds the old function
// or the new one.
//
// A slot is taken over only if it leads where the linker's own search leads, or if it was not used
// yet: one that somebody else has changed, or that belongs to another libc (dlmopen), is left.
#ifndef TOOL_ATTACH_SLOTS_H
#define TOOL_ATTACH_SLOTS_H

#include "tool/attach/modules.h"

// A function that the library wraps.
struct hooked {
    const char *name;
    uint64_t hook, real;  // addresses; real 0: the process has none
};

struct slot {
    uint64_t address, before;
    unsigned hooked;
};

struct slots {
    ARRAY(struct hooked) functions;
    ARRAY(struct slot) items;
    size_t elsewhere_count;  // modules of other namespaces, which were left
};

// Finds the functions: `library` is the module that wraps them; NULL: it is not loaded yet.
bool slots_find_functions(struct slots *slots, struct loaded_modules *modules,
                          struct loaded_module *library, const struct remote *remote,
                          struct error *error);

// Finds the slots of all modules that lead to real functions now.
bool slots_find(struct slots *slots, struct loaded_modules *modules,
                const struct loaded_module *library, const struct remote *remote,
                struct error *error);

// Leads the slots found to the hooks; the number of those that were written. The process is
// stopped.
size_t slots_take(struct slots *slots, const struct remote *remote);

// Puts every slot that leads to a hook back. The process is stopped.
void slots_put_back(struct slots *slots, const struct remote *remote);

void slots_free(struct slots *slots);

#endif
