// SPDX-License-Identifier: Apache-2.0
// Which demangler reads a name, and what compilers hang onto names before it may read them.
// The demanglers are those of the GNU tools, so that names agree with gdb, nm and addr2line.
#include "tool/symbol/name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/name_clean.h"

// Longer names are copied: demangling time is not linear in the length of a hostile name.
#define MANGLED_LENGTH_MAX ((size_t)32 * 1024)

// What compilers append to the name of a function they split, cloned or moved. A number may
// follow each of them.
static const char *const clone_suffixes[] = {
    ".part", ".isra", ".constprop", ".cold", ".llvm", ".lto_priv", ".localalias", ".resolver",
    ".abi0",  // Go: called as assembly is
};

static bool is_clone_suffix(const char *suffix, size_t length) {
    for (size_t i = 0; i < sizeof clone_suffixes / sizeof clone_suffixes[0]; i++)
        if (length == strlen(clone_suffixes[i]) && !memcmp(suffix, clone_suffixes[i], length))
            return true;
    return false;
}

static size_t last_dot(const char *name, size_t length) {
    while (length && name[length - 1] != '.') length--;
    return length ? length - 1 : 0;
}

// Go numbers a function without a name inside of another one: "main.run.func2.1".
static bool is_go_closure(const char *name, size_t length) {
    static const char word[] = ".func";
    const size_t word_length = sizeof word - 1;
    for (;;) {
        size_t dot = last_dot(name, length), digits = length;
        while (digits > dot + 1 && isdigit((unsigned char)name[digits - 1])) digits--;
        if (!dot || digits == length) return false;
        if (digits > dot + 1)
            return digits - dot == word_length && !memcmp(name + dot, word, word_length);
        length = dot;
    }
}

// So it does with the functions of a package that are all called so: "compress/flate.init.0".
static bool is_go_init(const char *name, size_t length) {
    static const char word[] = ".init";
    const size_t word_length = sizeof word - 1;
    return length > word_length && !memcmp(name + length - word_length, word, word_length);
}

// Length of `name` without clone suffixes, one at a time from the end: ".cold", ".part.0", ".12".
static size_t base_length(const char *name, size_t length) {
    for (;;) {
        size_t dot = last_dot(name, length);
        if (!dot) return length;
        size_t digits = dot + 1;
        while (digits < length && isdigit((unsigned char)name[digits])) digits++;
        bool is_number = digits == length && length > dot + 1;
        if (!is_number && !is_clone_suffix(name + dot, length - dot)) return length;
        if (is_number && (is_go_closure(name, dot) || is_go_init(name, dot))) return length;
        length = dot;
    }
}

// Rust's legacy form looks like C++ and is recognized by its hash at the end.
static bool may_be_rust(const char *name) {
    return !strncmp(name, "_R", 2) || (!strncmp(name, "_ZN", 3) && strstr(name, "17h"));
}

// Swift's names are left as they are; what looks like a suffix belongs to them.
static bool is_left_whole(const char *name) {
    static const char *const prefixes[] = {"$s", "$S", "_$s", "_$S", "_T0"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

static bool is_of_d(const char *name) {
    return name[0] == '_' && name[1] == 'D' && isdigit((unsigned char)name[2]);
}

// Without lists of parameters; those of a template's arguments ("!(...)") stay.
static void drop_d_parameters(char *name) {
    char *out = name;
    int template_depth = 0, dropped_depth = 0;
    for (const char *at = name; *at; at++) {
        bool is_template = at > name && at[-1] == '!';
        if (*at == '(' && !dropped_depth && (template_depth || is_template))
            template_depth++;
        else if (*at == '(')
            dropped_depth++;
        if (!dropped_depth) *out++ = *at;
        if (*at == ')' && dropped_depth)
            dropped_depth--;
        else if (*at == ')' && template_depth)
            template_depth--;
    }
    *out = 0;
}

static char *demangle_d(const char *name) {
    char *readable = dlang_demangle(name, DMGL_NO_OPTS);
    if (readable) drop_d_parameters(readable);
    return readable;
}

static char *clean(const char *demangled) {
    char *name = name_clean_cxx(demangled);
    if (name) name_shorten_closures(name);
    return name;
}

static char *demangle(const char *name) {
    if (may_be_rust(name)) {
        char *rust = rust_demangle(name, DMGL_NO_OPTS);
        if (rust) return rust;
    }
    if (is_of_d(name)) return demangle_d(name);
    // Names in debug information, and of other tools, may be C++ without being mangled.
    bool is_mangled = !strncmp(name, "_Z", 2);
    bool is_readable = strchr(name, '<') || strstr(name, "::") || strstr(name, "[abi:");
    if (!is_mangled && is_readable) return clean(name);
    if (!is_mangled) return NULL;
    char *cxx = cplus_demangle_v3(name, DMGL_NO_OPTS);
    if (!cxx) return NULL;
    char *shorter = clean(cxx);
    free(cxx);
    return shorter;
}

// Length without a symbol's version: "memcpy@@GLIBC_2.14".
static size_t unversioned_length(const char *name) {
    size_t length = strlen(name);
    const char *version = length > 1 ? memchr(name + 1, '@', length - 1) : NULL;
    return version ? (size_t)(version - name) : length;
}

char *name_readable(const char *mangled) {
    if (is_left_whole(mangled)) return strdup(mangled);
    size_t length = base_length(mangled, unversioned_length(mangled));
    char *base = strndup(mangled, length);
    if (!base || length > MANGLED_LENGTH_MAX) return base;
    char *readable = demangle(base);
    if (!readable) return base;
    free(base);
    return readable;
}

char *name_full(const char *mangled) {
    char *base = strndup(mangled, unversioned_length(mangled));
    if (!base || strlen(base) > MANGLED_LENGTH_MAX || is_left_whole(base)) return base;
    char *full = may_be_rust(base) ? rust_demangle(base, DMGL_VERBOSE) : NULL;
    if (!full && is_of_d(base)) full = dlang_demangle(base, DMGL_VERBOSE);
    if (!full) full = cplus_demangle_v3(base, DMGL_PARAMS | DMGL_ANSI | DMGL_VERBOSE);
    if (!full) return base;
    free(base);
    return full;
}

const char *name_last_closure(const char *readable) {
    static const char *const words[] = {"{lambda", "{closure#", "{{closure}", "{async "};
    const char *last = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (const char *at = readable; (at = strstr(at, words[i])); at++)
            if (!last || at > last) last = at;
    return last;
}

// Behind "::{{closure}}" or "::{closure#0}" at `text`; NULL: there is none.
static const char *skip_rust_closure(const char *text) {
    static const char *const words[] = {"::{{closure}}", "::{closure#"};
    size_t length = strlen(words[0]);
    if (!strncmp(text, words[0], length)) return text + length;
    length = strlen(words[1]);
    if (strncmp(text, words[1], length) != 0) return NULL;
    length += strspn(text + length, "0123456789");
    return text[length] == '}' ? text + length + 1 : NULL;
}

// What its closures lie in.
static char *without_rust_closures(const char *readable) {
    char *name = strdup(readable), *out = name;
    for (const char *at = readable, *behind; name && *at;)
        if ((behind = skip_rust_closure(at)))
            at = behind;
        else
            *out++ = *at++;
    if (out) *out = 0;
    return name;
}

char *name_of_async(const char *readable, const char *word) {
    static const struct {
        const char *word, *text;
    } kinds[] = {{"{async_fn#", NULL}, {"{async_block#", "block"}, {"{async_closure#", "closure"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].word);
        char *name = NULL, *around;
        if (strncmp(word, kinds[i].word, length) != 0) continue;
        if (!(around = without_rust_closures(readable))) return NULL;
        int digits = (int)strspn(word + length, "0123456789");
        int size = kinds[i].text ? asprintf(&name, "%s::{async %s#%.*s}", around, kinds[i].text,
                                            digits, word + length)
                                 : asprintf(&name, "async fn %s", around);
        free(around);
        return size < 0 ? NULL : name;
    }
    return NULL;
}

// One pass that copies the text onto itself; a part that does not nest properly is copied as it is.

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
