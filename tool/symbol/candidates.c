// SPDX-License-Identifier: Apache-2.0
// The places are those of gdb and of Debian, on this machine, then in the trees that the user
// named: a copy of another machine's files, the root of a container.
#include "tool/symbol/candidates.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/modules.h"
#include "tool/symbol/image.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define ROOT_TEXT_BYTES 64
#define HELD_PREFIX "/proc/self/fd/"

static void __attribute__((format(printf, 3, 4)))
add(struct candidates *list, struct string_pool *store, const char *format, ...) {
    char path[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    bool fits = length > 0 && length < PATH_MAX && list->count < CANDIDATES_MAX;
    const char *kept = fits ? string_pool_intern(store, path, (size_t)length) : NULL;
    if (kept) list->paths[list->count++] = kept;
}

static const char *process_root(const struct symbol_options *options, char out[ROOT_TEXT_BYTES]) {
    if (!options->process) return NULL;
    snprintf(out, ROOT_TEXT_BYTES, "/proc/%u/root", (unsigned)options->process);
    return out;
}

void candidates_of_module(struct candidates *list, const struct symbol_options *options,
                          const char *path, bool has_build_id, struct string_pool *store) {
    char text[ROOT_TEXT_BYTES];
    if (*path != '/' && options->directory)
        path = string_pool_path(store, options->directory, path);
    if (!path) return;
    const char *root = process_root(options, text), *sysroot = options->sysroot;
    if (sysroot && !has_build_id) add(list, store, "%s%s", sysroot, path);
    add(list, store, "%s", path);
    for (size_t i = 0; i < options->debug_dir_count; i++) {
        add(list, store, "%s%s", options->debug_dirs[i], path);
        add(list, store, "%s/%s", options->debug_dirs[i], text_base_name(path));
        if (has_build_id)
            add(list, store, "%s/%s.debug", options->debug_dirs[i], text_base_name(path));
    }
    if (sysroot && has_build_id) add(list, store, "%s%s", sysroot, path);
    if (root) add(list, store, "%s%s", root, path);
    for (size_t i = 0; i < options->held_count; i++)
        if (!strcmp(options->held[i].path, path))
            add(list, store, HELD_PREFIX "%d", options->held[i].file);
}

bool candidates_is_held(const char *path) {
    return !strncmp(path, HELD_PREFIX, strlen(HELD_PREFIX));
}

void candidates_by_build_id(struct candidates *list, const struct symbol_options *options,
                            const uint8_t *build_id, size_t bytes, struct string_pool *store) {
    char hex[2 * IMAGE_BUILD_ID_MAX + 1], text[ROOT_TEXT_BYTES], name[sizeof hex + 32];
    if (bytes < 2 || bytes > IMAGE_BUILD_ID_MAX) return;
    for (size_t i = 0; i < bytes; i++) snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
    snprintf(name, sizeof name, ".build-id/%.2s/%s.debug", hex, hex + 2);
    const char *root = process_root(options, text);
    add(list, store, DEBUG_ROOT "/%s", name);
    for (size_t i = 0; i < options->debug_dir_count; i++)
        add(list, store, "%s/%s", options->debug_dirs[i], name);
    if (options->sysroot) add(list, store, "%s" DEBUG_ROOT "/%s", options->sysroot, name);
    if (root) add(list, store, "%s" DEBUG_ROOT "/%s", root, name);
}

void candidates_by_link(struct candidates *list, const struct symbol_options *options,
                        const char *directory, const char *name, struct string_pool *store) {
    char text[ROOT_TEXT_BYTES];
    const char *root = process_root(options, text);
    add(list, store, "%s/%s", directory, name);
    add(list, store, "%s/.debug/%s", directory, name);
    add(list, store, DEBUG_ROOT "%s/%s", directory, name);
    for (size_t i = 0; i < options->debug_dir_count; i++) {
        add(list, store, "%s%s/%s", options->debug_dirs[i], directory, name);
        add(list, store, "%s/%s", options->debug_dirs[i], name);
    }
    if (options->sysroot)
        add(list, store, "%s" DEBUG_ROOT "%s/%s", options->sysroot, directory, name);
    if (root) add(list, store, "%s" DEBUG_ROOT "%s/%s", root, directory, name);
}

void candidates_of_package(struct candidates *list, const struct symbol_options *options,
                           const char *module_path, const char *debug_path,
                           struct string_pool *store) {
    static const char ending[] = ".debug";
    const char *const paths[] = {module_path, debug_path};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *path = paths[i];
        if (!path) continue;
        size_t length = strlen(path), end = strlen(ending);
        bool has_ending = length > end && !strcmp(path + length - end, ending);
        add(list, store, "%s.dwp", path);
        if (has_ending) add(list, store, "%.*s.dwp", (int)(length - end), path);
        for (size_t dir = 0; dir < options->debug_dir_count; dir++)
            add(list, store, "%s/%s.dwp", options->debug_dirs[dir], text_base_name(path));
    }
}

void candidates_of_object(struct candidates *list, const struct symbol_options *options,
                          const char *path, const char *directory, const char *name,
                          struct string_pool *store) {
    char text[ROOT_TEXT_BYTES];
    const char *root = process_root(options, text), *base = text_base_name(name);
    const bool is_whole = *name == '/';
    const char *before = is_whole || !directory ? "" : directory;
    const char *slash = is_whole || !directory ? "" : "/";
    if (options->sysroot) add(list, store, "%s%s%s%s", options->sysroot, before, slash, name);
    if (root) add(list, store, "%s%s%s%s", root, before, slash, name);
    add(list, store, "%s%s%s", before, slash, name);
    add(list, store, "%.*s%s", (int)(text_base_name(path) - path), path, base);
    for (size_t i = 0; i < options->debug_dir_count; i++)
        add(list, store, "%s/%s", options->debug_dirs[i], base);
}
