// SPDX-License-Identifier: Apache-2.0
// The slots through which the modules of a process call the functions that the library wraps: the
// words that the dynamic linker fills in for calls (bound when they are first used, or at once) and
// for addresses that lie in data. Each is one aligned word, so that a thread finds the old function
// or the new one.
//
// A slot is taken over only if it leads where the linker's own search leads, or if it was not used
// yet: one that somebody else has changed is left.
//
// Modules of another namespace (dlmopen) have a libc of their own, whose blocks the program's free
// must not get. Their slots lead to ways of the library's for that namespace, which know the real
// functions of its libc (format/attachment.h). A namespace whose malloc is not its libc's is left.
#ifndef TOOL_ATTACH_SLOTS_H
#define TOOL_ATTACH_SLOTS_H

#include "tool/attach/modules.h"

// A function that the library wraps.
struct hooked {
    const char *name;
    uint64_t hook, real;  // addresses; real 0: the process has none
    bool is_of_libc;      // the real one is
};

struct slot {
    uint64_t address, before;
    unsigned hooked;
    bool is_taken;  // it leads to the hook, as far as this tool knows
};

struct slots {
    // Those of the program's own namespace; then of each other one, from number 1 on,
    // CAIRN_NAMESPACE_HEAP_COUNT.
    ARRAY(struct hooked) functions;
    size_t own_count;
    ARRAY(struct slot) items;
    uint64_t real_at;        // where the library is told the real functions of other namespaces
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

// Tells the library the real functions of other namespaces, before a slot there leads to it.
void slots_tell(const struct slots *slots, const struct remote *remote);

// Leads the slots found to the hooks; the number of those that were written. The process is
// stopped.
size_t slots_take(struct slots *slots, const struct remote *remote);

// Whether all that were taken still lead to the hooks: not those of a module that was unloaded, and
// loaded again where it was.
bool slots_hold(const struct slots *slots, const struct remote *remote);

// Puts every slot that leads to a hook back. The process is stopped.
void slots_put_back(struct slots *slots, const struct remote *remote);

void slots_free(struct slots *slots);

#endif
