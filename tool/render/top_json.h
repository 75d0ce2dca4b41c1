// SPDX-License-Identifier: Apache-2.0
// `cairn top --once --json`: schema "cairn.top/1" (docs/reference/json.md).
#ifndef TOOL_RENDER_TOP_JSON_H
#define TOOL_RENDER_TOP_JSON_H

#include "tool/render/top_screen.h"

// One process; `rows` are those to be written, in their order. False without memory.
bool top_json_print(FILE *out, const struct top_view *view, const uint32_t *rows, size_t count,
                    struct error *error);
// The processes that are being recorded.
void top_json_print_processes(FILE *out, const struct top_process *processes, size_t count);

#endif
