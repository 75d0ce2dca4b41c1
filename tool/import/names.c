// SPDX-License-Identifier: Apache-2.0
// Names of other profilers as cairn says them, so that the same rules tell which frames are
// internal, and the same stacks are the same. Demanglers put the return type in front of a function
// that is a template, and parameters behind it. Valgrind takes the names of inlined functions out
// of the debug information as they stand there: `_M_allocate`, of stl_vector.h.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/import/import.h"

static const char call_operator[] = "operator";

// Files of the C++ library, and where their functions are; of the C library, which is a module.
static const struct {
    const char *file, *scope, *module;
} libraries[] = {
    {"alloc_traits.h", "std::allocator_traits<>", NULL},
    {"allocated_ptr.h", "std::__allocated_ptr<>", NULL},
    {"allocator.h", "std::allocator<>", NULL},
    {"basic_string.h", "std::string", NULL},
    {"basic_string.tcc", "std::string", NULL},
    {"deque.tcc", "std::deque<>", NULL},
    {"hashtable.h", "std::_Hashtable<>", NULL},
    {"hashtable_policy.h", "std::__detail", NULL},
    {"invoke.h", "std", NULL},
    {"list.tcc", "std::list<>", NULL},
    {"new_allocator.h", "std::__new_allocator<>", NULL},
    {"shared_ptr_base.h", "std::__shared_ptr<>", NULL},
    {"std_function.h", "std::function<>", NULL},
    {"std_thread.h", "std::thread::_Invoker<>", NULL},
    {"stl_construct.h", "std", NULL},
    {"stl_deque.h", "std::deque<>", NULL},
    {"stl_list.h", "std::list<>", NULL},
    {"stl_map.h", "std::map<>", NULL},
    {"stl_set.h", "std::set<>", NULL},
    {"stl_tree.h", "std::_Rb_tree<>", NULL},
    {"stl_uninitialized.h", "std", NULL},
    {"stl_vector.h", "std::vector<>", NULL},
    {"unique_ptr.h", "std", NULL},
    {"unordered_map.h", "std::unordered_map<>", NULL},
    {"unordered_set.h", "std::unordered_set<>", NULL},
    {"vector.tcc", "std::vector<>", NULL},
    {"clone.S", NULL, "libc.so.6"},
    {"clone3.S", NULL, "libc.so.6"},
    {"dl-init.c", NULL, "ld-linux-x86-64.so.2"},
    {"libc-start.c", NULL, "libc.so.6"},
    {"libc_start_call_main.h", NULL, "libc.so.6"},
    {"pthread_create.c", NULL, "libc.so.6"},
};
enum { LIBRARY_COUNT = sizeof libraries / sizeof *libraries };

static size_t library_of(const char *file) {
    size_t i = 0;
    while (i < LIBRARY_COUNT && (!file || strcmp(text_base_name(file), libraries[i].file) != 0))
        i++;
    return i;
}

const char *import_library_of(const char *function, const char *file) {
    size_t library = function ? library_of(file) : LIBRARY_COUNT;
    return library < LIBRARY_COUNT ? libraries[library].module : NULL;
}

// Where the parameters of a C++ function begin; the end if there are none.
static size_t length_without_parameters(const char *name) {
    static const char constant[] = " const";
    size_t length = strlen(name), end = length, depth = 0;
    if (end > sizeof constant && !strcmp(name + end - (sizeof constant - 1), constant))
        end -= sizeof constant - 1;
    if (!end || name[end - 1] != ')') return length;
    while (end-- > 0) {
        if (name[end] == ')') depth++;
        if (name[end] == '(' && !--depth) break;
    }
    const size_t call_length = sizeof call_operator - 1;
    bool is_call = end >= call_length && end != SIZE_MAX &&
                   !strncmp(name + end - call_length, call_operator, call_length);
    return !end || end == SIZE_MAX || is_call || name[end - 1] == ' ' ? length : end;
}

static bool is_word(char letter) {
    return isalnum((unsigned char)letter) || letter == '_';
}

// "operator" as a word: what follows it is part of the name, whatever it is.
static bool is_operator_at(const char *name, size_t at) {
    const size_t length = sizeof call_operator - 1;
    return !strncmp(name + at, call_operator, length) && !is_word(name[at + length]) &&
           (!at || !is_word(name[at - 1]));
}

// Where the name begins behind its return type, which only templates and operators have; and
// whether it says what class or namespace it is of.
static size_t start_of_name(const char *name, size_t length, bool *is_qualified) {
    size_t start = 0, depth = 0;
    bool has_arguments = false;
    *is_qualified = false;
    for (size_t i = 0; i < length; i++) {
        if (!depth && is_operator_at(name, i)) return start;
        if (strchr("<([{", name[i])) depth++;
        has_arguments |= name[i] == '<' && depth == 1;
        bool is_arrow = name[i] == '>' && i && name[i - 1] == '-';
        if (strchr(">)]}", name[i]) && depth && !is_arrow) depth--;
        if (depth) continue;
        *is_qualified |= !strncmp(name + i, "::", 2);
        if (name[i] != ' ') continue;
        start = i + 1;
        has_arguments = *is_qualified = false;
    }
    return has_arguments && !depth ? start : 0;
}

char *import_name(const char *function, const char *file) {
    bool is_qualified;
    size_t length = length_without_parameters(function), library = library_of(file);
    size_t start = start_of_name(function, length, &is_qualified), size = length - start;
    const char *scope = library < LIBRARY_COUNT && !is_qualified ? libraries[library].scope : NULL;
    char *name = NULL;
    if (!scope) return strndup(function + start, size);
    return asprintf(&name, "%s::%.*s", scope, (int)size, function + start) < 0 ? NULL : name;
}
