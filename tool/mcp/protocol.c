// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/protocol.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/base/version.h"

enum { ERROR_TEXT_BYTES = 1024 };

#define META(name) "io.modelcontextprotocol/" name

const char *mcp_legacy_version(const char *asked) {
    static const char *const versions[] = {"2025-11-25", "2025-06-18", MCP_BATCH_VERSION,
                                           "2024-11-05"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (!strcmp(asked, versions[i])) return versions[i];
    return versions[0];
}

static bool is_id(const json_t *value) {
    return json_is_string(value) || json_is_integer(value);
}

static struct mcp_message malformed(json_t *id, const char *problem) {
    return (struct mcp_message){.kind = MCP_MALFORMED, .id = id, .problem = problem};
}

struct mcp_message mcp_message_of(json_t *value) {
    if (!json_is_object(value)) return malformed(NULL, "a message is an object");
    json_t *id = json_object_get(value, "id"), *method = json_object_get(value, "method");
    json_t *params = json_object_get(value, "params"), *valid_id = is_id(id) ? id : NULL;
    const char *protocol = json_string_value(json_object_get(value, "jsonrpc"));
    if (!protocol || strcmp(protocol, "2.0") != 0)
        return malformed(valid_id, "\"jsonrpc\" is to be \"2.0\"");
    bool is_answer = json_object_get(value, "result") || json_object_get(value, "error");
    if (!method && is_answer) return (struct mcp_message){.kind = MCP_RESPONSE, .id = valid_id};
    if (!json_is_string(method)) return malformed(valid_id, "\"method\" is to be a string");
    if (id && !valid_id) return malformed(NULL, "\"id\" is to be a string or an integer");
    if (params && !json_is_object(params))
        return malformed(valid_id, "\"params\" is to be an object");
    json_t *meta = json_object_get(params, "_meta");
    struct mcp_message message = {.kind = id ? MCP_REQUEST : MCP_NOTIFICATION,
                                  .id = id,
                                  .method = json_string_value(method),
                                  .params = params,
                                  .meta = json_is_object(meta) ? meta : NULL};
    message.version = json_string_value(json_object_get(message.meta, META("protocolVersion")));
    if (message.version && id &&
        !json_is_object(json_object_get(message.meta, META("clientCapabilities")))) {
        message.kind = MCP_MALFORMED;
        message.problem = "_meta lacks \"" META("clientCapabilities") "\"";
    }
    return message;
}

static char *line_of(json_t *message) {
    char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    return line;
}

json_t *mcp_server_info(void) {
    return json_pack("{s:s,s:s,s:s}", "name", "cairn", "title", "cairn, the heap profiler",
                     "version", CAIRN_TOOL_VERSION);
}

char *mcp_result_line(json_t *id, json_t *result, bool is_modern) {
    if (!result) return mcp_error_line(id, MCP_INTERNAL_ERROR, "no memory for the answer", NULL);
    if (is_modern) {
        json_t *meta = json_object_get(result, "_meta");
        if (!meta) json_object_set_new(result, "_meta", json_object());
        meta = json_object_get(result, "_meta");
        json_object_set_new(meta, META("serverInfo"), mcp_server_info());
        json_object_set_new(result, "resultType", json_string("complete"));
    }
    return line_of(json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

char *mcp_error_line(json_t *id, enum mcp_error_code code, const char *text, json_t *data) {
    char safe[ERROR_TEXT_BYTES];  // it may hold a cut piece of what the client wrote
    text_escape(safe, sizeof safe, text);
    json_t *error = json_pack("{s:i,s:s,s:o*}", "code", code, "message", safe, "data", data);
    json_t *message = json_pack("{s:s,s:o}", "jsonrpc", "2.0", "error", error);
    if (message) json_object_set_new(message, "id", id ? json_incref(id) : json_null());
    return line_of(message);
}

char *mcp_notification_line(const char *method, json_t *params) {
    return line_of(
        json_pack("{s:s,s:s,s:o*}", "jsonrpc", "2.0", "method", method, "params", params));
}

void mcp_put_cache_hints(json_t *result, int fresh_ms) {
    json_object_set_new(result, "ttlMs", json_integer(fresh_ms));
    json_object_set_new(result, "cacheScope", json_string("private"));
}
