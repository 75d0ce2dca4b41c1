// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 8192 };

static enum map_kind kind_of(const char *name) {
    if (!*name || !strncmp(name, "[anon", strlen("[anon"))) return MAPS_ANONYMOUS;
    if (!strncmp(name, "[heap]", strlen("[heap]"))) return MAPS_HEAP;
    return *name == '[' ? MAPS_OTHER : MAPS_FILE;
}

// "START-END rwxp OFFSET DEVICE INODE   NAME"
static bool parse(char *line, struct map_range *mapping) {
    char access[5];
    int name_at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &mapping->start, &mapping->end,
               access, &name_at) != 3 ||
        !name_at)
        return false;
    line[strcspn(line, "\n")] = 0;
    mapping->kind = kind_of(line + name_at);
    mapping->is_readable = access[0] == 'r';
    mapping->is_writable = access[1] == 'w';
    mapping->is_private = access[3] == 'p';
    return true;
}

bool maps_read(pid_t pid, struct maps *maps, struct error *error) {
    char path[32], line[LINE_BYTES];
    bool is_ok = true;
    maps->items.count = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "its mappings cannot be read: %s", strerror(errno));
    while (is_ok && fgets(line, sizeof line, file)) {
        struct map_range mapping = {0};
        if (!parse(line, &mapping)) continue;
        struct map_range *slot = array_push(&maps->items);
        is_ok = slot != NULL;
        if (slot) *slot = mapping;
    }
    fclose(file);
    return is_ok || error_set(error, "out of memory");
}

void maps_free(struct maps *maps) {
    array_free(&maps->items);
}
