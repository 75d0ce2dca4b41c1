// SPDX-License-Identifier: Apache-2.0
// What a core dump says about its process beside the memory: its number, its threads with their
// registers, which files were mapped where (the ELF notes NT_PRPSINFO, NT_PRSTATUS, NT_FILE and
// NT_AUXV of 64-bit machines, as elf(5) and <sys/procfs.h> lay them out).
#ifndef TOOL_CORE_NOTES_H
#define TOOL_CORE_NOTES_H

#include "tool/core/image.h"

// Reads the notes that lie in these bytes of the file into the image. What is damaged or cut off
// is left out. False without memory.
bool core_read_notes(struct core_image *core, uint64_t offset, uint64_t size);

// Those of the words that the kernel leaves for the program (NT_AUXV, /proc/PID/auxv).
void core_read_vector(struct core_image *core, const uint8_t *bytes, size_t size);

// One ELF note of a block of them.
struct core_note {
    uint32_t type;
    const uint8_t *bytes;  // in that block
    size_t size;
};

// The next note from offset `*at` on, which moves behind it; false at the end, or at one that does
// not fit into the block.
bool core_next_note(const uint8_t *block, size_t size, size_t *at, struct core_note *note);

#endif
