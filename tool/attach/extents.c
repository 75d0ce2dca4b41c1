// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/extents.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = PATH_MAX + 128, PERMISSION_BYTES = 5 };

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

// One line of the text.
struct line {
    struct extent extent;
    char permissions[PERMISSION_BYTES];
    const char *name;
};

static bool read_line(char *text, struct line *line) {
    struct extent *extent = &line->extent;
    int name = 0;
    text[strcspn(text, "\n")] = 0;
    bool is_line =
        sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &extent->start,
               &extent->end, line->permissions, &extent->offset, &name) == 4;
    line->name = text + name;
    return is_line && name;
}

static bool is_file(const char *name) {
    return *name == '/' && !starts(name, "/dev/");
}

// Stacks and mappings of the kernel are no heap.
static bool find_kind(struct line *line) {
    bool is_writable = line->permissions[1] == 'w';
    enum extent_kind *kind = &line->extent.kind;
    if (line->permissions[3] != 'p') return false;
    if (is_file(line->name))
        *kind = is_writable ? EXTENT_DATA : EXTENT_CONSTANT;
    else if (!strcmp(line->name, "[heap]"))
        *kind = EXTENT_BREAK;
    else
        *kind = EXTENT_MEMORY;
    bool is_memory = !*line->name || starts(line->name, "[anon:");
    return *kind == EXTENT_MEMORY ? is_writable && is_memory : line->permissions[0] == 'r';
}

bool extents_read(FILE *maps, struct extents *extents) {
    char *text = malloc(LINE_BYTES);
    bool is_ok = text != NULL;
    extents->items.count = 0;
    while (is_ok && fgets(text, LINE_BYTES, maps)) {
        struct line line;
        if (!read_line(text, &line) || !find_kind(&line)) continue;
        struct extent *slot = array_push(&extents->items);
        is_ok = slot != NULL;
        if (slot) *slot = line.extent;
    }
    free(text);
    return is_ok;
}

// A file's path among the texts; returns where, or SIZE_MAX without memory. Mappings of one file
// follow each other.
static size_t keep_path(struct core_image *core, size_t *used, size_t last, const char *path) {
    size_t size = strlen(path) + 1;
    if (last != SIZE_MAX && !strcmp(core->texts + last, path)) return last;
    char *grown = realloc(core->texts, *used + size);
    if (!grown) return SIZE_MAX;
    core->texts = grown;
    memcpy(grown + *used, path, size);
    *used += size;
    return *used - size;
}

// Paths are offsets until all of them are there, since the texts move.
bool extents_read_files(FILE *maps, struct core_image *core) {
    char *text = malloc(LINE_BYTES);
    size_t used = 0, last = SIZE_MAX;
    bool is_ok = text != NULL;
    while (is_ok && fgets(text, LINE_BYTES, maps)) {
        struct line line;
        if (!read_line(text, &line) || !is_file(line.name)) continue;
        last = keep_path(core, &used, last, line.name);
        struct core_file *file = array_push(&core->files);
        is_ok = file && last != SIZE_MAX;
        if (is_ok)
            *file = (struct core_file){line.extent.start, line.extent.end, line.extent.offset,
                                       (const char *)(uintptr_t)last};  // NOLINT: until below
    }
    for (size_t i = 0; is_ok && i < core->files.count; i++)
        core->files.items[i].path = core->texts + (uintptr_t)core->files.items[i].path;
    free(text);
    return is_ok;
}

static FILE *open_maps(pid_t pid, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (maps) return maps;
    if (errno == ENOENT || errno == ESRCH)
        error_set(error, "it has ended");
    else
        error_set(error, "%s: %s", path, strerror(errno));
    return NULL;
}

bool extents_look(pid_t pid, struct extents *extents, struct error *error) {
    FILE *maps = open_maps(pid, error);
    bool is_ok = maps && (extents_read(maps, extents) || error_set(error, "out of memory"));
    if (maps) fclose(maps);
    return is_ok;
}

bool extents_look_files(pid_t pid, struct core_image *core, struct error *error) {
    FILE *maps = open_maps(pid, error);
    bool is_ok = maps && (extents_read_files(maps, core) || error_set(error, "out of memory"));
    if (maps) fclose(maps);
    return is_ok;
}
