// SPDX-License-Identifier: Apache-2.0
// From the innermost frame outwards: the first class of a standard library that its users know by
// name (no underscores, no allocator) is the container. Without one, an allocator's argument is the
// element. The search ends where the library ends: what called it allocates no object of its own.
#include "tool/render/types.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"

static const char no_type[] = "[no type known]";

// Behind the last "::" of `name` that is not within template arguments; `name` if there is none.
static const char *last_part(const char *name, const char *end) {
    const char *part = name;
    int depth = 0;
    for (const char *at = name; at < end; at++) {
        if (*at == '<') depth++;
        if (*at == '>' && depth) depth--;
        if (*at == '(' && !depth) break;
        if (!depth && at[0] == ':' && at[1] == ':') part = at + 2;
    }
    return part;
}

static bool starts_with(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

static bool is_library(const char *name) {
    return starts_with(name, "std::") || starts_with(name, "__gnu_cxx::") ||
           starts_with(name, "alloc::") || starts_with(name, "<alloc::") ||
           starts_with(name, "core::") || starts_with(name, "hashbrown::");
}

// Rust's vectors, strings and tables are made of these, which their users do not name; and an
// option is no container.
static bool is_inner_part(const char *name) {
    if (*name == '<') name++;
    return starts_with(name, "alloc::raw_vec::") || starts_with(name, "hashbrown::raw::") ||
           starts_with(name, "core::");
}

// The argument list of a template, without the outer brackets; false if there is none.
static bool arguments_of(const char *part, const char *end, char *out, size_t size) {
    const char *open = memchr(part, '<', (size_t)(end - part));
    const char *close = end;
    while (open && close > open && *close != '>') close--;
    if (!open || close <= open + 1) return false;
    snprintf(out, size, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

// Cuts a list of arguments behind the first one.
static void keep_first_argument(char *arguments) {
    int depth = 0;
    for (char *at = arguments; *at; at++) {
        if (strchr("<([", *at)) depth++;
        if (strchr(">)]", *at)) depth--;
        if (*at == ',' && !depth) {
            *at = 0;
            return;
        }
    }
}

static bool is_allocator_class(const char *part) {
    static const char *const names[] = {"allocator<", "allocator_traits<", "new_allocator<",
                                        "__new_allocator<", "__alloc_traits<"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (starts_with(part, names[i])) return true;
    return false;
}

static bool is_making_function(const char *part) {
    return starts_with(part, "make_shared<") || starts_with(part, "make_unique<") ||
           starts_with(part, "allocate_shared<") || starts_with(part, "make_shared_for_overwrite<");
}

bool type_of_name(const char *name, char *type, size_t size, bool *is_element) {
    *is_element = false;
    if (is_inner_part(name)) return false;
    const char *end = name + strlen(name), *function = last_part(name, end);
    if (is_making_function(function) && arguments_of(function, end, type, size)) {
        keep_first_argument(type);
        return true;
    }
    if (function < name + 2) return false;
    const char *class_end = function - 2, *class = last_part(name, class_end);
    if (class >= class_end) return false;
    if (is_allocator_class(class)) {
        *is_element = true;
        if (!arguments_of(class, class_end, type, size)) return false;
        keep_first_argument(type);
        return strncmp(type, "\xe2\x80\xa6", 3) != 0;
    }
    bool is_public = isalpha((unsigned char)*class);
    bool is_class = memchr(class, '<', (size_t)(class_end - class)) ||
                    starts_with(class, "string") || starts_with(class, "wstring") ||
                    isupper((unsigned char)*class);
    if (!is_public || !is_class) return false;
    snprintf(type, size, "%.*s", (int)(class_end - name), name);
    return true;
}

void type_of_stack(const struct frame_list *frames, char *label, char *location) {
    char type[FRAME_TEXT_BYTES], element[FRAME_TEXT_BYTES] = "";
    bool is_element;
    *location = 0;
    for (size_t i = 0; i < frames->frames.count; i++) {
        const struct frame *frame = frames->frames.items[i];
        if (!frame->function) break;
        if (!is_library(frame->function)) {
            if (frame->is_allocator) continue;
            break;
        }
        if (!type_of_name(frame->function, type, sizeof type, &is_element)) continue;
        if (!is_element) {
            text_escape(label, FRAME_TEXT_BYTES, type);
            return;
        }
        if (!*element) snprintf(element, sizeof element, "%s", type);
    }
    text_escape(label, FRAME_TEXT_BYTES, *element ? element : no_type);
}
