// SPDX-License-Identifier: Apache-2.0
// The page of `cairn open` as an MCP App (the extension io.modelcontextprotocol/ui): a client that
// has it shows the resource ui://cairn/page beside an answer of the question `page`. The page has
// no data of its own; it asks for those of the recording by `page_data`, which models do not see.
#ifndef TOOL_MCP_APP_H
#define TOOL_MCP_APP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define APP_URI "ui://cairn/page"

// Returns true if the capabilities of a client, which may be NULL, say that it shows apps.
bool app_is_shown_by(const json_t *capabilities);

// The "_meta" of a question in tools/list, by which a client knows that it is of the page.
json_t *app_tool_meta(bool is_shown);
json_t *app_resource(const char *page);

// Finds the data in a page that `cairn open` wrote; NULL: there are none.
const char *app_data_of(const char *page, size_t bytes, size_t *data_bytes);

#endif
