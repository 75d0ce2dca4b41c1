// SPDX-License-Identifier: Apache-2.0
// The library without a libc, for static programs (libcairn-bare.so). It is the same code as
// libcairn.so, and this room in the place of the few functions of libc that it needs: a static
// program's own cannot be found by name, and may have state that does not exist yet.
#ifndef RUNTIME_BARE_BARE_H
#define RUNTIME_BARE_BARE_H

#include <stddef.h>

// The function of the program without the hook that leads away from it; NULL: it has none.
void *bare_find(const char *name);

// Memory that the tool unmaps with the library.
void bare_keep_mapping(const void *start, size_t bytes);

#endif
