// SPDX-License-Identifier: Apache-2.0
// Which demangler reads a name, and what compilers hang onto names before it may read them.
// The demanglers are those of the GNU tools, so that names agree with gdb, nm and addr2line.
#include "tool/symbol/name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tool/symbol/name_clean.h"
#include "tool/symbol/name_closure.h"

// Longer names are copied: demangling time is not linear in the length of a hostile name.
#define MANGLED_LENGTH_MAX ((size_t)32 * 1024)

// What compilers append to the name of a function they split, cloned or moved. A number may
// follow each of them.
static const char *const clone_suffixes[] = {
    ".part", ".isra", ".constprop", ".cold", ".llvm", ".lto_priv", ".localalias", ".resolver",
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

// Length of `name` without clone suffixes, one at a time from the end: ".cold", ".part.0", ".12".
static size_t base_length(const char *name, size_t length) {
    for (;;) {
        size_t dot = last_dot(name, length);
        if (!dot) return length;
        size_t digits = dot + 1;
        while (digits < length && isdigit((unsigned char)name[digits])) digits++;
        bool is_number = digits == length && length > dot + 1;
        if (!is_number && !is_clone_suffix(name + dot, length - dot)) return length;
        length = dot;
    }
}

// Rust's legacy form looks like C++ and is told apart by its hash at the end.
static bool may_be_rust(const char *name) {
    return !strncmp(name, "_R", 2) || (!strncmp(name, "_ZN", 3) && strstr(name, "17h"));
}

// Names of D and Swift are left as they are; what looks like a suffix belongs to them.
static bool is_left_whole(const char *name) {
    static const char *const prefixes[] = {"$s", "$S", "_$s", "_$S", "_T0"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return name[0] == '_' && name[1] == 'D' && isdigit((unsigned char)name[2]);
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
    // Names in debug information may be C++ without being mangled.
    bool is_mangled = !strncmp(name, "_Z", 2);
    if (!is_mangled && (strchr(name, '<') || strstr(name, "::"))) return clean(name);
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
    if (!full) full = cplus_demangle_v3(base, DMGL_PARAMS | DMGL_ANSI | DMGL_VERBOSE);
    if (!full) return base;
    free(base);
    return full;
}

const char *name_last_closure(const char *readable) {
    static const char *const words[] = {"{lambda", "{closure#", "{{closure}"};
    const char *last = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (const char *at = readable; (at = strstr(at, words[i])); at++)
            if (!last || at > last) last = at;
    return last;
}
