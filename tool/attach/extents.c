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

// Of smaps: other lines leave what is there.
static void read_head(const char *text, struct line *line) {
    uint64_t start, end;
    if (sscanf(text, "%" SCNx64 "-%" SCNx64 " ", &start, &end) != 2) return;
    line->extent.start = start;
    line->extent.end = end;
}

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

// The kernel says so of memory that has no path, or has none any more: a file on a disk is not for
// what the program holds.
static bool is_shared_memory(const struct line *line) {
    static const char ending[] = " (deleted)";
    size_t length = strlen(line->name), end = sizeof ending - 1;
    bool has_no_path = starts(line->name, "[anon_shmem:") ||
                       (length > end && !strcmp(line->name + length - end, ending));
    return line->permissions[3] == 's' && has_no_path;
}

static enum extent_kind kind_of(const struct line *line) {
    bool is_writable = line->permissions[1] == 'w';
    bool is_memory = !*line->name || starts(line->name, "[anon:");
    if (line->permissions[3] != 'p') return EXTENT_OTHER;
    if (is_file(line->name)) return is_writable ? EXTENT_DATA : EXTENT_CONSTANT;
    if (!strcmp(line->name, "[heap]")) return EXTENT_BREAK;
    return is_memory && is_writable ? EXTENT_MEMORY : EXTENT_OTHER;
}

// Mappings of the kernel and of devices are left out, and what cannot be read.
static bool find_kind(struct line *line) {
    struct extent *extent = &line->extent;
    bool is_memory = !*line->name || starts(line->name, "[anon:");
    extent->kind = kind_of(line);
    extent->is_code = line->permissions[2] == 'x';
    if (line->permissions[0] != 'r') return extent->kind == EXTENT_MEMORY;
    if (extent->kind != EXTENT_OTHER) return true;
    return is_shared_memory(line) || !strcmp(line->name, "[stack]") ||
           (line->permissions[3] == 'p' && is_memory && !extent->is_code);
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

bool extents_read_hidden(FILE *smaps, struct core_spans *hidden) {
    char *text = malloc(LINE_BYTES);
    struct line line = {0};
    bool is_ok = text != NULL;
    while (is_ok && fgets(text, LINE_BYTES, smaps)) {
        bool are_flags = starts(text, "VmFlags:");
        if (are_flags && strstr(text, " dd "))
            is_ok = core_spans_add(hidden, line.extent.start, line.extent.end);
        else if (!are_flags)
            read_head(text, &line);
    }
    core_spans_settle(hidden);
    free(text);
    return is_ok;
}

static FILE *open_maps(pid_t pid, const char *name, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *maps = fopen(path, "re");
    if (maps) return maps;
    if (errno == ENOENT || errno == ESRCH)
        error_set(error, "it has ended");
    else
        error_set(error, "%s: %s", path, strerror(errno));
    return NULL;
}

bool extents_look(pid_t pid, struct extents *extents, struct error *error) {
    FILE *maps = open_maps(pid, "maps", error);
    bool is_ok = maps && (extents_read(maps, extents) || error_set(error, "out of memory"));
    if (maps) fclose(maps);
    return is_ok;
}

bool extents_look_files(pid_t pid, struct core_image *core, struct error *error) {
    FILE *maps = open_maps(pid, "maps", error);
    bool is_ok = maps && (extents_read_files(maps, core) || error_set(error, "out of memory"));
    if (maps) fclose(maps);
    return is_ok;
}

bool extents_look_hidden(pid_t pid, struct core_spans *hidden, struct error *error) {
    FILE *smaps = open_maps(pid, "smaps", error);
    bool is_ok = smaps && (extents_read_hidden(smaps, hidden) || error_set(error, "out of memory"));
    if (smaps) fclose(smaps);
    return is_ok;
}
