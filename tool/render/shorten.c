// SPDX-License-Identifier: Apache-2.0
// Both ends of a name say most: where it belongs, and what it is called. So arguments go first,
// from the innermost lists outwards, then parts of the path from its middle outwards. Names are of
// C++, Rust, D and Go: parts are joined by "::" or, without one, by '.'.
#include "tool/render/shorten.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"

static const char elision[] = "\xe2\x80\xa6";  // ellipsis
enum { ELISION_BYTES = sizeof elision - 1, BRACKETS_MAX = 64, PARTS_MAX = 64 };

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static const char operator_keyword[] = "operator";

// Behind the symbol of "operator<<" and its like, if `at` is the keyword; else `at`.
static const char *skip_operator(const char *name, const char *at) {
    static const char *const symbols[] = {"()", "[]", "<=>", "<<=", ">>=", "->*", "->",
                                          "<<", ">>", "<=",  ">=",  "<",   ">",   NULL};
    size_t length = sizeof operator_keyword - 1;
    if (strncmp(at, operator_keyword, length) != 0 || (at > name && is_word(at[-1]))) return at;
    const char *symbol = at + length;
    for (size_t i = 0; symbols[i]; i++)
        if (!strncmp(symbol, symbols[i], strlen(symbols[i]))) return symbol + strlen(symbols[i]);
    return symbol + strspn(symbol, "+-*/%^&|~!=,");
}

// One bracket and what it encloses. A list of arguments stands behind a word or an operator; others
// are part of the path, such as Rust's <T as Trait> or (anonymous namespace).
struct bracket {
    size_t open, close;  // of its two characters
    int depth;           // of lists around it, itself included
    bool is_list;
};

static bool opens_list(const char *name, const char *at, const char *behind_operator) {
    if (at == name) return false;
    if (behind_operator && strspn(behind_operator, " ") == (size_t)(at - behind_operator))
        return true;
    bool is_implementation = !strncmp(at, "<impl ", strlen("<impl "));  // of Rust
    bool is_turbofish = at - name > 2 && at[-1] == ':' && is_word(at[-3]) && !is_implementation;
    if (*at == '<') return is_word(at[-1]) || is_turbofish;
    return is_word(at[-1]) || at[-1] == '>' || at[-1] == '!' || at[-1] == ')';
}

static bool closes(char open, char close) {
    return (open == '<' && close == '>') || (open == '(' && close == ')') ||
           (open == '{' && close == '}') || (open == '[' && close == ']');
}

// All brackets that are closed, in the order of their ends; what is beyond the table stays as it
// is.
static size_t find_brackets(const char *name, struct bracket *found) {
    struct bracket open[BRACKETS_MAX];
    size_t count = 0, level = 0;
    const char *behind_operator = NULL;
    for (const char *at = name; *at; at++) {
        if (is_word(*at) && *at != *operator_keyword) continue;
        const char *behind = skip_operator(name, at);
        if (behind != at) {
            behind_operator = behind;
            at = behind;
        }
        if (!*at) break;
        const char *quote = *at == '"' ? strchr(at + 1, '"') : NULL;
        if (quote) at = quote;
        bool is_sign = *at == '<' && at[1] == ' ';
        if (strchr("<({[", *at) && !is_sign && level < BRACKETS_MAX) {
            bool is_list = (*at == '<' || *at == '(') && opens_list(name, at, behind_operator);
            int depth = (level ? open[level - 1].depth : 0) + is_list;
            open[level++] = (struct bracket){(size_t)(at - name), 0, depth, is_list};
        } else if (level && closes(name[open[level - 1].open], *at) &&
                   !(*at == '>' && at > name && (at[-1] == '-' || at[-1] == '='))) {
            open[--level].close = (size_t)(at - name);
            if (count < BRACKETS_MAX) found[count++] = open[level];
        }
    }
    return count;
}

// "map<string, vector<…>>" -> "map<…>" for lists of that depth; what is short stays.
static void elide_lists(char *name, int depth) {
    struct bracket brackets[BRACKETS_MAX];
    size_t count = find_brackets(name, brackets);
    for (size_t i = count; i-- > 0;) {
        const struct bracket *list = &brackets[i];
        if (!list->is_list || list->depth != depth) continue;
        if (list->close - list->open - 1 <= ELISION_BYTES) continue;
        memmove(name + list->open + 1 + ELISION_BYTES, name + list->close,
                strlen(name + list->close) + 1);
        memcpy(name + list->open + 1, elision, ELISION_BYTES);
    }
}

static int deepest_list(const char *name) {
    struct bracket brackets[BRACKETS_MAX];
    size_t count = find_brackets(name, brackets);
    int deepest = 0;
    for (size_t i = 0; i < count; i++)
        if (brackets[i].is_list && brackets[i].depth > deepest) deepest = brackets[i].depth;
    return deepest;
}

// The lists behind each other at the end: "insert<…>(…) const".
static void drop_last_lists(char *name) {
    for (;;) {
        struct bracket brackets[BRACKETS_MAX];
        size_t count = find_brackets(name, brackets), length = strlen(name);
        const char *constant = length > 6 && !strcmp(name + length - 6, " const") ? " const" : "";
        length -= strlen(constant);
        if (!count || !brackets[count - 1].is_list || brackets[count - 1].close + 1 != length)
            return;
        name[brackets[count - 1].open] = 0;
        length = strlen(name);
        if (length && name[length - 1] == '!') name[length - 1] = 0;      // of D
        if (length && name[length - 1] == ' ') name[length - 1] = 0;      // operator<< <…>
        if (length > 2 && name[length - 1] == ':') name[length - 2] = 0;  // sort::<…>
    }
}

// The parts of a path: where each begins, and at last where the name ends.
struct path {
    size_t starts[PARTS_MAX + 1];
    size_t count;
    size_t separator;  // its length
};

static bool is_separator(const char *at, size_t length) {
    return length == 2 ? at[0] == ':' && at[1] == ':' : at[0] == '.' && is_word(at[1]);
}

static void split(const char *name, struct path *path) {
    struct bracket brackets[BRACKETS_MAX];
    size_t count = find_brackets(name, brackets);
    *path = (struct path){.count = 1, .separator = strstr(name, "::") ? 2 : 1};
    for (size_t at = 0; name[at]; at++) {
        bool is_inside = false;
        for (size_t i = 0; i < count && !is_inside; i++)
            is_inside = brackets[i].open < at && at < brackets[i].close;
        if (is_inside || !is_separator(name + at, path->separator) || path->count >= PARTS_MAX)
            continue;
        path->starts[path->count++] = at + path->separator;
    }
    path->starts[path->count] = strlen(name) + path->separator;
}

// "{{closure}}", "{lambda(…)#1}", "operator()": the part before it says whose.
static bool is_nameless(const char *part) {
    return *part == '{' || !strncmp(part, "operator()", strlen("operator()"));
}

// How many parts at the end belong together: the function and its class.
static size_t tail_parts(const char *name, const struct path *path) {
    size_t tail = 1;
    while (tail < path->count && is_nameless(name + path->starts[path->count - tail])) tail++;
    return tail < path->count ? tail + 1 : tail;
}

// Leaves the first `head` parts and the last `tail` ones; `has_mark`: what is gone is marked.
static void keep_parts(char *name, const struct path *path, size_t head, size_t tail,
                       bool has_mark) {
    char *to = name + path->starts[head];
    const char *from = name + path->starts[path->count - tail];
    const char *separator = path->separator == 2 ? "::" : ".";
    if (head + tail >= path->count) return;
    bool has_room = (size_t)(from - to) >= ELISION_BYTES + path->separator;
    if (has_mark && has_room) {
        memcpy(to, elision, ELISION_BYTES);
        memcpy(to + ELISION_BYTES, separator, path->separator);
        to += ELISION_BYTES + path->separator;
    } else if (has_mark) {
        return;
    }
    memmove(to, from, strlen(from) + 1);
}

// Tries fewer and fewer parts at the front; `name` is the first that fits, or the function with its
// class, without a mark.
static void drop_parts(char *name, size_t columns) {
    struct path path;
    char *copy = strdup(name);
    if (!copy) return;
    split(name, &path);
    size_t tail = tail_parts(name, &path);
    for (size_t head = path.count - tail; head-- > 0;) {
        keep_parts(name, &path, head, tail, true);
        if (text_columns(name) <= columns) break;
        memcpy(name, copy, strlen(copy) + 1);
    }
    if (text_columns(name) > columns) keep_parts(name, &path, 0, tail, false);
    free(copy);
}

// "github.com/prometheus/client_golang/prometheus.(*Registry).Register" of Go ->
// "…/prometheus.(*Registry).Register": the dots of a path are no ends of parts.
static void drop_directories(char *name) {
    const size_t path = strcspn(name, "([<{ ");
    char *last = memrchr(name, '/', path);
    if (strstr(name, "::") || !last || last < name + ELISION_BYTES || !is_word(last[1])) return;
    memcpy(name, elision, ELISION_BYTES);
    memmove(name + ELISION_BYTES, last, strlen(last) + 1);
}

// "<alloc::vec::Vec<…> as core::clone::Clone>::clone" -> "<Vec<…> as Clone>::clone".
static void shorten_implementation(char *name) {
    struct bracket brackets[BRACKETS_MAX];
    size_t count = find_brackets(name, brackets), close = 0;
    for (size_t i = 0; i < count && *name == '<'; i++)
        if (brackets[i].open == 0) close = brackets[i].close;
    size_t start = 1;  // of the path that is being read
    int depth = 0;
    for (size_t at = 1; at < close; at++) {
        if (name[at] == '<') depth++;
        if (name[at] == '>') depth--;
        if (depth) continue;
        if (name[at] == ' ' || name[at] == '&') start = at + 1;
        if (strncmp(name + at, "::", 2) != 0) continue;
        memmove(name + start, name + at + 2, strlen(name + at + 2) + 1);
        close -= at + 2 - start;
        at = start - 1;
    }
}

// Everybody knows where vector and string come from.
static void drop_std(char *name) {
    static const char prefix[] = "std::";
    enum { PREFIX_LENGTH = sizeof prefix - 1 };
    if (!strncmp(name, prefix, PREFIX_LENGTH))
        memmove(name, name + PREFIX_LENGTH, strlen(name + PREFIX_LENGTH) + 1);
}

static size_t letter_bytes(const char *at) {
    size_t bytes = 1;
    while (((unsigned char)at[bytes] & 0xc0) == 0x80) bytes++;
    return bytes;
}

// A word too long for its room loses its middle; of a longer end is left, which tells more.
static void cut_middle(char *name, size_t columns) {
    size_t all = text_columns(name), front_columns = columns / 3, front = 0;
    if (all <= columns || columns < 3) return;
    for (size_t used = 0; used < front_columns; used++) front += letter_bytes(name + front);
    const char *end = name + front;
    while (*end && text_columns(end) > columns - 1 - front_columns) end += letter_bytes(end);
    while (*end && (size_t)(end - name) < front + ELISION_BYTES) end += letter_bytes(end);
    if (!strncmp(end, elision, ELISION_BYTES)) end += ELISION_BYTES;
    bool is_behind_mark =
        front >= ELISION_BYTES && !strncmp(name + front - ELISION_BYTES, elision, ELISION_BYTES);
    if (is_behind_mark) front -= ELISION_BYTES;
    if ((size_t)(end - name) < front + ELISION_BYTES) return;
    memmove(name + front + ELISION_BYTES, end, strlen(end) + 1);
    memcpy(name + front, elision, ELISION_BYTES);
}

// Removes what was elided before: "Map<…>::insert" -> "Map::insert".
static void drop_marks(char *name) {
    static const char marked[] = "<\xe2\x80\xa6>";
    for (char *at = name; (at = strstr(at, marked));) {
        const char *behind = at + sizeof marked - 1;
        if (at - name > 2 && at[-1] == ':') at -= 2;  // sort::<…>::{closure#0}
        memmove(at, behind, strlen(behind) + 1);
    }
}

// "Class::function" where there is no room for both: the function, with as much of the class as
// tells something.
static void cut_parts(char *name, size_t columns) {
    enum { CLASS_COLUMNS_MIN = 6 };
    struct path path;
    drop_marks(name);
    split(name, &path);
    size_t tail = path.count > 1 ? tail_parts(name, &path) - 1 : 1;
    char *function = name + path.starts[path.count - tail];
    size_t function_columns = text_columns(function) + path.separator;
    if (text_columns(name) > columns && path.count > tail) {
        if (function_columns + CLASS_COLUMNS_MIN <= columns) {
            char *rest = strdup(function - path.separator);
            function[-(ptrdiff_t)path.separator] = 0;
            cut_middle(name, columns - function_columns);
            if (rest) memcpy(name + strlen(name), rest, strlen(rest) + 1);
            free(rest);
        } else {
            memmove(name, function, strlen(function) + 1);
        }
    }
    cut_middle(name, columns);
}

void shorten_function(char *name, size_t columns) {
    if (text_columns(name) <= columns) return;
    for (int depth = deepest_list(name); depth > 0 && text_columns(name) > columns; depth--)
        elide_lists(name, depth);
    if (text_columns(name) <= columns) return;
    drop_last_lists(name);
    if (text_columns(name) <= columns) return;
    shorten_implementation(name);
    if (text_columns(name) <= columns) return;
    drop_std(name);
    if (text_columns(name) <= columns) return;
    drop_directories(name);
    if (text_columns(name) <= columns) return;
    drop_parts(name, columns);
    if (text_columns(name) > columns) cut_parts(name, columns);
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
