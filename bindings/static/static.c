// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker does for the preloaded library, done by the static one.
//
// The Makefile makes two archives of the same objects. In libcairn_static.a the hooks are called
// __wrap_malloc and so on and the real functions __real_malloc, as the linker's option
// --wrap=malloc has it. In libcairn_embed.a they are cairn_embed_malloc and malloc: for allocators
// that call them by name (bindings/rust).
//
// The program records itself only if it was asked to: under `cairn run`, or with CAIRN_OUTPUT set.
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "format/heap_functions.h"
#include "runtime/sys/environment.h"

#define REAL(result, name, parameters) extern result __real_##name parameters;
CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_WHOLE, REAL)
#undef REAL

// glibc's lies beside malloc, so that it is there if that one is; no other allocator has it.
extern int malloc_info(int options, void *file) __attribute__((weak));
extern int pthread_key_create(unsigned *key, void (*destructor)(void *));
extern int pthread_setspecific(unsigned key, const void *value);

static const struct {
    const char *name;
    void *address;
} symbols[] = {{"gnu_get_libc_version", (void *)malloc_info},
               {"pthread_key_create", (void *)pthread_key_create},
               {"pthread_setspecific", (void *)pthread_setspecific},
#define REAL(name) {#name, (void *)__real_##name},
               CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_NAME, REAL)
#undef REAL
};

void *cairn_static_symbol(void *handle, const char *name) {
    (void)handle;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (!strcmp(symbols[i].name, name)) return symbols[i].address;
    return NULL;
}

// By this section `cairn run` knows that the program needs no preloading.
__attribute__((section(".note.cairn"), used, aligned(4))) static const struct {
    unsigned name_bytes, text_bytes, type;
    char name[8];
} note = {sizeof "cairn", 0, 1, "cairn"};
