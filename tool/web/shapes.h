// SPDX-License-Identifier: Apache-2.0
// What the blocks of stacks were like, what stands out, and which thread allocated what, for the
// page.
#ifndef TOOL_WEB_SHAPES_H
#define TOOL_WEB_SHAPES_H

#include "tool/model/profile.h"
#include "tool/web/sink.h"

// Chunks "shapes" and "findings" (JSON), and if several threads allocated, columns "cell.stack",
// "cell.slot", "cell.peak", "cell.exit", "cell.allocated", "cell.calls": sums by stack and slot.
// False without memory.
bool shapes_put(struct sink *sink, const struct profile *profile, struct error *error);

#endif
