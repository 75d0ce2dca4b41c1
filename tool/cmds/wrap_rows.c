// SPDX-License-Identifier: Apache-2.0
// A row:
// alloc=NAME(size=1):calloc=NAME(count=1,size=2):realloc=NAME(ptr=1,size=2):free=NAME(ptr=1), the
// numbers being those of arguments; name=HEAP besides, or it is called as its first function is.
#include "tool/cmds/wrap_rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/wrap.h"
#include "tool/base/text.h"

enum { ROW_BYTES = 1024, SAFE_BYTES = 256 };

static const struct {
    const char *name, *row;
} known_rows[] = {
    {"cuda", "name=cuda (device):alloc=cudaMalloc(out=1,size=2):free=cudaFree(ptr=1)"},
    {"cuda-driver",
     "name=cuda (device, driver):alloc=cuMemAlloc_v2(out=1,size=2):free=cuMemFree_v2(ptr=1)"},
    {"hip", "name=hip (device):alloc=hipMalloc(out=1,size=2):free=hipFree(ptr=1)"},
    {"glib-slices", "name=glib slices:alloc=g_slice_alloc(size=1):alloc=g_slice_alloc0(size=1):"
                    "free=g_slice_free1(ptr=2)"},
    {"jemalloc-mallocx",
     "name=jemalloc mallocx:alloc=mallocx(size=1):realloc=rallocx(ptr=1,size=2):"
     "free=dallocx(ptr=1):free=sdallocx(ptr=1)"},
    {"mimalloc-heaps",
     "name=mimalloc heaps:alloc=mi_heap_malloc(size=2):alloc=mi_heap_zalloc(size=2):"
     "calloc=mi_heap_calloc(count=2,size=3):realloc=mi_heap_realloc(ptr=2,size=3):free=mi_free(ptr="
     "1)"},
};
enum { KNOWN_ROWS = sizeof known_rows / sizeof *known_rows };

static const struct role {
    const char *name;
    char letter;
    bool needs_size, needs_count, needs_pointer, may_have_out;
} roles[] = {{"alloc", 'a', true, false, false, true},
             {"calloc", 'c', true, true, false, true},
             {"realloc", 'r', true, false, true, false},
             {"free", 'f', false, false, true, false}};
enum { ROLES = sizeof roles / sizeof *roles };

struct function {
    const struct role *role;
    char name[CAIRN_WRAP_NAME_BYTES];
    unsigned size, count, pointer, out;
};

struct rows {
    const char *row;  // that is being read, for errors
    struct function functions[CAIRN_WRAP_FUNCTIONS];
    size_t function_count, heap_count;
    FILE *out;
};

static bool refuse(const struct rows *rows, struct error *error, const char *what,
                   const char *which) {
    char row[SAFE_BYTES], safe[SAFE_BYTES];
    text_escape(row, sizeof row, rows->row);
    text_escape(safe, sizeof safe, which);
    return error_set(error, "--wrap '%s': %s%s%s", row, safe, *safe ? ": " : "", what);
}

static bool is_identifier(const char *name) {
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '$' && *at != '@') return false;
    return *name && !isdigit((unsigned char)*name);
}

// "size=1,ptr=2)" behind the bracket.
static bool read_arguments(struct rows *rows, struct function *function, char *text,
                           struct error *error) {
    char *end = strchr(text, ')'), *entry;
    if (!end || end[1])
        return refuse(rows, error, "it ends in (size=N, ptr=N, ...)", function->name);
    *end = 0;
    while ((entry = strsep(&text, ","))) {
        char *value = strchr(entry, '=');
        while (isspace((unsigned char)*entry)) entry++;
        if (value) *value++ = 0;
        unsigned *place = !strcmp(entry, "size")    ? &function->size
                          : !strcmp(entry, "count") ? &function->count
                          : !strcmp(entry, "ptr")   ? &function->pointer
                          : !strcmp(entry, "out")   ? &function->out
                                                    : NULL;
        if (!place) return refuse(rows, error, "not one of size, count, ptr, out", entry);
        bool is_number = value && isdigit((unsigned char)*value) && !value[1];
        *place = is_number ? (unsigned)(*value - '0') : 0;
        if (!*place || *place > CAIRN_WRAP_ARGUMENTS)
            return refuse(rows, error, "an argument's number is 1 to 6", function->name);
    }
    return true;
}

static bool check_function(const struct rows *rows, const struct function *function,
                           struct error *error) {
    const struct role *role = function->role;
    if (!is_identifier(function->name))
        return refuse(rows, error, "no name of a function", function->name);
    for (size_t i = 0; i < rows->function_count; i++)
        if (!strcmp(rows->functions[i].name, function->name))
            return refuse(rows, error, "it is named twice", function->name);
    if (role->needs_size && !function->size)
        return refuse(rows, error, "it needs size=N", function->name);
    if (role->needs_count != (function->count != 0))
        return refuse(rows, error, role->needs_count ? "it needs count=N" : "count is of calloc",
                      function->name);
    if (role->needs_pointer != (function->pointer != 0))
        return refuse(rows, error,
                      role->needs_pointer ? "it needs ptr=N" : "ptr is of free and realloc",
                      function->name);
    if (function->out && !role->may_have_out)
        return refuse(rows, error, "out is of alloc and calloc", function->name);
    return true;
}

// One field of a row, which is not its name.
static bool read_function(struct rows *rows, char *field, struct error *error) {
    char *name = strchr(field, '='), *bracket = strchr(field, '(');
    struct function function = {.role = NULL};
    if (!name || !bracket || bracket < name)
        return refuse(rows, error, "not as alloc=NAME(size=1)", field);
    *name++ = 0;
    *bracket++ = 0;
    for (size_t i = 0; i < ROLES; i++)
        if (!strcmp(field, roles[i].name)) function.role = &roles[i];
    if (!function.role)
        return refuse(rows, error, "not one of alloc, calloc, realloc, free, name", field);
    if (strlen(name) >= sizeof function.name) return refuse(rows, error, "it is too long", name);
    snprintf(function.name, sizeof function.name, "%s", name);
    if (!read_arguments(rows, &function, bracket, error) || !check_function(rows, &function, error))
        return false;
    if (rows->function_count == CAIRN_WRAP_FUNCTIONS)
        return refuse(rows, error, "more than 64 functions", "");
    rows->functions[rows->function_count++] = function;
    return true;
}

// The functions from `first` on are the row's.
static bool write_heap(struct rows *rows, const char *heap, size_t first, struct error *error) {
    bool allocates = false, frees = false;
    for (size_t i = first; i < rows->function_count; i++) {
        frees |= rows->functions[i].role->letter == 'f';
        allocates |= rows->functions[i].role->letter != 'f';
    }
    if (!allocates || !frees) return refuse(rows, error, "a heap needs alloc and free", "");
    if (rows->heap_count++ == CAIRN_WRAP_HEAPS)
        return refuse(rows, error, "more than 16 heaps", "");
    fputs(heap ? heap : rows->functions[first].name, rows->out);
    for (size_t i = first; i < rows->function_count; i++) {
        const struct function *function = &rows->functions[i];
        fprintf(rows->out, "|%c,%s,%u,%u,%u,%u", function->role->letter, function->name,
                function->size, function->count, function->pointer, function->out);
    }
    fputc('\n', rows->out);
    return true;
}

static bool read_row(struct rows *rows, const char *row, struct error *error) {
    char copy[ROW_BYTES], *rest = copy, *field, *heap = NULL;
    size_t first = rows->function_count;
    rows->row = row;
    for (size_t i = 0; i < KNOWN_ROWS; i++)
        if (!strcmp(row, known_rows[i].name)) row = known_rows[i].row;
    if (strlen(row) >= sizeof copy) return refuse(rows, error, "it is too long", "");
    snprintf(copy, sizeof copy, "%s", row);
    while ((field = strsep(&rest, ":"))) {
        if (strncmp(field, "name=", 5) != 0) {
            if (!read_function(rows, field, error)) return false;
            continue;
        }
        heap = field + 5;
        if (!*heap || strlen(heap) >= CAIRN_WRAP_NAME_BYTES || strpbrk(heap, ",|\n"))
            return refuse(rows, error, "no name of a heap", heap);
    }
    return write_heap(rows, heap, first, error);
}

// A row a line; '#' begins a comment.
static bool read_file(struct rows *rows, const char *path, struct error *error) {
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0, number = 0;
    bool is_ok = true;
    if (!file) return error_set(error, "--wrap @%s: %s", path, strerror(errno));
    while (is_ok && getline(&line, &size, file) >= 0) {
        number++;
        line[strcspn(line, "#\r\n")] = 0;
        char *start = line + strspn(line, " \t"), *end = start + strlen(start);
        while (end > start && isspace((unsigned char)end[-1])) *--end = 0;
        if (*start && !read_row(rows, start, error))
            is_ok = error_wrap(error, "%s:%zu", path, number);
    }
    free(line);
    fclose(file);
    return is_ok;
}

bool wrap_rows_read(const struct command_args *args, char **text, struct error *error) {
    struct rows *rows = calloc(1, sizeof *rows);
    size_t size = 0, next = 0;
    const char *row;
    *text = NULL;
    if (!args_has(args, OPTION_WRAP)) {
        free(rows);
        return true;
    }
    if (rows) rows->out = open_memstream(text, &size);
    bool is_ok = rows && rows->out;
    if (!is_ok) error_set(error, "out of memory");
#if !defined(__x86_64__)
    if (is_ok) is_ok = error_set(error, "--wrap is for x86-64");
#endif
    while (is_ok && (row = args_next(args, OPTION_WRAP, &next)))
        is_ok = *row == '@' ? read_file(rows, row + 1, error) : read_row(rows, row, error);
    if (rows && rows->out) fclose(rows->out);
    free(rows);
    if (is_ok) return true;
    free(*text);
    *text = NULL;
    return error_wrap(error, "%s", args->command->name);
}
