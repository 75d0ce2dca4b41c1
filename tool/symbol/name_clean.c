// SPDX-License-Identifier: Apache-2.0
// One pass over the text with a stack of open brackets. The output never grows beyond the input,
// so it is one allocation; each rewrite happens when a bracket closes or a "::" ends a namespace,
// on output that is already clean, which makes nested names come out right from the inside.
//
// Only an argument that equals the default of the standard is dropped (std::less<K> for the K of
// that very map), and only from the end of the list: another comparator must stay visible, it
// makes a different type.
#include "tool/symbol/name_clean.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 128                   // deeper names come back unchanged
#define LENGTH_MAX ((size_t)64 * 1024)  // likewise longer ones: the time is not linear
#define ARGUMENTS_MAX 8                 // no template of the table has more

// Default arguments that a template of the table may have at its end.
enum {
    ALLOCATOR = 1,
    TRAITS = 2,
    LESS = 4,
    HASH = 8,
    EQUAL = 16,
    DELETER = 32,
    DEQUE = 64,
    VECTOR = 128,
};

static const struct {
    const char *prefix;
    unsigned kind;
    bool is_of_first;  // the default is PREFIX FIRST-ARGUMENT ">", nothing else
} defaults[] = {
    {"std::allocator<", ALLOCATOR, false},
    {"std::char_traits<", TRAITS, true},
    {"std::less<", LESS, true},
    {"std::hash<", HASH, true},
    {"std::equal_to<", EQUAL, true},
    {"std::default_delete<", DELETER, true},
    {"std::deque<", DEQUE, true},
    {"std::vector<", VECTOR, true},
};

static const struct {
    const char *name;
    size_t required_count;  // arguments without a default
    unsigned kinds;
} templates[] = {
    {"std::vector", 1, ALLOCATOR},
    {"std::deque", 1, ALLOCATOR},
    {"std::list", 1, ALLOCATOR},
    {"std::forward_list", 1, ALLOCATOR},
    {"std::set", 1, LESS | ALLOCATOR},
    {"std::multiset", 1, LESS | ALLOCATOR},
    {"std::map", 2, LESS | ALLOCATOR},
    {"std::multimap", 2, LESS | ALLOCATOR},
    {"std::unordered_set", 1, HASH | EQUAL | ALLOCATOR},
    {"std::unordered_multiset", 1, HASH | EQUAL | ALLOCATOR},
    {"std::unordered_map", 2, HASH | EQUAL | ALLOCATOR},
    {"std::unordered_multimap", 2, HASH | EQUAL | ALLOCATOR},
    {"std::queue", 1, DEQUE},
    {"std::stack", 1, DEQUE},
    {"std::priority_queue", 1, VECTOR | LESS},
    {"std::unique_ptr", 1, DELETER},
    {"std::_Vector_base", 1, ALLOCATOR},
    {"std::_Deque_base", 1, ALLOCATOR},
    {"std::_List_base", 1, ALLOCATOR},
    {"std::_Rb_tree", 3, LESS | ALLOCATOR},
    {"std::istreambuf_iterator", 1, TRAITS},
    {"std::ostreambuf_iterator", 1, TRAITS},
};

// All of std::basic_string, std::basic_ostream, ... take a character, traits and an allocator.
#define BASIC_PREFIX "std::basic_"

static const char *const inline_namespaces[] = {"__cxx11", "__1", "__ndk1", "_V2"};

// Longest first where one is the beginning of another.
static const char *const bracket_operators[] = {
    "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">", ","};

struct level {
    char open;
    size_t name_start;  // of the template's name in the output
    size_t argument_count;
    size_t argument_start[ARGUMENTS_MAX];
};

struct cleaner {
    char *out;
    size_t length;
    struct level levels[DEPTH_MAX];
    size_t depth;
};

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool starts_with(const char *text, size_t length, const char *prefix) {
    return length >= strlen(prefix) && !memcmp(text, prefix, strlen(prefix));
}

static bool equals(const char *text, size_t length, const char *other) {
    return length == strlen(other) && !memcmp(text, other, length);
}

static bool ends_with(const struct cleaner *cleaner, const char *suffix) {
    size_t length = strlen(suffix);
    return cleaner->length >= length &&
           !memcmp(cleaner->out + cleaner->length - length, suffix, length);
}

// Start of the qualified name (words and "::") that ends the output.
static size_t qualified_start(const struct cleaner *cleaner) {
    size_t start = cleaner->length;
    while (start && (is_word(cleaner->out[start - 1]) || cleaner->out[start - 1] == ':')) start--;
    return start;
}

// The output ends in "::": drops the namespace before it if it is an inline one below std.
static void drop_inline_namespace(struct cleaner *cleaner) {
    size_t start = qualified_start(cleaner);
    if (!starts_with(cleaner->out + start, cleaner->length - start, "std::")) return;
    size_t end = cleaner->length - strlen("::"), word = end;
    while (word > start && is_word(cleaner->out[word - 1])) word--;
    for (size_t i = 0; i < sizeof inline_namespaces / sizeof inline_namespaces[0]; i++)
        if (equals(cleaner->out + word, end - word, inline_namespaces[i])) cleaner->length = word;
}

static size_t argument_end(const struct cleaner *cleaner, const struct level *level, size_t index) {
    if (index + 1 == level->argument_count) return cleaner->length;
    return level->argument_start[index + 1] - strlen(", ");
}

static bool is_default(const struct cleaner *cleaner, const struct level *level, size_t index,
                       unsigned kinds) {
    const char *text = cleaner->out + level->argument_start[index];
    size_t length = argument_end(cleaner, level, index) - level->argument_start[index];
    const char *first = cleaner->out + level->argument_start[0];
    size_t first_length = argument_end(cleaner, level, 0) - level->argument_start[0];
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        size_t prefix_length = strlen(defaults[i].prefix);
        if (!(defaults[i].kind & kinds) || !starts_with(text, length, defaults[i].prefix)) continue;
        if (!defaults[i].is_of_first) return true;
        return length == prefix_length + first_length + 1 &&
               !memcmp(text + prefix_length, first, first_length);
    }
    return false;
}

static bool find_template(const char *name, size_t length, size_t *required, unsigned *kinds) {
    for (size_t i = 0; i < sizeof templates / sizeof templates[0]; i++) {
        if (!equals(name, length, templates[i].name)) continue;
        *required = templates[i].required_count;
        *kinds = templates[i].kinds;
        return true;
    }
    *required = 1;
    *kinds = TRAITS | ALLOCATOR;
    return starts_with(name, length, BASIC_PREFIX);
}

// "std::basic_NAME<char>" at `start` to the end of the output is "std::NAME" to everybody.
static void use_short_name(struct cleaner *cleaner, size_t start) {
    static const char prefix[] = BASIC_PREFIX;
    const size_t from = sizeof prefix - 1;
    char *name = cleaner->out + start;
    size_t length = cleaner->length - start, open = from;
    if (!starts_with(name, length, prefix)) return;
    while (open < length && name[open] != '<') open++;
    bool is_wide = equals(name + open, length - open, "<wchar_t>");
    if (!is_wide && !equals(name + open, length - open, "<char>")) return;
    size_t to = sizeof "std::" - 1;
    if (is_wide) name[to++] = 'w';
    for (size_t i = from; i < open; i++) name[to++] = name[i];
    cleaner->length = start + to;
}

// The template's list is complete in the output but for its '>'.
static void close_template(struct cleaner *cleaner, const struct level *level) {
    size_t name_length = level->argument_start[0] - 1 - level->name_start;
    size_t required = 0, count = level->argument_count;
    unsigned kinds = 0;
    bool is_known = count <= ARGUMENTS_MAX &&
                    find_template(cleaner->out + level->name_start, name_length, &required, &kinds);
    struct level rest = *level;
    while (is_known && rest.argument_count > required &&
           is_default(cleaner, &rest, rest.argument_count - 1, kinds)) {
        cleaner->length = argument_end(cleaner, level, rest.argument_count - 2);
        rest.argument_count--;
    }
    cleaner->out[cleaner->length++] = '>';
    if (is_known) use_short_name(cleaner, level->name_start);
}

static bool open_bracket(struct cleaner *cleaner, char open) {
    if (cleaner->depth == DEPTH_MAX) return false;
    struct level *level = &cleaner->levels[cleaner->depth++];
    level->open = open;
    level->name_start = qualified_start(cleaner);
    cleaner->out[cleaner->length++] = open;
    level->argument_count = 1;
    level->argument_start[0] = cleaner->length;
    return true;
}

// An empty parameter pack at the end: "f<int, >".
static void drop_empty_argument(struct cleaner *cleaner, struct level *level) {
    if (level->argument_count < 2 || !ends_with(cleaner, ", ")) return;
    cleaner->length -= strlen(", ");
    level->argument_count--;
}

static bool close_bracket(struct cleaner *cleaner, char open, char close) {
    if (!cleaner->depth || cleaner->levels[cleaner->depth - 1].open != open) return false;
    struct level *level = &cleaner->levels[--cleaner->depth];
    if (open == '<') {
        drop_empty_argument(cleaner, level);
        if (ends_with(cleaner, " ") && !ends_with(cleaner, ", ")) cleaner->length--;
        close_template(cleaner, level);
    } else {
        cleaner->out[cleaner->length++] = close;
    }
    return true;
}

static void next_argument(struct cleaner *cleaner) {
    if (!cleaner->depth) return;
    struct level *level = &cleaner->levels[cleaner->depth - 1];
    if (level->argument_count < ARGUMENTS_MAX)
        level->argument_start[level->argument_count] = cleaner->length;
    level->argument_count++;
}

// Length of the brackets or comma of an operator's name right after the word "operator".
static size_t operator_length(const struct cleaner *cleaner, const char *text) {
    const size_t word_length = strlen("operator");
    size_t length = cleaner->length;
    if (!ends_with(cleaner, "operator")) return 0;
    if (length > word_length && is_word(cleaner->out[length - word_length - 1])) return 0;
    for (size_t i = 0; i < sizeof bracket_operators / sizeof bracket_operators[0]; i++)
        if (!strncmp(text, bracket_operators[i], strlen(bracket_operators[i])))
            return strlen(bracket_operators[i]);
    return 0;
}

// A '<' after a name or an operator's name opens a list; after an operand, "(1)<(2)", it compares.
static bool opens_template(const struct cleaner *cleaner) {
    if (!cleaner->length || ends_with(cleaner, "(") || ends_with(cleaner, ",")) return false;
    return !ends_with(cleaner, ")") || ends_with(cleaner, "operator()");
}

static size_t abi_tag_length(const char *text) {
    const char *end = strncmp(text, "[abi:", strlen("[abi:")) ? NULL : strchr(text, ']');
    return end ? (size_t)(end - text) + 1 : 0;
}

// Takes one step; returns how much of `text` it used, 0 if brackets do not match.
static size_t clean_step(struct cleaner *cleaner, const char *text) {
    size_t operator_used = operator_length(cleaner, text);
    if (operator_used) {
        memcpy(cleaner->out + cleaner->length, text, operator_used);
        cleaner->length += operator_used;
        return operator_used;
    }
    size_t tag = abi_tag_length(text);
    if (tag) return tag;
    bool is_in_list = cleaner->depth && cleaner->levels[cleaner->depth - 1].open == '<';
    char c = text[0];
    if (strchr("([{", c) || (c == '<' && opens_template(cleaner))) return open_bracket(cleaner, c);
    if (c == ')') return close_bracket(cleaner, '(', c);
    if (c == ']') return close_bracket(cleaner, '[', c);
    if (c == '}') return close_bracket(cleaner, '{', c);
    if (c == '>' && is_in_list) return close_bracket(cleaner, '<', c);
    cleaner->out[cleaner->length++] = c;
    if (ends_with(cleaner, ", ")) next_argument(cleaner);
    if (ends_with(cleaner, "::")) drop_inline_namespace(cleaner);
    return 1;
}

char *name_clean_cxx(const char *demangled) {
    if (strlen(demangled) > LENGTH_MAX) return strdup(demangled);
    struct cleaner *cleaner = calloc(1, sizeof *cleaner);
    char *out = calloc(1, strlen(demangled) + 1);
    if (!cleaner || !out) goto fail;
    cleaner->out = out;
    for (const char *text = demangled; *text;) {
        size_t used = clean_step(cleaner, text);
        if (!used) break;
        text += used;
        if (!*text && !cleaner->depth) {
            out[cleaner->length] = '\0';
            free(cleaner);
            return out;
        }
    }
    free(cleaner);
    free(out);
    return strdup(demangled);
fail:
    free(cleaner);
    free(out);
    return NULL;
}
