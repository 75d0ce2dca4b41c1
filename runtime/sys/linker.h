// SPDX-License-Identifier: Apache-2.0
// Symbols of loaded modules, by their tables in the linker's order. dlsym would leave its errors to
// the program's dlerror; it is asked only for a function that is chosen as it is found (IFUNC),
// which is there. Before glibc 2.34 dlsym is in libdl, which a program may do without.
//
// Not to be called from a signal handler that interrupted the dynamic linker.
#ifndef RUNTIME_SYS_LINKER_H
#define RUNTIME_SYS_LINKER_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// The symbols that a module defines.
struct linker_symbols {
    uintptr_t bias;
    const Elf64_Sym *symbols;  // NULL: none
    const char *texts;
    const uint16_t *versions;  // NULL: none
    const uint32_t *hash, *gnu_hash;
};

// Takes what one entry of the module's dynamic section says.
void linker_symbols_note(struct linker_symbols *symbols, const Elf64_Dyn *entry);

// The symbols of a loaded module.
struct linker_symbols linker_symbols_of(const struct dl_phdr_info *module);

// The entry of a function or object in its default version; NULL: the module does not define it, or
// a function of its own chooses the address.
const Elf64_Sym *linker_symbols_entry(const struct linker_symbols *symbols, const char *name);

// The address of a function or object in its default version; 0: the module does not define it.
uintptr_t linker_symbols_find(const struct linker_symbols *symbols, const char *name);

// The first definition of all loaded modules, and the first one of those after ours; NULL: there is
// none.
void *linker_find(const char *name);
void *linker_find_next(const char *name);

// linker_find_next for many names, each behind the NUL of the one before and an empty one at the
// end. Looks through the modules' tables once, at a tenth of the instructions of dlsym. `found` has
// room for one address a name, and is NULL at first.
void linker_find_all_next(const char *names, void **found);

// The same as linker_find without functions that are chosen as they are found.
void *linker_search(const char *name);

// Tells that the dynamic linker lies there.
bool linker_is_in(uintptr_t start, uintptr_t end);

// The absolute path that the linker was told for this library; NULL: none, or not known. Takes no
// lock.
const char *linker_own_path(void);

// A thread-local variable: the number of its module, and where it lies in what the module has in
// each thread.
struct linker_local {
    size_t module;
    uintptr_t offset;
};

// The first thread-local variable of that name. False: there is none.
bool linker_find_local(const char *name, struct linker_local *local);

// Its address in the calling thread, as glibc's table of the thread has it; 0: the thread has not
// used it yet.
uintptr_t linker_local_address(const struct linker_local *local);

// Where the first function of that name begins and ends, as its symbol says. False: there is none.
bool linker_find_function(const char *name, uintptr_t *start, uintptr_t *end);

#endif
