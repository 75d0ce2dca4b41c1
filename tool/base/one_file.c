// SPDX-License-Identifier: Apache-2.0
#include "tool/base/one_file.h"

#include <string.h>

#ifdef CAIRN_ONE_FILE
// The assembler reads the libraries in; the Makefile makes this file's object depend on them.
#define CARRY(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n.balign 16\n" #symbol ":\n.incbin \"" CAIRN_ONE_FILE "/" file   \
            "\"\n" #symbol "_end:\n.byte 0\n.popsection\n");                                       \
    extern const unsigned char symbol[], symbol##_end[];
CARRY(carried_runtime, "libcairn.so")
CARRY(carried_runtime_cxx, "libcairn-cxx.so")
CARRY(carried_runtime_musl, "libcairn-musl.so")
CARRY(carried_torture, "libcairn-torture.so")
#if defined(__x86_64__)
CARRY(carried_bare, "libcairn-bare.so")
#endif
CARRY(carried_driver, "cairn-replay")

static const struct carried_library libraries[] = {
    {"libcairn.so", carried_runtime, carried_runtime_end},
    {"libcairn-cxx.so", carried_runtime_cxx, carried_runtime_cxx_end},
    {"libcairn-musl.so", carried_runtime_musl, carried_runtime_musl_end},
    {"libcairn-torture.so", carried_torture, carried_torture_end},
#if defined(__x86_64__)
    {"libcairn-bare.so", carried_bare, carried_bare_end},
#endif
    {"cairn-replay", carried_driver, carried_driver_end},
    {NULL, NULL, NULL},
};

static const struct terminal {
    const char *name, *description;
} terminals[] = {
#include CAIRN_TERMINALS
    {NULL, NULL},
};

// libdw would load libdebuginfod, and with it this system's libc beside ours. cairn asks for
// debug information by running debuginfod-find.
void *__wrap_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags) {
    (void)path, (void)flags;
    return NULL;
}
#else
static const struct carried_library libraries[] = {{NULL, NULL, NULL}};
static const struct terminal { const char *name, *description; } terminals[] = {{NULL, NULL}};
#endif

const struct carried_library *one_file_library(const char *name) {
    for (const struct carried_library *library = libraries; library->name; library++)
        if (!strcmp(library->name, name)) return library;
    return NULL;
}

const char *one_file_terminal(const char *name) {
    for (const struct terminal *terminal = terminals; terminal->name; terminal++)
        if (!strcmp(terminal->name, name)) return terminal->description;
    return NULL;
}
