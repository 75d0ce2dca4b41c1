// SPDX-License-Identifier: Apache-2.0
// A row:
// alloc=NAME(size=1):calloc=NAME(count=1,size=2):realloc=NAME(ptr=1,size=2):free=NAME(ptr=1), the
// numbers being those of arguments; name=HEAP besides, or it is called as its first function is.
// Heaps whose blocks lie in arenas have pool=N besides, and say how arenas come and go.
#include "tool/cmds/wrap_rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/heap_functions.h"
#include "format/wrap.h"
#include "tool/base/text.h"
#include "tool/base/toml.h"

enum { ROW_BYTES = 2048, SAFE_BYTES = 256 };

// A row is one text.
static const struct {
    const char *name, *row;
} known_rows[] = {
    {"apr-pools", "name=APR pools:alloc=apr_palloc(pool=1,size=2):alloc=apr_pcalloc(pool=1,size=2):"
                  "make=apr_pool_create_ex(out=1,parent=2):make=apr_pool_create_core_ex(out=1):"
                  "make=apr_pool_create_unmanaged_ex(out=1):label=apr_pool_tag(pool=1,label=2):"
                  "clear=apr_pool_clear(pool=1):destroy=apr_pool_destroy(pool=1)"},
    {"cuda", "name=cuda (device):alloc=cudaMalloc(out=1,size=2):free=cudaFree(ptr=1)"},
    {"cuda-driver",
     "name=cuda (device, driver):alloc=cuMemAlloc_v2(out=1,size=2):free=cuMemFree_v2(ptr=1)"},
    {"hip", "name=hip (device):alloc=hipMalloc(out=1,size=2):free=hipFree(ptr=1)"},
    {"glib", "name=glib:alloc=g_malloc(size=1):alloc=g_malloc0(size=1):alloc=g_try_malloc(size=1):"
             "alloc=g_try_malloc0(size=1):calloc=g_malloc_n(count=1,size=2):"
             "calloc=g_malloc0_n(count=1,size=2):calloc=g_try_malloc_n(count=1,size=2):"
             "calloc=g_try_malloc0_n(count=1,size=2):realloc=g_realloc(ptr=1,size=2):"
             "realloc=g_try_realloc(ptr=1,size=2):realloc=g_realloc_n(ptr=1,count=2,size=3):"
             "realloc=g_try_realloc_n(ptr=1,count=2,size=3):free=g_free(ptr=1):"
             "free?=g_free_sized(ptr=1):calloc?=g_aligned_alloc(count=1,size=2):"
             "calloc?=g_aligned_alloc0(count=1,size=2):free?=g_aligned_free(ptr=1):"
             "free?=g_aligned_free_sized(ptr=1)"},
    {"glib-slices", "name=glib slices:alloc=g_slice_alloc(size=1):alloc=g_slice_alloc0(size=1):"
                    "alloc=g_slice_copy(size=1):free=g_slice_free1(ptr=2)"},
    {"jemalloc-mallocx",
     "name=jemalloc mallocx:alloc=mallocx(size=1):realloc=rallocx(ptr=1,size=2):"
     "free=dallocx(ptr=1):free=sdallocx(ptr=1)"},
    {"mimalloc-heaps",
     "name=mimalloc heaps:make=mi_heap_new():alloc=mi_heap_malloc(pool=1,size=2):"
     "alloc=mi_heap_zalloc(pool=1,size=2):alloc=mi_heap_malloc_small(pool=1,size=2):"
     "alloc=mi_heap_malloc_aligned(pool=1,size=2):alloc=mi_heap_zalloc_aligned(pool=1,size=2):"
     "calloc=mi_heap_calloc(pool=1,count=2,size=3):calloc=mi_heap_mallocn(pool=1,count=2,size=3):"
     "realloc=mi_heap_realloc(ptr=2,size=3):realloc=mi_heap_rezalloc(ptr=2,size=3):"
     "realloc=mi_heap_reallocn(ptr=2,count=3,size=4):free=mi_free(ptr=1):"
     "destroy=mi_heap_destroy(pool=1)"},
    {"postgresql",
     "name=PostgreSQL:current=CurrentMemoryContext:alloc=palloc(size=1):alloc=palloc0(size=1):"
     "alloc=palloc_extended(size=1):alloc=MemoryContextAlloc(pool=1,size=2):"
     "alloc=MemoryContextAllocZero(pool=1,size=2):"
     "alloc=MemoryContextAllocZeroAligned(pool=1,size=2):"
     "alloc=MemoryContextAllocExtended(pool=1,size=2):alloc=MemoryContextAllocHuge(pool=1,size=2):"
     "realloc=repalloc(ptr=1,size=2):realloc=repalloc_huge(ptr=1,size=2):free=pfree(ptr=1):"
     "make=AllocSetContextCreateInternal(parent=1,label=2):"
     "make=SlabContextCreate(parent=1,label=2):make=GenerationContextCreate(parent=1,label=2):"
     "move=MemoryContextSetParent(pool=1,parent=2):clear=MemoryContextReset(pool=1):"
     "clear=MemoryContextResetOnly(pool=1):destroy=MemoryContextDelete(pool=1)"},
};
enum { KNOWN_ROWS = sizeof known_rows / sizeof *known_rows };

// What an argument is, in the order of format/wrap.h.
enum part { SIZE, COUNT, POINTER, OUT, POOL, PARENT, LABEL, PARTS };
static const struct {
    const char *name, *of;
} parts[PARTS] = {
    [SIZE] = {"size", "alloc, calloc and realloc"},
    [COUNT] = {"count", "calloc and realloc"},
    [POINTER] = {"ptr", "free and realloc"},
    [OUT] = {"out", "alloc, calloc and make"},
    [POOL] = {"pool", "alloc, calloc, clear, destroy, label and move"},
    [PARENT] = {"parent", "make and move"},
    [LABEL] = {"label", "make and label"},
};
enum { OF_SIZE = 1 << SIZE, OF_COUNT = 1 << COUNT, OF_POINTER = 1 << POINTER, OF_OUT = 1 << OUT };
enum { OF_POOL = 1 << POOL, OF_PARENT = 1 << PARENT, OF_LABEL = 1 << LABEL };

static const struct role {
    const char *name;
    char letter;
    unsigned needs, may_have;
} roles[] = {
    {"alloc", 'a', OF_SIZE, OF_OUT | OF_POOL},
    {"calloc", 'c', OF_SIZE | OF_COUNT, OF_OUT | OF_POOL},
    {"realloc", 'r', OF_SIZE | OF_POINTER, OF_COUNT},
    {"free", 'f', OF_POINTER, 0},
    {"make", 'm', 0, OF_OUT | OF_PARENT | OF_LABEL},
    {"clear", 'x', OF_POOL, 0},
    {"destroy", 'd', OF_POOL, 0},
    {"label", 'l', OF_POOL | OF_LABEL, 0},
    {"move", 'p', OF_POOL | OF_PARENT, 0},
};
enum { ROLES = sizeof roles / sizeof *roles };
static const struct role present = {"current", 'v', 0, 0};

struct function {
    const struct role *role;
    bool may_lack;
    char name[CAIRN_WRAP_NAME_BYTES];
    unsigned parts[PARTS];
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
    if (!*text) return true;
    while ((entry = strsep(&text, ","))) {
        char *value = strchr(entry, '=');
        while (isspace((unsigned char)*entry)) entry++;
        if (value) *value++ = 0;
        unsigned part = 0;
        while (part < PARTS && strcmp(entry, parts[part].name) != 0) part++;
        if (part == PARTS)
            return refuse(rows, error, "not one of size, count, ptr, out, pool, parent, label",
                          entry);
        unsigned *place = &function->parts[part];
        bool is_number = value && isdigit((unsigned char)*value) && !value[1];
        *place = is_number ? (unsigned)(*value - '0') : 0;
        if (!*place || *place > CAIRN_WRAP_ARGUMENTS)
            return refuse(rows, error, "an argument's number is 1 to 6", function->name);
    }
    return true;
}

// They return more than once or when the hook's frame is gone, look at who calls them, or are not
// called as other functions are: a hook in their way would change the program.
static bool is_not_plain(const char *name) {
    static const char *const names[] = {
        "setjmp",     "_setjmp",  "sigsetjmp", "__sigsetjmp", "savectx",     "vfork",
        "getcontext", "dlopen",   "dlmopen",   "dlsym",       "dlvsym",      "__tls_get_addr",
        "mcount",     "_mcount",  "__mcount",  "__fentry__",  "__morestack", "__cxa_finalize",
        "clone",      "__clone2", "__vfork"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

#define NAME(name) #name,
static bool is_of_malloc(const char *name) {
    static const char *const names[] = {CAIRN_HEAP_FUNCTIONS(CAIRN_ROW_NAME, NAME)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}
#undef NAME

static bool check_function(const struct rows *rows, const struct function *function,
                           struct error *error) {
    const struct role *role = function->role;
    if (!is_identifier(function->name))
        return refuse(rows, error, "no name of a function", function->name);
    if (is_not_plain(function->name))
        return refuse(rows, error,
                      "it does not return as other functions do, or looks at its caller",
                      function->name);
    if (is_of_malloc(function->name))
        return refuse(rows, error, "it is of the heap that is recorded anyway", function->name);
    for (size_t i = 0; i < rows->function_count; i++)
        if (!strcmp(rows->functions[i].name, function->name))
            return refuse(rows, error, "it is named twice", function->name);
    for (unsigned part = 0; part < PARTS; part++) {
        char text[SAFE_BYTES];
        unsigned bit = 1u << part;
        bool is_needed = role->needs & bit, is_allowed = (role->needs | role->may_have) & bit;
        if (is_needed && !function->parts[part])
            snprintf(text, sizeof text, "it needs %s=N", parts[part].name);
        else if (!is_allowed && function->parts[part])
            snprintf(text, sizeof text, "%s is of %s", parts[part].name, parts[part].of);
        else
            continue;
        return refuse(rows, error, text, function->name);
    }
    return true;
}

static bool add_function(struct rows *rows, const struct function *function, const char *name,
                         struct error *error) {
    if (strlen(name) >= sizeof function->name) return refuse(rows, error, "it is too long", name);
    if (rows->function_count == CAIRN_WRAP_FUNCTIONS)
        return refuse(rows, error, "more than 64 functions", "");
    struct function *slot = &rows->functions[rows->function_count];
    *slot = *function;
    snprintf(slot->name, sizeof slot->name, "%s", name);
    if (!check_function(rows, slot, error)) return false;
    rows->function_count++;
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
    char *mark = name - strlen("=") - 1;
    function.may_lack = mark > field && *mark == CAIRN_WRAP_MAY_LACK;
    if (function.may_lack) *mark = 0;
    for (size_t i = 0; i < ROLES; i++)
        if (!strcmp(field, roles[i].name)) function.role = &roles[i];
    if (!function.role)
        return refuse(rows, error,
                      "not one of alloc, calloc, realloc, free, make, clear, destroy, label, move, "
                      "current, name",
                      field);
    snprintf(function.name, sizeof function.name, "%s", name);
    return read_arguments(rows, &function, bracket, error) &&
           add_function(rows, &function, name, error);
}

// The functions from `first` on are the row's.
static bool write_heap(struct rows *rows, const char *heap, size_t first, struct error *error) {
    bool allocates = false, frees = false;
    for (size_t i = first; i < rows->function_count; i++) {
        if (rows->functions[i].may_lack) continue;
        frees |= strchr("fxd", rows->functions[i].role->letter) != NULL;
        allocates |= strchr("ac", rows->functions[i].role->letter) != NULL;
    }
    if (!allocates || !frees) return refuse(rows, error, "a heap needs alloc and free", "");
    if (rows->heap_count++ == CAIRN_WRAP_HEAPS)
        return refuse(rows, error, "more than 16 heaps", "");
    fputs(heap ? heap : rows->functions[first].name, rows->out);
    for (size_t i = first; i < rows->function_count; i++) {
        const struct function *function = &rows->functions[i];
        const char mark[] = {function->may_lack ? CAIRN_WRAP_MAY_LACK : 0, 0};
        fprintf(rows->out, "|%c%s,%s", function->role->letter, mark, function->name);
        for (unsigned part = 0; part < PARTS; part++)
            fprintf(rows->out, ",%u", function->parts[part]);
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
        const struct function variable = {.role = &present};
        bool is_variable = !strncmp(field, "current=", 8), is_name = !strncmp(field, "name=", 5);
        if (is_variable ? !add_function(rows, &variable, field + 8, error)
                        : !is_name && !read_function(rows, field, error))
            return false;
        if (!is_name) continue;
        heap = field + 5;
        if (!*heap || strlen(heap) >= CAIRN_WRAP_NAME_BYTES || strpbrk(heap, ",|\n"))
            return refuse(rows, error, "no name of a heap", heap);
    }
    return write_heap(rows, heap, first, error);
}

// A table of TOML as a row: its name is the heap's, and a key has the functions of a role, with
// blanks between them. `at` becomes the entry behind it.
static bool read_table(struct rows *rows, const struct toml *toml, size_t *at,
                       struct error *error) {
    char row[ROW_BYTES];
    const struct toml_entry *first = &toml->entries.items[*at];
    size_t used = (size_t)snprintf(row, sizeof row, "name=%s", first->table);
    for (; *at < toml->entries.count; ++*at) {
        const struct toml_entry *entry = &toml->entries.items[*at];
        char words[TOML_TEXT_BYTES], *rest = words, *word;
        if (strcmp(entry->table, first->table) != 0) break;
        snprintf(words, sizeof words, "%s", entry->text);
        while (*entry->key && (word = strsep(&rest, " ")))
            if (*word && used < sizeof row)
                used += (size_t)snprintf(row + used, sizeof row - used, ":%s=%s", entry->key, word);
    }
    rows->row = row;
    bool is_ok = used < sizeof row ? read_row(rows, row, error)
                                   : refuse(rows, error, "it is too long", first->table);
    return is_ok || error_wrap(error, "line %u", first->line);
}

static bool read_toml(struct rows *rows, FILE *file, const char *path, struct error *error) {
    struct toml toml;
    if (!toml_read(file, path, &toml, error)) return false;
    bool is_ok = true;
    for (size_t at = 0; is_ok && at < toml.entries.count;)
        is_ok = read_table(rows, &toml, &at, error) || error_wrap(error, "%s", path);
    toml_free(&toml);
    return is_ok;
}

// A row a line; '#' begins a comment. Or tables of TOML, by the file's name.
static bool read_file(struct rows *rows, const char *path, struct error *error) {
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0, number = 0, length = strlen(path);
    bool is_ok = true;
    if (!file) return error_set(error, "--wrap @%s: %s", path, strerror(errno));
    if (length > 5 && !strcmp(path + length - 5, ".toml")) {
        is_ok = read_toml(rows, file, path, error);
        fclose(file);
        return is_ok;
    }
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
