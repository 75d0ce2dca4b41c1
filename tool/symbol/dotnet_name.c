// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/dotnet_name.h"

#include <string.h>

// A part of a text.
struct part {
    const char *at, *end;
};

static struct part part_until(const char *at, const char *end) {
    return (struct part){at, end};
}

static const char *find_in(struct part part, const char *word) {
    size_t length = strlen(word);
    for (const char *at = part.at; at + length <= part.end; at++)
        if (!memcmp(at, word, length)) return at;
    return NULL;
}

// Finds "[ASSEMBLY] " with a type behind it; the types of arguments have no blank there.
static bool find_assembly(const char *text, struct part *assembly) {
    for (const char *close = strstr(text, "] "); close; close = strstr(close + 1, "] ")) {
        const char *open = close;
        while (open > text && !strchr("[] ,(", open[-1])) open--;
        if (open == close || open == text || open[-1] != '[') continue;
        *assembly = part_until(open, close);
        return true;
    }
    return false;
}

static void append(char *out, struct part part) {
    size_t used = strlen(out), length = (size_t)(part.end - part.at);
    if (length > DOTNET_NAME_MOST - 1 - used) length = DOTNET_NAME_MOST - 1 - used;
    memcpy(out + used, part.at, length);
    out[used + length] = 0;
}

static void append_text(char *out, const char *text) {
    append(out, part_until(text, text + strlen(text)));
}

// "List`1+Enumerator[System.Int32]" is "List.Enumerator<System.Int32>"; "Byte[]" stays as it is.
static void append_type(char *out, struct part type) {
    for (const char *at = type.at; at < type.end; at++) {
        bool is_array = *at == '[' && at + 1 < type.end && at[1] == ']';
        if (*at == '`') {
            while (at + 1 < type.end && at[1] >= '0' && at[1] <= '9') at++;
        } else if (is_array) {
            append_text(out, "[]");
            at++;
        } else {
            static const char from[] = "+[]", to[] = ".<>";
            const char *changed = strchr(from, *at);
            append(out, changed && *at
                            ? part_until(to + (changed - from), to + (changed - from) + 1)
                            : part_until(at, at + 1));
        }
    }
}

// Finds "<METHOD>KIND__" in a name that a compiler made; false: it made none.
static bool find_origin(struct part name, const char *kind, struct part *method) {
    if (name.at == name.end || *name.at != '<') return false;
    const char *close = find_in(name, kind);
    if (!close || close == name.at + 1) return false;
    *method = part_until(name.at + 1, close);
    return true;
}

// Cuts the last of nested types off; it is empty if there is none.
static struct part cut_nested(struct part *type) {
    const char *plus = type->end;
    for (const char *at = type->at; at < type->end && *at != '['; at++)
        if (*at == '+') plus = at;
    struct part nested = part_until(plus < type->end ? plus + 1 : plus, type->end);
    type->end = plus;
    return nested;
}

static void append_method(char *out, struct part type, struct part method) {
    append_type(out, type);
    append_text(out, ".");
    append(out, method);
}

bool dotnet_name_read(struct dotnet_name *name, const char *text) {
    struct part assembly, origin;
    if (!find_assembly(text, &assembly)) return false;
    struct part rest = part_until(assembly.end + 2, text + strlen(text));
    const char *colons = find_in(rest, "::");
    if (!colons || memchr(rest.at, ' ', (size_t)(colons - rest.at))) return false;
    struct part type = part_until(rest.at, colons), method = part_until(colons + 2, rest.end);
    const char *arguments = find_in(method, "(");
    if (!arguments) return false;
    method.end = arguments;
    name->assembly[0] = name->method[0] = 0;
    append(name->assembly, assembly);
    struct part outer = type, nested = cut_nested(&outer);
    if (find_origin(nested, ">d__", &origin)) {
        append_method(name->method, outer, origin);
    } else if (find_origin(method, ">b__", &origin)) {
        bool is_closure = nested.end - nested.at >= 3 && !memcmp(nested.at, "<>c", 3);
        append_method(name->method, is_closure ? outer : type, origin);
        append_text(name->method, ".<lambda>");
    } else {
        append_method(name->method, type, method);
    }
    return true;
}

bool dotnet_is_assembly(const char *file, unsigned line) {
    static const char python[] = ".py";
    const size_t length = file ? strlen(file) : 0, end = sizeof python - 1;
    bool is_python = length > end && !strcmp(file + length - end, python);
    return length && !line && !is_python && !strpbrk(file, "/<:");
}

bool dotnet_is_framework(const char *assembly) {
    static const char *const beginnings[] = {"System.", "Microsoft."};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(assembly, beginnings[i], strlen(beginnings[i]))) return true;
    return !strcmp(assembly, "mscorlib") || !strcmp(assembly, "netstandard");
}
