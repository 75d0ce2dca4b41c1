// SPDX-License-Identifier: Apache-2.0
// The recording of a process that runs, mapped for writing: its control words are how the tool asks
// for something. The process is not stopped, and need not answer: it looks at the words as it
// allocates.
//
// Whoever may write the memory may write anything there, and so may the process: nothing read from
// it is believed, and nothing written leads the runtime to an address.
#ifndef TOOL_WATCH_CONTROL_H
#define TOOL_WATCH_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/base/error.h"

struct control {
    struct cairn_header *header;  // the whole mapping
    uint64_t bytes;
};

// Maps the recording at `path`. False if it is none, may not be written, or its process is over.
bool control_open(const char *path, struct control *control, struct error *error);
void control_close(struct control *control);

// Nanoseconds since the recording began.
uint64_t control_age_ns(const struct cairn_header *header);

// A section by its kind, and the only entry of one; NULL: the recording has none.
struct cairn_section *control_section(const struct control *control, uint32_t kind);
void *control_entry(const struct control *control, uint32_t kind, size_t entry_bytes);

// One sample in so many bytes from now on. False if the process does not sample.
bool control_set_rate(const struct control *control, uint64_t rate_bytes, struct error *error);

// Switches recording off or on. Returns whether it was off.
bool control_set_off(struct cairn_header *header, bool is_off);

#endif
