// SPDX-License-Identifier: Apache-2.0
// The loaded library or executable that a code address lies in, as the dynamic linker knows it.
//
// glibc 2.35 and later answer without a lock (_dl_find_object); elsewhere dl_iterate_phdr walks the
// list under the linker's lock. That is only done for a code address never seen before.
#ifndef RUNTIME_SYS_OBJECT_H
#define RUNTIME_SYS_OBJECT_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct object {
    uintptr_t start, end;         // the whole mapping
    uintptr_t bias;               // address = bias + virtual address in the file
    const uint8_t *eh_frame_hdr;  // NULL if it has none
    const char *path;             // the linker's name: "" for the executable; valid while loaded
    const Elf64_Phdr *segments;   // NULL if not found
    uint32_t segment_count;
};

// Looks for the dynamic linker's lock-free lookup; once, before the first object_find.
void object_init(void);

// False if no object covers `pc` (generated code). Not to be called from a signal handler that
// interrupted the dynamic linker, hence only behind the gate.
bool object_find(uintptr_t pc, struct object *object);

#endif
