// SPDX-License-Identifier: Apache-2.0
// An ELF file made of what a process has of it in memory, where the file itself is out of reach:
// enough for unwinding, since unwind information and the symbols for others are loaded.
#ifndef TOOL_ATTACH_MEMORY_IMAGE_H
#define TOOL_ATTACH_MEMORY_IMAGE_H

#include <stdint.h>

#include "tool/proc/remote.h"

// Makes the file of the module whose header lies at the address, without its sections. Returns a
// descriptor; -1: there is no such header, or it cannot be read.
int memory_image_open(const struct remote *remote, uint64_t start);

#endif
