// SPDX-License-Identifier: Apache-2.0
// Lines of source around the places that hold the most, as far as the sources can be read here, so
// that a page shows them where they are not.
#ifndef TOOL_WEB_SOURCES_H
#define TOOL_WEB_SOURCES_H

#include "tool/export/frame_table.h"
#include "tool/web/sink.h"

// A chunk "sources": {"path": [[number of the first line, "its text", "the next", ...], ...]}.
// False without memory.
bool sources_put(struct sink *sink, struct frame_table *frames, struct error *error);

#endif
