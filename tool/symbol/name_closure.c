// SPDX-License-Identifier: Apache-2.0
// One pass that copies the text onto itself; a part that does not nest properly is copied as it is.
#include "tool/symbol/name_closure.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char anonymous[] = "(anonymous namespace)";
static const char lambda[] = "{lambda(";
static const char call[] = "operator()";

static bool starts_with(const char *text, const char *prefix) {
    return !strncmp(text, prefix, strlen(prefix));
}

// Behind the bracket that closes the one at `text`; NULL if there is none.
static const char *skip_brackets(const char *text) {
    size_t depth = 0;
    do {
        if (strchr("([{<", *text)) depth++;
        if (strchr(")]}>", *text)) depth--;
        text++;
    } while (depth && *text);
    return depth ? NULL : text;
}

// Behind "::operator()", its parameters and template arguments, if they follow a lambda.
static const char *skip_call(const char *text) {
    if (!starts_with(text, "::") || !starts_with(text + 2, call)) return text;
    const char *behind = text + 2 + strlen(call);
    for (const char *next; (*behind == '<' || *behind == '(') && (next = skip_brackets(behind));)
        behind = next;
    if (starts_with(behind, " const")) behind += strlen(" const");
    bool is_end = !*behind || starts_with(behind, "::") || strchr(">,)", *behind);
    return is_end ? behind : text;
}

// clang's "$_0" is gcc's "{lambda#1}"; the operator behind it makes room for the longer word.
static const char *copy_numbered(const char *text, char **out) {
    static const char word[] = "{lambda#";
    size_t digits = strspn(text + strlen("$_"), "0123456789");
    const char *end = text + strlen("$_") + digits, *behind = skip_call(end);
    if (!digits || digits > 6 || behind == end) return NULL;
    unsigned number = 0;
    for (const char *at = end - digits; at < end; at++)
        number = number * 10 + (unsigned)(*at - '0');
    *out += sprintf(*out, "%s%u}", word, number + 1);
    return behind;
}

// "{lambda(int)#1}" at `text`: copies "{lambda#1}" and returns what is behind it; NULL: it is none.
static const char *copy_lambda(const char *text, char **out) {
    const char *number = skip_brackets(text + strlen(lambda) - 1);
    if (!number || *number != '#') return NULL;
    size_t word = strlen(lambda) - 1, digits = 1 + strspn(number + 1, "0123456789");
    if (number[digits] != '}') return NULL;
    memmove(*out, text, word);
    memmove(*out + word, number, digits + 1);
    *out += word + digits + 1;
    return skip_call(number + digits + 1);
}

// Parameters of a function that something local follows: behind them, NULL if it is none of that.
static const char *skip_parameters(const char *start, const char *text) {
    size_t before = (size_t)(text - start);
    bool has_name = before && (isalnum((unsigned char)text[-1]) || strchr("_>]", text[-1]));
    bool is_operator = before >= strlen("operator") &&
                       !strncmp(text - strlen("operator"), "operator", strlen("operator"));
    const char *behind = has_name && !is_operator ? skip_brackets(text) : NULL;
    if (behind && starts_with(behind, " const")) behind += strlen(" const");
    return behind && starts_with(behind, "::") ? behind : NULL;
}

void name_shorten_closures(char *name) {
    const char *from = name;
    char *out = name;
    while (*from) {
        const char *behind = NULL;
        if (starts_with(from, anonymous)) {
            behind = from + strlen(anonymous);
            memcpy(out, "(anon)", strlen("(anon)"));
            out += strlen("(anon)");
        } else if (starts_with(from, lambda)) {
            behind = copy_lambda(from, &out);
        } else if (starts_with(from, "{lambda}")) {
            memmove(out, from, strlen("{lambda}"));
            out += strlen("{lambda}");
            behind = skip_call(from + strlen("{lambda}"));
        } else if (starts_with(from, "$_")) {
            behind = copy_numbered(from, &out);
        } else if (*from == '(') {
            // what was copied may be shorter, but ends in the same characters
            behind = skip_parameters(name, from);
        }
        if (behind)
            from = behind;
        else
            *out++ = *from++;
    }
    *out = 0;
}
