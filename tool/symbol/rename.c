// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/rename.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"

#define GROUPS_MAX 10
#define NAME_BYTES_MAX ((size_t)64 * 1024)  // a rule cannot make a longer name

struct rule {
    regex_t expression;
    char *replacement;
};

struct rename_rules {
    ARRAY(struct rule) rules;
};

// Cuts the next part off, up to the delimiter; a delimiter behind a backslash belongs to the part.
static char *cut_part(char **text, char delimiter) {
    char *part = *text, *to = part, *from = part;
    for (; *from && *from != delimiter; from++) {
        if (*from == '\\' && from[1] == delimiter) from++;
        *to++ = *from;
    }
    if (!*from) return NULL;
    *text = from + 1;
    *to = 0;
    return part;
}

static bool add_rule(struct rename_rules *list, const char *line, struct error *error) {
    char message[256], *copy = strdup(line), *rest = copy ? copy + 1 : NULL;
    if (!copy) return error_set(error, "no memory for rules");
    char delimiter = *rest ? *rest++ : 0;
    char *expression = delimiter ? cut_part(&rest, delimiter) : NULL;
    char *replacement = expression ? cut_part(&rest, delimiter) : NULL;
    bool is_rule = replacement && *expression && (!*rest || !strcmp(rest, "g"));
    struct rule *rule = is_rule ? array_push(&list->rules) : NULL;
    bool is_added = false;
    int problem;
    if (!rule) {
        error_set(error, "\"%s\" is no rule of the form s/EXPRESSION/REPLACEMENT/", line);
    } else if ((problem = regcomp(&rule->expression, expression, REG_EXTENDED))) {
        regerror(problem, &rule->expression, message, sizeof message);
        error_set(error, "\"%s\": %s", expression, message);
        list->rules.count--;
    } else {
        rule->replacement = strdup(replacement);
        is_added = true;
    }
    free(copy);
    return is_added;
}

static bool add_file(struct rename_rules *list, const char *path, struct error *error) {
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t size = 0, number = 0;
    bool is_ok = true;
    while (is_ok && getline(&line, &size, file) > 0) {
        number++;
        line[strcspn(line, "\r\n")] = 0;
        const char *start = line + strspn(line, " \t");
        if (!*start || *start == '#') continue;
        is_ok = (*start == 's' || error_set(error, "\"%s\" is no rule", start)) &&
                add_rule(list, start, error);
    }
    free(line);
    fclose(file);
    return is_ok || error_wrap(error, "%s:%zu", path, number);
}

bool rename_rules_add(struct rename_rules **list, const char *rules, struct error *error) {
    if (!*list && !(*list = calloc(1, sizeof **list)))
        return error_set(error, "no memory for rules");
    bool is_rule = rules[0] == 's' && ispunct((unsigned char)rules[1]) && rules[1] != '.' &&
                   rules[1] != '_' && rules[1] != '-';
    return is_rule ? add_rule(*list, rules, error) : add_file(*list, rules, error);
}

void rename_rules_free(struct rename_rules *list) {
    if (!list) return;
    for (size_t i = 0; i < list->rules.count; i++) {
        regfree(&list->rules.items[i].expression);
        free(list->rules.items[i].replacement);
    }
    array_free(&list->rules);
    free(list);
}

// Text that grows up to NAME_BYTES_MAX; what is beyond is left out.
struct text {
    char *bytes;
    size_t length;
};

static void append(struct text *text, const char *from, size_t length) {
    if (length > NAME_BYTES_MAX - text->length) length = NAME_BYTES_MAX - text->length;
    memcpy(text->bytes + text->length, from, length);
    text->length += length;
}

static void append_replacement(struct text *text, const struct rule *rule, const char *name,
                               const regmatch_t groups[GROUPS_MAX]) {
    for (const char *at = rule->replacement; at && *at; at++) {
        int group = *at == '&' ? 0 : -1;
        if (*at == '\\' && at[1]) {
            at++;
            if (isdigit((unsigned char)*at)) group = *at - '0';
        }
        if (group < 0)
            append(text, at, 1);
        else if (groups[group].rm_so >= 0)
            append(text, name + groups[group].rm_so,
                   (size_t)(groups[group].rm_eo - groups[group].rm_so));
    }
}

// Replaces every match as sed does: an empty one is stepped over, and counts only where no match
// has just ended.
static char *apply_rule(const struct rule *rule, const char *name) {
    struct text text = {malloc(NAME_BYTES_MAX + 1), 0};
    regmatch_t groups[GROUPS_MAX];
    bool is_behind_match = false;
    int flags = 0;
    if (!text.bytes) return NULL;
    while (!regexec(&rule->expression, name, GROUPS_MAX, groups, flags)) {
        bool is_empty = groups[0].rm_so == groups[0].rm_eo;
        append(&text, name, (size_t)groups[0].rm_so);
        if (!is_empty || !is_behind_match || groups[0].rm_so)
            append_replacement(&text, rule, name, groups);
        name += groups[0].rm_eo;
        is_behind_match = !is_empty;
        if (!*name) break;
        if (is_empty) append(&text, name++, 1);
        flags = REG_NOTBOL;
    }
    append(&text, name, strlen(name));
    text.bytes[text.length] = 0;
    return text.bytes;
}

char *rename_apply(const struct rename_rules *list, const char *name) {
    char *now = strdup(name);
    for (size_t i = 0; now && i < list->rules.count; i++) {
        const struct rule *rule = &list->rules.items[i];
        if (regexec(&rule->expression, now, 0, NULL, 0)) continue;
        char *next = apply_rule(rule, now);
        free(now);
        now = next;
    }
    return now;
}
