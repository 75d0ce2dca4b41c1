// SPDX-License-Identifier: Apache-2.0
// The slots through which the modules of one namespace call malloc, free and their relatives, led
// elsewhere by this process itself. Each is one aligned word, so that a thread finds the old
// function or the new one. What tool/attach/got_patch.c does from outside, as narrowly: a slot is
// taken only if it leads where the linker's own search leads, or was not used yet.
#ifndef RUNTIME_INJECT_GOT_PATCH_H
#define RUNTIME_INJECT_GOT_PATCH_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/attachment.h"

// A function of that name is led elsewhere: where it is, and where its callers are to go.
typedef bool got_lookup(void *context, const char *name, uintptr_t *real, uintptr_t *way);

// The same for the slots of one module; how many lead there now. The caller holds the dynamic
// linker's lock.
uint32_t got_patch_module(const struct dl_phdr_info *info, got_lookup *find, void *context);

// Leads all slots of the namespace's modules, `map` being the first, to its ways, after the real
// functions were found. The caller holds the dynamic linker's lock. False: its malloc is not its
// libc's, or cannot be found, and nothing was changed.
bool got_patch_namespace(const struct link_map *map, uintptr_t real[CAIRN_NAMESPACE_COUNT],
                         uintptr_t ways);

#endif
