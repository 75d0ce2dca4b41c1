// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/entry_names.h"

#include <stdlib.h>
#include <string.h>

enum { IN_ALL = IN_PLAIN | IN_JE | IN_TC | IN_MI, WITH_JEMALLOC = 1 << FAMILY_COUNT };

static const struct {
    const char *prefix, *allocator;
} families[FAMILY_COUNT] = {
    [FAMILY_PLAIN] = {"", "its own malloc"},
    [FAMILY_RJEM] = {"_rjem_", "jemalloc"},
    [FAMILY_JE] = {"je_", "jemalloc"},
    [FAMILY_TC] = {"tc_", "tcmalloc"},
    [FAMILY_MI] = {"mi_", "mimalloc"},
    [FAMILY_PYTHON_OBJECTS] = {"_PyObject_Mi", "CPython's mimalloc"},
    [FAMILY_PYTHON_MEMORY] = {"_PyMem_Mi", "CPython's mimalloc"},
};

// In the order of strcmp. WITH_JEMALLOC: without a prefix only where mallctl is defined as well,
// since others may use these names.
static const struct entry_name entry_names[] = {
    {"Calloc", CAIRN_ENTRY_ARENA_CALLOC, IN_PYTHON},
    {"Free", CAIRN_ENTRY_ARENA_FREE, IN_PYTHON},
    {"Malloc", CAIRN_ENTRY_ARENA_ALLOC, IN_PYTHON},
    {"Realloc", CAIRN_ENTRY_ARENA_REALLOC, IN_PYTHON},
    {"_ZdaPv", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvm", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdaPvmSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPv", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvm", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_ZdlPvmSt11align_val_t", CAIRN_ENTRY_FREE, IN_PLAIN},
    {"_Znam", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnamRKSt9nothrow_t", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnamSt11align_val_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"_Znwm", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnwmRKSt9nothrow_t", CAIRN_ENTRY_ALLOC, IN_PLAIN},
    {"_ZnwmSt11align_val_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", CAIRN_ENTRY_NEW, IN_PLAIN},
    {"__malloc_arena_thread_freeres", CAIRN_ENTRY_INSIDE, IN_PLAIN},
    {"aligned_alloc", CAIRN_ENTRY_ALIGNED, IN_ALL},
    {"calloc", CAIRN_ENTRY_CALLOC, IN_ALL},
    {"calloc_aligned", CAIRN_ENTRY_CALLOC, IN_MI},
    {"cfree", CAIRN_ENTRY_FREE, IN_ALL},
    {"dallocx", CAIRN_ENTRY_FREE, IN_JE | WITH_JEMALLOC},
    {"delete", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_aligned_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_sized", CAIRN_ENTRY_FREE, IN_TC},
    {"delete_sized_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_aligned_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_nothrow", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_sized", CAIRN_ENTRY_FREE, IN_TC},
    {"deletearray_sized_aligned", CAIRN_ENTRY_FREE, IN_TC},
    {"free", CAIRN_ENTRY_FREE, IN_ALL},
    {"free_aligned", CAIRN_ENTRY_FREE, IN_MI},
    {"free_aligned_sized", CAIRN_ENTRY_FREE, IN_PLAIN | IN_JE},
    {"free_size", CAIRN_ENTRY_FREE, IN_MI},
    {"free_size_aligned", CAIRN_ENTRY_FREE, IN_MI},
    {"free_sized", CAIRN_ENTRY_FREE, IN_PLAIN | IN_JE | IN_TC},
    {"malloc", CAIRN_ENTRY_ALLOC, IN_ALL},
    {"malloc_aligned", CAIRN_ENTRY_NEW, IN_MI},
    {"malloc_small", CAIRN_ENTRY_ALLOC, IN_MI},
    {"mallocn", CAIRN_ENTRY_CALLOC, IN_MI},
    {"mallocx", CAIRN_ENTRY_ALLOC, IN_JE | WITH_JEMALLOC},
    {"memalign", CAIRN_ENTRY_ALIGNED, IN_ALL},
    {"moz_arena_calloc", CAIRN_ENTRY_ARENA_CALLOC, IN_PLAIN},
    {"moz_arena_free", CAIRN_ENTRY_ARENA_FREE, IN_PLAIN},
    {"moz_arena_malloc", CAIRN_ENTRY_ARENA_ALLOC, IN_PLAIN},
    {"moz_arena_memalign", CAIRN_ENTRY_ARENA_ALIGNED, IN_PLAIN},
    {"moz_arena_realloc", CAIRN_ENTRY_ARENA_REALLOC, IN_PLAIN},
    {"new", CAIRN_ENTRY_ALLOC, IN_TC | IN_MI},
    {"new_aligned", CAIRN_ENTRY_NEW, IN_TC | IN_MI},
    {"new_aligned_nothrow", CAIRN_ENTRY_NEW, IN_TC | IN_MI},
    {"new_n", CAIRN_ENTRY_CALLOC, IN_MI},
    {"new_nothrow", CAIRN_ENTRY_ALLOC, IN_TC | IN_MI},
    {"new_realloc", CAIRN_ENTRY_REALLOC, IN_MI},
    {"new_reallocn", CAIRN_ENTRY_REARRAY, IN_MI},
    {"newarray", CAIRN_ENTRY_ALLOC, IN_TC},
    {"newarray_aligned", CAIRN_ENTRY_NEW, IN_TC},
    {"newarray_aligned_nothrow", CAIRN_ENTRY_NEW, IN_TC},
    {"newarray_nothrow", CAIRN_ENTRY_ALLOC, IN_TC},
    {"posix_memalign", CAIRN_ENTRY_MEMALIGN, IN_ALL},
    {"pvalloc", CAIRN_ENTRY_ALLOC, IN_ALL},
    {"rallocx", CAIRN_ENTRY_REALLOC, IN_JE | WITH_JEMALLOC},
    {"realloc", CAIRN_ENTRY_REALLOC, IN_ALL},
    {"realloc_aligned", CAIRN_ENTRY_REALLOC, IN_MI},
    {"reallocarray", CAIRN_ENTRY_REARRAY, IN_ALL},
    {"reallocn", CAIRN_ENTRY_REARRAY, IN_MI},
    {"rezalloc", CAIRN_ENTRY_REALLOC, IN_MI},
    {"rezalloc_aligned", CAIRN_ENTRY_REALLOC, IN_MI},
    {"sdallocx", CAIRN_ENTRY_FREE, IN_JE | WITH_JEMALLOC},
    {"valloc", CAIRN_ENTRY_ALLOC, IN_ALL},
    {"xallocx", CAIRN_ENTRY_RESIZE, IN_JE | WITH_JEMALLOC},
    {"zalloc", CAIRN_ENTRY_ALLOC, IN_MI},
    {"zalloc_aligned", CAIRN_ENTRY_NEW, IN_MI},
    {"zalloc_small", CAIRN_ENTRY_ALLOC, IN_MI},
};
enum { ENTRY_NAMES = sizeof entry_names / sizeof *entry_names };

static int compare_name(const void *key, const void *item) {
    return strcmp(key, ((const struct entry_name *)item)->name);
}

static bool is_without_prefix(const struct entry_name *name) {
    return name->where & (IN_PLAIN | WITH_JEMALLOC);
}

void entry_names_want(struct elf_names *names) {
    for (unsigned family = FAMILY_PLAIN + 1; family < FAMILY_COUNT; family++)
        elf_names_want(names, families[family].prefix);
    for (size_t i = 0; i < ENTRY_NAMES; i++)
        if (is_without_prefix(&entry_names[i])) elf_names_want(names, entry_names[i].name);
}

enum entry_family entry_family_of(const char **name) {
    for (unsigned family = FAMILY_PLAIN + 1; family < FAMILY_COUNT; family++) {
        size_t length = strlen(families[family].prefix);
        if (strncmp(*name, families[family].prefix, length) != 0) continue;
        *name += length;
        return family;
    }
    return FAMILY_PLAIN;
}

const char *entry_family_allocator(enum entry_family family) {
    return families[family].allocator;
}

const struct entry_name *entry_name_find(const char *rest, enum entry_family family) {
    const struct entry_name *found =
        bsearch(rest, entry_names, ENTRY_NAMES, sizeof *entry_names, compare_name);
    bool is_there = found && (family == FAMILY_PLAIN ? is_without_prefix(found)
                                                     : (found->where & 1u << family) != 0);
    return is_there ? found : NULL;
}
