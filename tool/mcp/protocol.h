// SPDX-License-Identifier: Apache-2.0
// Messages of the Model Context Protocol: JSON-RPC 2.0, a line of JSON each.
//
// The protocol has two eras, and a client may speak either at any time. Modern (2026-07-28): each
// request says its version in params._meta, and each result says that it is complete and whose it
// is. Legacy (2025-11-25 and before): `initialize` settles the version once, for the process.
#ifndef TOOL_MCP_PROTOCOL_H
#define TOOL_MCP_PROTOCOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum mcp_error_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_RESOURCE_NOT_FOUND = -32002,  // legacy; modern: invalid params
    MCP_UNSUPPORTED_VERSION = -32022,
};

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_BATCH_VERSION "2025-03-26"  // the only one in which a line may be an array of messages
// The version that `initialize` is answered with: the one that was asked for, else the newest that
// has the handshake.
const char *mcp_legacy_version(const char *asked);

enum mcp_kind {
    MCP_REQUEST,       // has an id: wants an answer
    MCP_NOTIFICATION,  // has none
    MCP_RESPONSE,      // to a request of ours: we make none, so that it is of no interest
    MCP_MALFORMED,     // `problem` says why; the id is used if there is a valid one
};

struct mcp_message {
    enum mcp_kind kind;
    json_t *id;           // a string or an integer; NULL: none. Borrowed, like all below
    const char *method;   // NULL unless a request or notification
    json_t *params;       // an object; NULL: there are none
    json_t *meta;         // params._meta, if it is an object
    const char *version;  // of a modern request; NULL: legacy
    const char *problem;
};

// What a JSON value is as a message.
struct mcp_message mcp_message_of(json_t *value);

// Lines to send, without the newline, for free(); NULL without memory. `id` is borrowed, `result`,
// `data` and `params` are taken over (NULL: none; a failed json_pack of a result is NULL as well).
char *mcp_result_line(json_t *id, json_t *result, bool is_modern);
char *mcp_error_line(json_t *id, enum mcp_error_code code, const char *text, json_t *data);
char *mcp_notification_line(const char *method, json_t *params);

// Adds the hints for caches that a modern result of a list must have; takes NULL.
void mcp_put_cache_hints(json_t *result, int fresh_ms);
json_t *mcp_server_info(void);

#endif
