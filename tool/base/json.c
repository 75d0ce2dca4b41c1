// SPDX-License-Identifier: Apache-2.0
#include "tool/base/json.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"

static void put_byte(FILE *out, unsigned char byte) {
    if (byte == '"' || byte == '\\')
        fprintf(out, "\\%c", byte);
    else if (byte == '\n')
        fputs("\\n", out);
    else if (byte == '\t')
        fputs("\\t", out);
    else if (byte < 0x20 || byte == 0x7f)
        fprintf(out, "\\u%04x", byte);
    else if (byte < 0x80)
        fputc(byte, out);
    else
        fprintf(out, "\\\\x%02x", byte);
}

// Bytes from the start of `text` that need no escape: nearly all texts are nothing else.
static size_t plain_length(const char *text) {
    size_t length = 0;
    for (unsigned char byte; (byte = (unsigned char)text[length]) >= ' ' && byte < 0x7f; length++)
        if (byte == '"' || byte == '\\') break;
    return length;
}

static void put_string(FILE *out, const char *text) {
    fputc_unlocked('"', out);
    size_t plain = plain_length(text);
    fwrite_unlocked(text, 1, plain, out);
    text += plain;
    for (size_t left = strlen(text); left;) {
        size_t length = text_safe_length(text, left);
        if (length > 1) {
            fwrite(text, 1, length, out);
        } else {
            put_byte(out, (unsigned char)*text);
            length = 1;
        }
        text += length;
        left -= length;
    }
    fputc_unlocked('"', out);
}

// Comma, line and key of the next member.
static void put_start(struct json *json, const char *key) {
    if (json->depth > 0) {
        bool *has_members = &json->has_members[json->depth - 1];
        if (*has_members) fputc_unlocked(',', json->out);
        if (json->depth <= JSON_LINE_DEPTH && json->closers[json->depth - 1] == ']')
            fputc_unlocked('\n', json->out);
        else if (json->depth == 1 && *has_members)
            fputc_unlocked('\n', json->out);
        *has_members = true;
    }
    if (!key) return;
    put_string(json->out, key);
    fputc_unlocked(':', json->out);
}

static void open_level(struct json *json, const char *key, char opener, char closer) {
    put_start(json, key);
    fputc_unlocked(opener, json->out);
    if (json->depth >= JSON_DEPTH_MAX) return;
    json->has_members[json->depth] = false;
    json->closers[json->depth++] = closer;
}

void json_start(struct json *json, FILE *out) {
    *json = (struct json){.out = out};
}

void json_start_members(struct json *json, FILE *out) {
    *json = (struct json){.out = out, .depth = JSON_LINE_DEPTH + 1};
}

void json_open_object(struct json *json, const char *key) {
    open_level(json, key, '{', '}');
}

void json_open_array(struct json *json, const char *key) {
    open_level(json, key, '[', ']');
}

void json_close(struct json *json) {
    if (!json->depth) return;
    fputc_unlocked(json->closers[--json->depth], json->out);
    if (!json->depth) fputc('\n', json->out);
}

void json_put_string(struct json *json, const char *key, const char *value) {
    put_start(json, key);
    if (value)
        put_string(json->out, value);
    else
        fputs("null", json->out);
}

static void put_number(FILE *out, uint64_t value, bool is_negative) {
    enum { DIGITS_MAX = 24, BASE = 10 };
    char digits[DIGITS_MAX], *at = digits + DIGITS_MAX;
    do *--at = (char)('0' + value % BASE);
    while (value /= BASE);
    if (is_negative) *--at = '-';
    fwrite_unlocked(at, 1, (size_t)(digits + DIGITS_MAX - at), out);
}

void json_put_int(struct json *json, const char *key, int64_t value) {
    put_start(json, key);
    put_number(json->out, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void json_put_uint(struct json *json, const char *key, uint64_t value) {
    put_start(json, key);
    put_number(json->out, value, false);
}

void json_put_thousandths(struct json *json, const char *key, unsigned thousandths) {
    const unsigned whole = 1000;
    put_start(json, key);
    fprintf(json->out, "%u.%03u", thousandths / whole, thousandths % whole);
}

void json_put_bool(struct json *json, const char *key, bool value) {
    put_start(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_put_null(struct json *json, const char *key) {
    json_put_string(json, key, NULL);
}

void json_put_written(struct json *json, const char *text, size_t length) {
    put_start(json, NULL);
    fwrite_unlocked(text, 1, length, json->out);
}
