// SPDX-License-Identifier: Apache-2.0
#include "tool/query/name_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/array.h"
#include "tool/symbol/internal_frames.h"
#include "tool/symbol/rename.h"

// The cache's directory has the number of what it holds in its name (CAIRN_SYMBOLS_VERSION and the
// way names are found).
#define CACHE_NAME "cairn/symbols-2"

struct source_map {
    const char *from;  // not terminated
    size_t from_length;
    const char *to;
};

static struct {
    struct symbol_options symbols;
    ARRAY(const char *) debug_dirs;
    ARRAY(struct source_map) maps;
    char cache_dir[PATH_MAX];
} options;

static bool is_directory(const char *path, const char *option, struct error *error) {
    struct stat status;
    if (stat(path, &status)) return error_set(error, "--%s %s: %s", option, path, strerror(errno));
    return S_ISDIR(status.st_mode) || error_set(error, "--%s %s: not a directory", option, path);
}

static bool read_debug_dirs(const struct command_args *args, struct error *error) {
    const char *directory;
    for (size_t i = 0; (directory = args_next(args, OPTION_DEBUG_DIR, &i));) {
        const char **slot = array_push(&options.debug_dirs);
        if (!slot) return error_set(error, "no memory for options");
        if (!is_directory(directory, "debug-dir", error)) return false;
        *slot = directory;
    }
    options.symbols.debug_dirs = options.debug_dirs.items;
    options.symbols.debug_dir_count = options.debug_dirs.count;
    options.symbols.sysroot = args_text(args, OPTION_SYSROOT, NULL);
    return !options.symbols.sysroot || is_directory(options.symbols.sysroot, "sysroot", error);
}

static bool read_maps(const struct command_args *args, struct error *error) {
    const char *text;
    for (size_t i = 0; (text = args_next(args, OPTION_SOURCE_MAP, &i));) {
        const char *equals = strchr(text, '=');
        if (!equals || equals == text)
            return error_set(error, "--source-map needs OLD=NEW, not \"%s\"", text);
        struct source_map *map = array_push(&options.maps);
        if (!map) return error_set(error, "no memory for options");
        *map = (struct source_map){text, (size_t)(equals - text), equals + 1};
    }
    return true;
}

static bool read_renames(const struct command_args *args, struct error *error) {
    struct rename_rules *rules = NULL;
    const char *text;
    for (size_t i = 0; (text = args_next(args, OPTION_RENAME, &i));)
        if (!rename_rules_add(&rules, text, error)) return error_wrap(error, "--rename");
    options.symbols.renames = rules;
    return true;
}

static bool read_internal(const struct command_args *args, struct error *error) {
    const char *path;
    for (size_t i = 0; (path = args_next(args, OPTION_INTERNAL_FRAMES, &i));)
        if (!internal_load(path, error)) return error_wrap(error, "--internal-frames");
    return true;
}

// $XDG_CACHE_HOME, which counts only if it is absolute, or ~/.cache.
static void find_cache(void) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_base = base && base[0] == '/';
    if (!has_base && (!home || home[0] != '/')) return;
    int length = snprintf(options.cache_dir, sizeof options.cache_dir, "%s%s/" CACHE_NAME,
                          has_base ? base : home, has_base ? "" : "/.cache");
    if (length < (int)sizeof options.cache_dir) options.symbols.cache_dir = options.cache_dir;
}

bool name_options_read(const struct command_args *args, struct error *error) {
    find_cache();
    options.symbols.has_full_names = args_has(args, OPTION_FULL_NAMES);
    options.symbols.has_debuginfod = args_has(args, OPTION_DEBUGINFOD);
    const char *servers = getenv("DEBUGINFOD_URLS");
    if (options.symbols.has_debuginfod && (!servers || !*servers))
        return error_set(error, "--debuginfod: DEBUGINFOD_URLS names no server");
    return read_debug_dirs(args, error) && read_maps(args, error) && read_renames(args, error) &&
           read_internal(args, error);
}

struct symbol_options *name_options_symbols(void) {
    return &options.symbols;
}

char *name_options_map_source(const char *path) {
    for (size_t i = 0; i < options.maps.count; i++) {
        const struct source_map *map = &options.maps.items[i];
        bool is_below = !strncmp(path, map->from, map->from_length) &&
                        (!path[map->from_length] || path[map->from_length] == '/' ||
                         map->from[map->from_length - 1] == '/');
        char *mapped;
        if (is_below && asprintf(&mapped, "%s%s", map->to, path + map->from_length) > 0)
            return mapped;
    }
    return NULL;
}
