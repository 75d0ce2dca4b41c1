// SPDX-License-Identifier: Apache-2.0
// Bytes of blocks and variables, which are looked at one after the other. Of a core dump's small
// ones, which lie apart, mapping each would take the kernel far longer than reading it; the next
// ones may lie behind it, so a window of the file is read.
#ifndef TOOL_HEAP_READ_WINDOW_H
#define TOOL_HEAP_READ_WINDOW_H

#include "tool/heap/image.h"

enum { READ_WINDOW_BYTES = 1 << 12 };

// Zero at first.
struct read_window {
    uint64_t start, end;  // addresses that `bytes` has
    uint8_t bytes[READ_WINDOW_BYTES];
    uint8_t *scratch;  // for larger ones, and those that several segments have
    uint64_t scratch_bytes;
};
void read_window_free(struct read_window *window);

// What the image has from an address on; `size`, how many bytes are wanted, becomes how many there
// are: fewer at the end of what was mapped, and of very large objects. NULL: none, or no memory.
// Valid until the next call.
const uint8_t *read_window_at(struct read_window *window, const struct core_image *core,
                              uint64_t address, uint64_t *size);

#endif
