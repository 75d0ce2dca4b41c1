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
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "format/heap_functions.h"
#include "runtime/process/real.h"
#include "runtime/process/state.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"

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

// Begins a recording in a process that nobody asked to record: `words` are variables, as
// environment_supplement takes them, and stay where they are. 0: there is none by this call, since
// the process is recorded already, or cannot be. Under a limit of memory tables may have been given
// back, which a start needs.
__attribute__((visibility("default"))) int cairn_embed_begin(const char *words) {
    int saved_errno = errno;
    real_resolve();
    bool is_begun = false;
    bool has_room = sys_limit(RLIMIT_AS) == UINT64_MAX && sys_limit(RLIMIT_DATA) == UINT64_MAX;
    if (has_room && !sys_is_confined() &&
        (process_state() == PROCESS_NEW || process_move(PROCESS_INERT, PROCESS_NEW))) {
        environment_supplement(words);
        is_begun = process_start();
    }
    errno = saved_errno;
    return is_begun;
}

// Says whether what cairn_embed_begin began is kept: if not, its file is removed, and none is
// written at the end. Asked again it may be kept after all.
__attribute__((visibility("default"))) void cairn_embed_keep(int is_kept) {
    int saved_errno = errno;
    if (process_state() == PROCESS_RECORDING && sink.is_file &&
        sys_pid() == (int)sink.header->pid) {
        sink.is_lent = !is_kept;
        if (!is_kept) sys_call(SYS_unlinkat, AT_FDCWD, (long)sink.header->destination, 0, 0, 0, 0);
    }
    errno = saved_errno;
}
