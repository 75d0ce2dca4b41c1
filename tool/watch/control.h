// SPDX-License-Identifier: Apache-2.0
// The recording of a running process, mapped for writing: by its control words the tool asks for
// something, such as a snapshot of what every stack holds. The process is not stopped and need not
// answer: it reads the words when it allocates.
//
// Anyone who may write the memory may write anything there, and so may the process: nothing read
// from it is believed, and nothing written leads the runtime to an address.
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

// `header` is a raw recording of `mapped_bytes`, mapped for writing. The reason is
// CAIRN_SNAPSHOT_ASKED or CAIRN_SNAPSHOT_MARK (which begins a generation); `label` may be "", and
// is cut if it is too long. False: the recording is damaged, has no room for another snapshot, or
// the process was stopped while it took one itself.
bool control_take_snapshot(struct cairn_header *header, uint64_t mapped_bytes,
                           enum cairn_snapshot_reason reason, const char *label,
                           struct error *error);

#endif
