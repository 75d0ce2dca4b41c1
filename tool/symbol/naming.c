// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/naming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/symbol/name.h"
#include "tool/symbol/rename.h"

#define NAME_LENGTH_MAX 8192

static const char *keep(struct string_pool *store, char *name) {
    const char *kept = name ? string_pool_intern(store, name, strlen(name)) : NULL;
    free(name);
    return kept;
}

// Behind the braces of a closure that a function's name ends with; NULL if it does not.
static const char *closure_end(const char *closure) {
    const char *end = strchr(closure, '}');
    if (!end) return NULL;
    while (*end == '}') end++;
    return !*end || *end == '<' ? end : NULL;
}

// "main::{lambda#1}" becomes "main::{lambda draw.cc:12}", where it begins.
static const char *place_closure(struct string_pool *store, const char *name,
                                 const struct symbol_frame *frame) {
    char placed[NAME_LENGTH_MAX];
    const char *closure = frame->file && frame->declared_line ? name_last_closure(name) : NULL;
    const char *end = closure ? closure_end(closure) : NULL;
    if (!end) return name;
    int word = (int)strcspn(closure, "#}");
    int length =
        snprintf(placed, sizeof placed, "%.*s%.*s %s:%u%s", (int)(closure - name), name, word,
                 closure, text_base_name(frame->file), frame->declared_line, strchr(closure, '}'));
    if (length <= 0 || (size_t)length >= sizeof placed) return name;
    return string_pool_intern(store, placed, (size_t)length);
}

bool naming_apply(struct symbol_frame *frame, const struct symbol_options *options,
                  struct string_pool *store) {
    frame->function = frame->plain = NULL;
    if (!frame->linkage) return true;
    const char *name = frame->plain = string_pool_readable(store, frame->linkage);
    if (name && options->has_full_names)
        name = keep(store, name_full(frame->linkage));
    else if (name)
        name = place_closure(store, name, frame);
    if (name && options->renames) name = keep(store, rename_apply(options->renames, name));
    frame->function = name;
    return name;
}
