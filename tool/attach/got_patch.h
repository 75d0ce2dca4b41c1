// SPDX-License-Identifier: Apache-2.0
// Patches the global offset tables (GOT) of a process' modules, so that their calls of functions
// that the library wraps lead to it. A slot is a word that the dynamic linker fills in, for calls
// (bound when they are first used, or at once) or for addresses in data. Each is one aligned word,
// so that a thread finds the old function or the new one.
//
// A slot is changed only if it leads where the linker's own search leads, or if it was not used
// yet: a slot that other code has changed is left.
//
// PHP keeps such a word in a heap of its own (php_heap.h), which is changed only as long as it has
// the value that was found.
//
// Modules of another namespace (dlmopen) have a libc of their own, whose blocks the program's free
// must not get. Their slots lead to entries of the library for that namespace, which know the real
// functions of its libc (format/attachment.h). A namespace whose malloc is not its libc's is left.
#ifndef TOOL_ATTACH_GOT_PATCH_H
#define TOOL_ATTACH_GOT_PATCH_H

#include "tool/attach/entries.h"
#include "tool/attach/modules.h"

// A function that the library wraps.
struct hooked {
    const char *name;
    uint64_t hook, real;  // addresses; real 0: the process has none
    bool is_of_libc;      // the real one is
};

struct got_slot {
    uint64_t address, before;
    unsigned hooked;
    bool is_stored;  // by the program, which may free the word
    bool is_taken;   // it leads to the hook, as far as this tool knows
};

struct got_patch {
    // Those of the program's own namespace; then of each other one, from number 1 on,
    // CAIRN_NAMESPACE_HEAP_COUNT.
    ARRAY(struct hooked) functions;
    size_t wanted_count, own_count;  // without and with those that the user names
    ARRAY(struct got_slot) items;
    uint64_t real_at;        // where the library finds the real functions of other namespaces
    size_t elsewhere_count;  // modules of other namespaces, which were left
};

// Finds the functions: `library` is the module that wraps them; NULL: it is not loaded yet. Those
// that the user names have no hooks yet (wrapped.h).
bool got_patch_find_functions(struct got_patch *slots, struct loaded_modules *modules,
                              struct loaded_module *library, const struct entry_wish *wishes,
                              size_t wish_count, const struct remote *remote, struct error *error);

// Finds the slots of all modules that lead to real functions now.
bool got_patch_find(struct got_patch *slots, struct loaded_modules *modules,
                    const struct loaded_module *library, const struct remote *remote,
                    struct error *error);

// Writes the real functions of other namespaces for the library, before a slot there leads to it.
void got_patch_tell(const struct got_patch *slots, const struct remote *remote);

// Writes the hooks into the slots found; returns how many were written. The process is stopped.
size_t got_patch_take(struct got_patch *slots, const struct remote *remote);

// Whether all that were taken still lead to the hooks: not those of a module that was unloaded, and
// loaded again where it was.
bool got_patch_hold(const struct got_patch *slots, const struct remote *remote);

// Puts every slot that leads to a hook back. The process is stopped.
void got_patch_put_back(struct got_patch *slots, const struct remote *remote);

void got_patch_free(struct got_patch *slots);

#endif
