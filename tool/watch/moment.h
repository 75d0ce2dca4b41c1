// SPDX-License-Identifier: Apache-2.0
// Has a running process remember what every stack holds now: in the memory that it shares with the
// tool. The process is not stopped and takes no note of it (format/moments.h).
#ifndef TOOL_WATCH_MOMENT_H
#define TOOL_WATCH_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/format.h"
#include "tool/base/error.h"

// `header` is a raw recording of `mapped_bytes`, mapped for writing. The reason is
// CAIRN_MOMENT_ASKED or CAIRN_MOMENT_MARK (which begins a generation); `label` may be "", and is
// cut if it is too long. False: the recording is damaged, has no room for another moment, or the
// process was stopped while it took one itself.
bool moment_ask(struct cairn_header *header, uint64_t mapped_bytes, enum cairn_moment_reason reason,
                const char *label, struct error *error);

#endif
