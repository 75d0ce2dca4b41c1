// SPDX-License-Identifier: Apache-2.0
#include "tool/render/shorten.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "tool/base/text.h"

static const char elision[] = "\xe2\x80\xa6";  // ellipsis
enum { ELISION_BYTES = sizeof elision - 1 };

// A '<' that opens template arguments: behind an identifier that is not the keyword "operator".
static bool opens_arguments(const char *name, const char *at) {
    static const char keyword[] = "operator";
    enum { KEYWORD_LENGTH = sizeof keyword - 1 };
    if (at == name || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) return false;
    bool has_room = at - name >= KEYWORD_LENGTH;
    return !has_room || strncmp(at - KEYWORD_LENGTH, keyword, KEYWORD_LENGTH) != 0;
}

// The '>' that closes the '<' at `at`, or NULL.
static const char *closing(const char *at) {
    int depth = 0;
    for (; *at; at++) {
        if (*at == '<') depth++;
        if (*at == '>' && at[-1] != '-' && --depth == 0) return at;
    }
    return NULL;
}

static void drop_arguments(char *name) {
    char *out = name;
    for (const char *at = name; *at;) {
        const char *end = *at == '<' && opens_arguments(name, at) ? closing(at) : NULL;
        // arguments shorter than what would stand for them stay
        if (!end || end - at - 1 <= ELISION_BYTES) {
            *out++ = *at++;
            continue;
        }
        *out++ = '<';
        memcpy(out, elision, ELISION_BYTES);
        out += ELISION_BYTES;
        *out++ = '>';
        at = end + 1;
    }
    *out = 0;
}

// "a::b::c" -> "…::c", leaving as much as fits.
static void drop_namespaces(char *name, size_t columns) {
    char *best = NULL;
    int depth = 0;
    for (char *at = name; *at; at++) {
        if (*at == '<') depth++;
        if (*at == '>' && depth > 0 && at > name && at[-1] != '-') depth--;
        if (depth || at[0] != ':' || at[1] != ':' || at - name < ELISION_BYTES) continue;
        best = at;
        if (text_columns(at) + 1 <= columns) break;
    }
    if (!best) return;
    memcpy(name, elision, ELISION_BYTES);
    memmove(name + ELISION_BYTES, best, strlen(best) + 1);
}

// "emplace_back<...>" -> "emplace_back": arguments of the function itself say least of all.
static void drop_last_arguments(char *name) {
    static const char *const endings[] = {"<\xe2\x80\xa6>", "<>"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t size = strlen(endings[i]);
        if (length <= size || strcmp(name + length - size, endings[i]) != 0) continue;
        if (opens_arguments(name, name + length - size)) name[length - size] = 0;
        return;
    }
}

// Everybody knows where vector and string come from.
static void drop_std(char *name) {
    static const char prefix[] = "std::";
    enum { PREFIX_LENGTH = sizeof prefix - 1 };
    if (!strncmp(name, prefix, PREFIX_LENGTH))
        memmove(name, name + PREFIX_LENGTH, strlen(name + PREFIX_LENGTH) + 1);
}

void shorten_function(char *name, size_t columns) {
    if (text_columns(name) <= columns) return;
    drop_arguments(name);
    if (text_columns(name) <= columns) return;
    drop_last_arguments(name);
    if (text_columns(name) <= columns) return;
    drop_std(name);
    if (text_columns(name) <= columns) return;
    drop_namespaces(name, columns);
}

void shorten_path(char *path, size_t columns) {
    if (text_columns(path) <= columns) return;
    char *best = NULL;
    for (char *at = path + ELISION_BYTES; at < path + strlen(path); at++) {
        if (*at != '/') continue;
        best = at;
        if (text_columns(at) + 1 <= columns) break;
    }
    if (!best) return;
    memcpy(path, elision, ELISION_BYTES);
    memmove(path + ELISION_BYTES, best, strlen(best) + 1);
}
