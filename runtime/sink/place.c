// SPDX-License-Identifier: Apache-2.0
#include "runtime/sink/place.h"

#include <string.h>

#include "format/format.h"
#include "format/settings.h"
#include "runtime/sys/environment.h"
#include "runtime/sys/sys.h"

// A string being put together; once too long it stays marked.
struct text {
    char *start;
    size_t size, used;
    bool is_too_long;
};

static void text_add(struct text *text, const char *piece, size_t length) {
    if (length >= text->size - text->used) {
        text->is_too_long = true;
        return;
    }
    memcpy(text->start + text->used, piece, length);
    text->used += length;
    text->start[text->used] = 0;
}

static void text_add_number(struct text *text, unsigned number) {
    char digits[16];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    text_add(text, digits + at, sizeof digits - at);
}

static void text_add_name(struct text *text) {
    char path[CAIRN_TEXT_PATH];
    environment_executable(path, sizeof path);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : "program";
    text_add(text, name, strcspn(name, " "));
}

static void text_add_template(struct text *text, const char *pattern) {
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            text_add_number(text, (unsigned)sys_pid());
            pattern++;
        } else if (pattern[0] == '%' && pattern[1] == 'n') {
            text_add_name(text);
            pattern++;
        } else {
            text_add(text, pattern, 1);
        }
    }
}

// NAME.cairn becomes NAME.2.cairn.
static void text_number(struct text *text, unsigned attempt) {
    char tail[CAIRN_TEXT_PATH];
    const char *slash = strrchr(text->start, '/');
    char *dot = strrchr(text->start, '.');
    if (!dot || (slash && dot < slash)) dot = text->start + text->used;
    size_t tail_length = (size_t)(text->start + text->used - dot);
    memcpy(tail, dot, tail_length);
    text->used = (size_t)(dot - text->start);
    text_add(text, ".", 1);
    text_add_number(text, attempt);
    text_add(text, tail, tail_length);
}

// As the environment had it first: a program may empty that, and its children still have a place.
static APART char kept_pattern[CAIRN_TEXT_PATH];

void place_remember(void) {
    const char *pattern = environment_get(CAIRN_VARIABLE(OUTPUT));
    size_t length = pattern ? strlen(pattern) : 0;
    if (length && length < sizeof kept_pattern && !kept_pattern[0])
        memcpy(kept_pattern, pattern, length + 1);
}

void place_path(char *path, size_t size, unsigned attempt) {
    struct text text = {path, size, 0, false};
    char directory[CAIRN_TEXT_PATH];
    const char *pattern = environment_get(CAIRN_VARIABLE(OUTPUT));
    path[0] = 0;
    if (!pattern || !pattern[0]) pattern = kept_pattern[0] ? kept_pattern : "%n.%p.cairn";
    environment_directory(directory, sizeof directory);
    if (pattern[0] != '/') {
        if (directory[0] != '/') return;  // it was removed, or lies outside the root
        text_add(&text, directory, strlen(directory));
        if (directory[1]) text_add(&text, "/", 1);
    }
    text_add_template(&text, pattern);
    if (attempt && !text.is_too_long) text_number(&text, attempt);
    if (text.is_too_long) path[0] = 0;
}
