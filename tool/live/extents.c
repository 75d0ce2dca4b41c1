// SPDX-License-Identifier: Apache-2.0
#include "tool/live/extents.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = PATH_MAX + 128, PERMISSION_BYTES = 5 };

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

// Stacks and mappings of the kernel are no heap.
static bool kind_of(const char *name, enum extent_kind *kind) {
    *kind = EXTENT_MEMORY;
    if (!*name || starts(name, "[anon:")) return true;
    *kind = EXTENT_BREAK;
    if (!strcmp(name, "[heap]")) return true;
    *kind = EXTENT_DATA;
    return *name == '/' && !starts(name, "/dev/");
}

static bool add_line(struct extents *extents, char *line) {
    struct extent extent;
    char permissions[PERMISSION_BYTES];
    int name = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &extent.start, &extent.end,
               permissions, &name) < 3 ||
        !name || permissions[1] != 'w' || permissions[3] != 'p' ||
        !kind_of(line + name, &extent.kind))
        return true;
    struct extent *slot = array_push(&extents->items);
    if (slot) *slot = extent;
    return slot != NULL;
}

bool extents_read(FILE *maps, struct extents *extents) {
    char *line = malloc(LINE_BYTES);
    bool is_ok = line != NULL;
    extents->items.count = 0;
    while (is_ok && fgets(line, LINE_BYTES, maps)) is_ok = add_line(extents, line);
    free(line);
    return is_ok;
}

bool extents_look(pid_t pid, struct extents *extents, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (!maps && (errno == ENOENT || errno == ESRCH)) return error_set(error, "it has ended");
    if (!maps) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_ok = extents_read(maps, extents) || error_set(error, "out of memory");
    fclose(maps);
    return is_ok;
}
