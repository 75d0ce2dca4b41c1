// SPDX-License-Identifier: Apache-2.0
// Writes JSON as a stream: no tree in memory, commas and escapes done here, always valid UTF-8
// (bytes that are not become the characters \xNN) and never a NaN. `key` is NULL inside arrays.
// (The names keep clear of those of jansson, which tests link too.)
#ifndef TOOL_BASE_JSON_H
#define TOOL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 16
#define JSON_LINE_DEPTH 2  // members up to this depth start a line of their own

struct json {
    FILE *out;
    int depth;
    bool has_members[JSON_DEPTH_MAX];
    char closers[JSON_DEPTH_MAX];
};

void json_start(struct json *json, FILE *out);
// What is written are members of an array elsewhere, for json_put_written; nothing ends it.
void json_start_members(struct json *json, FILE *out);
void json_open_object(struct json *json, const char *key);  // ends with json_close
void json_open_array(struct json *json, const char *key);   // ends with json_close
void json_close(struct json *json);
void json_put_string(struct json *json, const char *key, const char *value);  // NULL: null
void json_put_int(struct json *json, const char *key, int64_t value);
void json_put_uint(struct json *json, const char *key, uint64_t value);
void json_put_thousandths(struct json *json, const char *key, unsigned thousandths);  // 0.071
void json_put_bool(struct json *json, const char *key, bool value);
void json_put_null(struct json *json, const char *key);
// One or more members of an array that were written before: JSON, with commas between them.
void json_put_written(struct json *json, const char *text, size_t length);

#endif
