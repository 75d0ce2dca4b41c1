// SPDX-License-Identifier: Apache-2.0
// The recording of a process in its core dump: it lay in the process' memory, and the kernel and
// gdb write it out with the rest.
#ifndef TOOL_CORE_RECORDED_H
#define TOOL_CORE_RECORDED_H

#include <limits.h>

#include "format/format.h"
#include "tool/core/image.h"

// Finds the recording's header, which tells its own address. A process may hold that of its parent
// besides: the one with the core's own pid counts. False if there is none.
bool core_find_recording(const struct core_image *core, struct cairn_header *header);

// Copies the recording out of the core into memory that can be opened as the file `path` as long as
// this program runs. Pages that the core lacks are empty there.
bool core_copy_recording(const struct core_image *core, const struct cairn_header *header,
                         char path[PATH_MAX], struct error *error);

#endif
