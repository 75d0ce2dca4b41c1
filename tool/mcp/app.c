// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/app.h"

#include <string.h>

#define EXTENSION "io.modelcontextprotocol/ui"
#define MIME_TYPE "text/html;profile=mcp-app"

bool app_is_shown_by(const json_t *capabilities) {
    const json_t *extension =
        json_object_get(json_object_get(capabilities, "extensions"), EXTENSION);
    const json_t *types = json_object_get(extension, "mimeTypes");
    size_t i;
    json_t *type;
    json_array_foreach(types, i, type) {
        const char *text = json_string_value(type);
        if (text && !strcmp(text, MIME_TYPE)) return true;
    }
    return false;
}

json_t *app_tool_meta(bool is_shown) {
    if (is_shown) return json_pack("{s:{s:s}}", "ui", "resourceUri", APP_URI);
    return json_pack("{s:{s:s,s:[s]}}", "ui", "resourceUri", APP_URI, "visibility", "app");
}

// The page asks nobody but its host: there is nothing that its policy would have to allow.
json_t *app_resource(const char *page) {
    return json_pack("{s:[{s:s,s:s,s:s,s:{s:{s:b}}}]}", "contents", "uri", APP_URI, "mimeType",
                     MIME_TYPE, "text", page, "_meta", "ui", "prefersBorder", 0);
}

const char *app_data_of(const char *page, size_t bytes, size_t *data_bytes) {
    static const char before[] = "id=\"data\">", behind[] = "</script>";
    const char *start = memmem(page, bytes, before, sizeof before - 1);
    if (!start) return NULL;
    start += sizeof before - 1;
    size_t left = bytes - (size_t)(start - page);
    const char *end = memmem(start, left, behind, sizeof behind - 1);
    *data_bytes = end ? (size_t)(end - start) : 0;
    return end && end > start ? start : NULL;
}
