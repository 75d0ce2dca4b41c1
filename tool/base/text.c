// SPDX-License-Identifier: Apache-2.0
#include "tool/base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_COLUMNS = 4, ELLIPSIS_BYTES = 3, UTF8_MAX = 4, FIRST_BEYOND_ASCII = 0x80 };
static const char ellipsis[] = "\xe2\x80\xa6";

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t count, uint32_t code) {
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}
#define IS_IN(ranges, code) is_in(ranges, sizeof(ranges) / sizeof *(ranges), code)

// Decodes one well-formed UTF-8 character; 0 if there is none.
static size_t decode(const char *text, size_t size, uint32_t *code) {
    static const uint32_t smallest[UTF8_MAX + 1] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    if (!size) return 0;
    *code = bytes[0];
    if (bytes[0] < 0x80) return 1;
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || length > size) return 0;
    uint32_t value = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (bytes[i] & 0x3fu);
    }
    bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
    if (value < smallest[length] || value > 0x10ffff || is_surrogate) return 0;
    *code = value;
    return length;
}

static bool is_unsafe(uint32_t code) {
    static const struct range unsafe[] = {{0, 0x1f},          {0x7f, 0x9f},     {0x61c, 0x61c},
                                          {0x200b, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f},
                                          {0xfeff, 0xfeff},   {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
                                          {0xf0000, 0x10ffff}};
    return IS_IN(unsafe, code);
}

static bool is_plain(char byte) {
    return byte >= ' ' && byte < 0x7f;
}

size_t text_safe_length(const char *text, size_t size) {
    uint32_t code;
    if (size && is_plain(*text)) return 1;
    size_t length = decode(text, size, &code);
    return length && !is_unsafe(code) ? length : 0;
}

void text_escape(char *out, size_t size, const char *text) {
    size_t left = strlen(text);
    char *end = out + size - 1;
    while (left) {
        size_t length = text_safe_length(text, left);
        size_t needed = length ? length : ESCAPE_COLUMNS;
        if ((size_t)(end - out) < needed) break;
        if (length) {
            memcpy(out, text, length);
        } else {
            char escaped[ESCAPE_COLUMNS + 1];
            snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)*text);
            memcpy(out, escaped, ESCAPE_COLUMNS);
            length = 1;
        }
        out += needed;
        text += length;
        left -= length;
    }
    *out = 0;
}

// The large blocks only: wide for East Asian scripts and emoji, none for combining marks.
static size_t columns_of(uint32_t code) {
    static const struct range combining[] = {
        {0x300, 0x36f}, {0x483, 0x489}, {0x1ab0, 0x1aff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
    static const struct range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0xa4cf},
                                        {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                                        {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                                        {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (code < combining[0].first) return 1;
    if (IS_IN(combining, code)) return 0;
    return IS_IN(wide, code) ? 2 : 1;
}

size_t text_columns(const char *text) {
    size_t columns = 0;
    // of ASCII, which most texts are and all begin with, each byte has a column
    while (*text && (unsigned char)*text < FIRST_BEYOND_ASCII) text++, columns++;
    for (size_t left = strlen(text); left;) {
        uint32_t code;
        size_t length = decode(text, left, &code);
        columns += length ? columns_of(code) : ESCAPE_COLUMNS;
        if (!length) length = 1;
        text += length;
        left -= length;
    }
    return columns;
}

void text_cut(char *text, size_t columns) {
    if (text_columns(text) <= columns) return;
    size_t used = 0, size = strlen(text), at = 0;
    while (at < size) {
        uint32_t code;
        size_t length = decode(text + at, size - at, &code);
        size_t width = length ? columns_of(code) : ESCAPE_COLUMNS;
        if (used + width > columns - 1) break;
        used += width;
        at += length ? length : 1;
    }
    // what is cut off may be shorter than the ellipsis in bytes only if it is one or two bytes of
    // ASCII: then the text before it gives way
    while (size - at < ELLIPSIS_BYTES && at > 0) at--;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
    if (size - at >= ELLIPSIS_BYTES) memcpy(text + at, ellipsis, sizeof ellipsis);
}

// What no shell takes for anything else; beyond ASCII are letters.
static bool is_plain_in_shell(const char *text) {
    for (const char *at = text; *at; at++)
        if (!isalnum((unsigned char)*at) && (unsigned char)*at < FIRST_BEYOND_ASCII &&
            !strchr("_@%+=:,./-", *at))
            return false;
    return *text != 0;
}

static void quote(char *out, size_t size, const char *start, const char *text) {
    FILE *stream = fmemopen(out, size, "w");
    *out = 0;
    if (!stream) return;
    bool is_plain = is_plain_in_shell(text);
    fprintf(stream, "%s%s", is_plain ? "" : "'", start);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stream);
        else
            fputc(*text, stream);
    if (!is_plain) fputc('\'', stream);
    fclose(stream);
    out[size - 1] = 0;
}

void text_quote(char *out, size_t size, const char *text) {
    quote(out, size, *text == '-' ? "./" : "", text);
}

void text_quote_word(char *out, size_t size, const char *text) {
    quote(out, size, "", text);
}

const char *text_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

void text_put_markup(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '"')
            fputs("&quot;", out);
        else
            fputc_unlocked(*text, out);
    }
}

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
};

static bool refuse(const char *text, int number, size_t offset, struct error *error) {
    enum { REASON_BYTES = 160 };
    PCRE2_UCHAR reason[REASON_BYTES];
    if (pcre2_get_error_message(number, reason, sizeof reason) < 0) *reason = 0;
    return error_set(error, "%s, behind character %zu of \"%s\": \"%.*s\" <- here", (char *)reason,
                     offset, text, (int)offset, text);
}

bool pattern_compile(const char *text, struct pattern **pattern, struct error *error) {
    int number;
    PCRE2_SIZE offset;
    struct pattern *made = calloc(1, sizeof *made);
    *pattern = made;
    if (!made) return error_set(error, "no memory for an expression");
    made->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, &number, &offset, NULL);
    bool is_ok = made->code || refuse(text, number, offset, error);
    if (is_ok) {
        pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE);  // without it searches are slower
        made->match = pcre2_match_data_create_from_pattern(made->code, NULL);
        is_ok = made->match || error_set(error, "no memory for an expression");
    }
    if (is_ok) return true;
    pattern_free(made);
    *pattern = NULL;
    return false;
}

void pattern_free(struct pattern *pattern) {
    if (!pattern) return;
    pcre2_match_data_free(pattern->match);
    pcre2_code_free(pattern->code);
    free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text) {
    const uint32_t options = PCRE2_NO_UTF_CHECK;
    int count = pcre2_match(pattern->code, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, options,
                            pattern->match, NULL);
    return count >= 0;
}
