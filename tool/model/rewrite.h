// SPDX-License-Identifier: Apache-2.0
// Writes a recording anew with one section exchanged; everything else stays as it is.
#ifndef TOOL_MODEL_REWRITE_H
#define TOOL_MODEL_REWRITE_H

#include <stddef.h>

#include "format/format.h"
#include "tool/base/error.h"

// Gives the file at `path` a section of entries, in the place of the one of that kind that it may
// have. The file is packed afterwards. It takes the old one's place only when it is whole; no
// process may be writing to the old one.
bool recording_set_section(const char *path, enum cairn_section_kind kind, uint32_t entry_bytes,
                           const void *bytes, size_t size, struct error *error);

#endif
