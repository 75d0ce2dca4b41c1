// SPDX-License-Identifier: Apache-2.0
// The memory of one recorded process: a sealed memfd that the tool makes and holds, so that what
// was counted outlives the process however it ends; and that memory as a file.
#ifndef TOOL_WATCH_MEMORY_H
#define TOOL_WATCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/base/error.h"

// Of the smallest memory that something can be recorded in.
#define MEMORY_LEAST_BYTES (UINT64_C(16) << 20)

struct memory {
    int file;  // the memfd, -1 when closed
    uint64_t bytes;
    struct cairn_header *header;  // the whole mapping
};

bool memory_make(struct memory *memory, struct error *error);
// The same of a memfd that is there already, empty, and can be sealed; it is closed if this fails.
bool memory_adopt(struct memory *memory, int file, struct error *error);
void memory_close(struct memory *memory);
// The same memory once more, to be read and closed for itself. False: there is nothing to be read.
bool memory_share(const struct memory *memory, struct memory *shared);
// The section of this kind with room for `size` bytes; NULL: there is none. The process wrote the
// table of sections, so it is checked.
struct cairn_section *memory_section(const struct memory *memory, uint32_t kind, uint64_t size);

// What the tool knows and the process does not, to be written into the file's header.
struct memory_end {
    bool is_over;
    bool has_exit;
    int exit_status, exit_signal;
    uint64_t rss_peak_bytes;
    bool is_rss_exact;  // the kernel's own account, not the highest value seen
    uint64_t cpu_ns;
    uint64_t end_ns;               // CLOCK_MONOTONIC
    bool is_checkpoint;            // it is not over, and a file is to say so
    uint64_t checkpoint_pause_ns;  // until the next one is due; 0: there will be none
};

// How the process ended, as waitpid says it.
void memory_end_set_status(struct memory_end *end, int status);

// Puts what the tool knows into a copy of the header.
void memory_finish(struct cairn_header *copy, const struct memory_end *end);

// Writes the recording to `path` by way of a temporary name; an older file there is replaced.
// Packed (format/packed.h) if the process is over and there is memory for it, else compact: it may
// go on changing the memory.
bool memory_save(const struct memory *memory, const struct memory_end *end, const char *path,
                 struct error *error);
// The same into an open, empty file.
bool memory_write(const struct memory *memory, const struct memory_end *end, int file,
                  struct error *error);

#endif
