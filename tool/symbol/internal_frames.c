// SPDX-License-Identifier: Apache-2.0
// The user's rules come first, so that they may show what cairn would hide.
#include "tool/symbol/internal_frames.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"

// The user's rules, and the lines that they point into.
static ARRAY(struct internal_rule) own_rules;
static ARRAY(char *) own_lines;

// "libc" is the library of that name, not the beginning of "libcurl".
static bool is_module(const char *path, const char *module) {
    if (!path) return false;
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t length = strlen(module);
    if (strncmp(file, module, length) != 0) return false;
    return module[length - 1] == '-' || strchr("._-", file[length]);
}

static bool name_matches(const struct internal_rule *rule, const char *function) {
    size_t length = strlen(rule->pattern), whole = strlen(function);
    switch (rule->match) {
    case EXACT:
        return !strcmp(function, rule->pattern);
    case PREFIX:
        return !strncmp(function, rule->pattern, length);
    case SUFFIX:
        return whole >= length && !strcmp(function + whole - length, rule->pattern);
    case CONTAINS:
        return strstr(function, rule->pattern) != NULL;
    }
    return false;
}

static bool rule_matches(const struct internal_rule *rule, const char *function,
                         const char *module_path) {
    if (rule->module && !is_module(module_path, rule->module)) return false;
    return !rule->pattern || (function && name_matches(rule, function));
}

static const char *const kind_words[] = {[INTERNAL_NONE] = "show",
                                         [INTERNAL_ALLOCATOR] = "allocator",
                                         [INTERNAL_LIBRARY] = "library",
                                         [INTERNAL_START] = "start",
                                         [INTERNAL_PYTHON] = "python"};

static bool read_kind(const char *word, size_t length, enum internal_kind *kind) {
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++) {
        if (strlen(kind_words[i]) != length || strncmp(kind_words[i], word, length) != 0) continue;
        *kind = (enum internal_kind)i;
        return true;
    }
    return false;
}

// "NAME", "NAME*", "*NAME", "*NAME*"; a lone "*" is every function.
static void read_pattern(char *pattern, struct internal_rule *rule) {
    size_t length = strlen(pattern);
    bool has_start = length > 1 && pattern[0] == '*';
    bool has_end = length > 1 && pattern[length - 1] == '*';
    static const enum internal_match matches[2][2] = {{EXACT, PREFIX}, {SUFFIX, CONTAINS}};
    if (has_end) pattern[length - 1] = 0;
    rule->match = matches[has_start][has_end];
    rule->pattern = strcmp(pattern, "*") ? pattern + has_start : NULL;
}

// "KIND PATTERN [in MODULE]"; the rule keeps pointers into the line.
static bool read_rule(char *line, struct internal_rule *rule, struct error *error) {
    size_t word = strcspn(line, " \t");
    char *pattern = line + word + strspn(line + word, " \t"), *module = strstr(pattern, " in ");
    *rule = (struct internal_rule){0};
    if (!read_kind(line, word, &rule->kind))
        return error_set(error, "\"%.*s\" is not allocator, library, start, python or show",
                         (int)word, line);
    if (module) {
        *module = 0;
        rule->module = module + strlen(" in ");
    }
    if (!*pattern || (rule->module && !*rule->module))
        return error_set(error, "no name of a function or module");
    read_pattern(pattern, rule);
    return true;
}

// Both live as long as the process.
static bool load_line(const char *text, struct error *error) {
    char **line = array_push(&own_lines);
    struct internal_rule *rule = array_push(&own_rules);
    if (!line || !rule || !(*line = strdup(text))) return error_set(error, "no memory for rules");
    return read_rule(*line, rule, error);
}

bool internal_load(const char *path, struct error *error) {
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0, number = 0;
    bool is_ok = true;
    while (is_ok && getline(&line, &size, file) > 0) {
        number++;
        size_t length = strcspn(line, "\r\n");
        while (length && isblank((unsigned char)line[length - 1])) length--;
        line[length] = 0;
        const char *start = line + strspn(line, " \t");
        if (*start && *start != '#') is_ok = load_line(start, error);
    }
    free(line);
    fclose(file);
    return is_ok || error_wrap(error, "%s:%zu", path, number);
}

enum internal_kind internal_kind_of(const char *function, const char *module_path) {
    for (size_t i = 0; i < own_rules.count; i++)
        if (rule_matches(&own_rules.items[i], function, module_path))
            return own_rules.items[i].kind;
    for (size_t i = 0; i < internal_rule_count; i++)
        if (rule_matches(&internal_rules[i], function, module_path)) return internal_rules[i].kind;
    return INTERNAL_NONE;
}

static bool begins_with_any(const char *text, const char *const *beginnings) {
    for (; *beginnings; beginnings++)
        if (!strncmp(text, *beginnings, strlen(*beginnings))) return true;
    return false;
}

bool internal_is_runtime(const char *module_path) {
    static const char *const modules[] = {"libc", "libstdc++", "libc++", "libpthread", "ld-", NULL};
    for (const char *const *module = modules; *module; module++)
        if (is_module(module_path, *module)) return true;
    return false;
}

bool internal_is_library(const char *function, const char *file) {
    static const char *const names[] = {"std::",   "<std::",         "core::",      "<core::",
                                        "alloc::", "<alloc::",       "__gnu_cxx::", "std.",
                                        "object.", "core.internal.", NULL};
    static const char *const sources[] = {"/usr/include/", "/usr/lib/", "/usr/share/", "/rustc/",
                                          "/nix/",         "/gnu/",     NULL};
    if (function && begins_with_any(function, names)) return true;
    if (!file) return false;
    return begins_with_any(file, sources) || strstr(file, "/rustlib/src/") ||
           strstr(file, "/.cargo/registry/");
}

bool internal_is_hidden(const char *function, const char *module_path) {
    return internal_kind_of(function, module_path) != INTERNAL_NONE;
}

size_t internal_first_shown(const struct internal_frame *frames, size_t frame_count) {
    size_t best = frame_count ? frame_count - 1 : 0;
    bool has_best = false;
    for (size_t i = 0; i < frame_count; i++) {
        enum internal_kind kind = internal_kind_of(frames[i].function, frames[i].module_path);
        if (kind == INTERNAL_NONE) return i;
        if (kind == INTERNAL_ALLOCATOR || has_best) continue;
        best = i;
        has_best = true;
    }
    return best;
}
