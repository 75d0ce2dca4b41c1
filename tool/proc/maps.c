// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tool/proc/process.h"

enum { LINE_BYTES = PATH_MAX + 128 };

static const char deleted[] = " (deleted)";

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

// --- reading lines

bool maps_open(struct maps *maps, pid_t pid, const char *which, struct error *error) {
    FILE *file = process_open_text(pid, which);
    int reason = errno;
    maps_open_file(maps, file);
    if (file) return true;
    if (reason == ENOENT || reason == ESRCH) return error_set(error, "it has ended");
    return error_set(error, "/proc/%d/%s: %s", (int)pid, which, strerror(reason));
}

void maps_open_file(struct maps *maps, FILE *file) {
    maps->file = file;
    maps->has_ahead = maps->is_odd = false;
    maps->name = 0;
    maps->seen_until = 0;
}

void maps_close(struct maps *maps) {
    if (maps->file) fclose(maps->file);
    maps->file = NULL;
}

// "7f4490000000-7f4490021000 rw-p 00000000 00:00 0   NAME".
static bool read_heading(struct maps *maps, const char *line) {
    struct mapping *next = &maps->ahead;
    char *name = maps->names[maps->name];
    int name_at = 0;
    *next = (struct mapping){.name = name};
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n", &next->start,
               &next->end, next->permissions, &next->offset, &next->inode, &name_at) < 5 ||
        !name_at)
        return false;
    size_t length = strcspn(line + name_at, "\n");
    if (length >= PATH_MAX) length = PATH_MAX - 1;
    memcpy(name, line + name_at, length);
    name[length] = 0;
    return true;
}

// "Rss:                 132 kB" or "VmFlags: rd wr mr mw me ac".
static void read_value(struct mapping *mapping, const char *line) {
    const char *colon = strchr(line, ':');
    uint64_t bytes = colon ? strtoull(colon + 1, NULL, 10) * 1024 : 0;
    if (starts(line, "Rss:")) mapping->rss_bytes = bytes;
    if (starts(line, "Pss:")) mapping->pss_bytes = bytes;
    if (starts(line, "Swap:")) mapping->swap_bytes = bytes;
    if (starts(line, "AnonHugePages:")) mapping->huge_bytes = bytes;
    if (starts(line, "Anonymous:")) mapping->anonymous_bytes = bytes;
    if (!starts(line, "VmFlags:")) return;
    mapping->is_unreserved = strstr(line, " nr") != NULL;
    mapping->is_undumped = strstr(line, " dd") != NULL;
}

// Reads up to the next heading; values until there are those of `mapping`, unless it is NULL.
static void read_on(struct maps *maps, struct mapping *mapping) {
    char line[LINE_BYTES];
    maps->has_ahead = false;
    while (maps->file && !maps->has_ahead && fgets(line, sizeof line, maps->file)) {
        bool is_value = *line >= 'A' && *line <= 'Z';
        if (is_value && mapping) read_value(mapping, line);
        if (is_value) continue;
        maps->has_ahead = read_heading(maps, line);
        if (!maps->has_ahead) maps->is_odd = true;
    }
}

static bool read_next(struct maps *maps, struct mapping *mapping) {
    if (!maps->has_ahead) read_on(maps, NULL);
    if (!maps->has_ahead) return false;
    *mapping = maps->ahead;
    maps->name = !maps->name;
    read_on(maps, mapping);
    return true;
}

bool maps_next(struct maps *maps, struct mapping *mapping) {
    do {
        if (!read_next(maps, mapping)) return false;
    } while (mapping->start < maps->seen_until);
    maps->seen_until = mapping->end;
    return true;
}

bool maps_find(pid_t pid, uint64_t address, struct mapping *mapping, char name[PATH_MAX]) {
    struct maps maps;
    bool is_found = false;
    if (!maps_open(&maps, pid, "maps", NULL)) return false;
    while (!is_found && maps_next(&maps, mapping))
        is_found = address >= mapping->start && address < mapping->end;
    if (is_found) snprintf(name, PATH_MAX, "%s", mapping->name);
    if (is_found) mapping->name = name;
    maps_close(&maps);
    return is_found;
}

bool maps_have_name(pid_t pid, const char *part) {
    struct maps maps;
    struct mapping mapping;
    bool is_found = false;
    if (!maps_open(&maps, pid, "maps", NULL)) return false;
    while (!is_found && maps_next(&maps, &mapping)) is_found = strstr(mapping.name, part);
    maps_close(&maps);
    return is_found;
}

// --- what a mapping is

bool mapping_is_file(const struct mapping *mapping) {
    return *mapping->name == '/' && !starts(mapping->name, "/dev/");
}

bool mapping_is_deleted(const struct mapping *mapping) {
    size_t length = strlen(mapping->name), end = sizeof deleted - 1;
    return length > end && !strcmp(mapping->name + length - end, deleted);
}

// A file on a disk does not hold what the program allocates: only shared memory without a path.
static bool is_shared_memory(const struct mapping *mapping) {
    return mapping->permissions[3] == 's' &&
           (starts(mapping->name, "[anon_shmem:") || mapping_is_deleted(mapping));
}

static bool is_anonymous(const struct mapping *mapping) {
    return !*mapping->name || starts(mapping->name, "[anon:");
}

static enum extent_kind kind_of(const struct mapping *mapping) {
    bool is_writable = mapping->permissions[1] == 'w';
    if (mapping->permissions[3] != 'p') return EXTENT_OTHER;
    if (mapping_is_file(mapping)) return is_writable ? EXTENT_DATA : EXTENT_CONSTANT;
    if (!strcmp(mapping->name, "[heap]")) return EXTENT_BREAK;
    return is_anonymous(mapping) && is_writable ? EXTENT_MEMORY : EXTENT_OTHER;
}

// Mappings of the kernel and of devices are left out, and those that cannot be read.
static bool is_wanted(const struct mapping *mapping, enum extent_kind kind) {
    bool is_code = mapping->permissions[2] == 'x';
    if (mapping->permissions[0] != 'r') return kind == EXTENT_MEMORY;
    if (kind != EXTENT_OTHER) return true;
    return is_shared_memory(mapping) || !strcmp(mapping->name, "[stack]") ||
           (mapping->permissions[3] == 'p' && is_anonymous(mapping) && !is_code);
}

// Tells a heap of an arena of glibc's that grew after a fork: what it took then is a mapping of its
// own. Heaps begin at multiples of their largest size (HEAP_MAX_SIZE of malloc's arena.c). Any
// other neighbours stay apart: a thread's stack or memory of cairn's has another meaning than
// memory beside it.
static bool continues(const struct extent *before, const struct mapping *mapping,
                      enum extent_kind kind) {
    const uint64_t heap_bytes = 64ull << 20;
    return before->kind == EXTENT_MEMORY && kind == EXTENT_MEMORY && !before->is_code &&
           mapping->permissions[2] != 'x' && before->end == mapping->start &&
           before->start % heap_bytes == 0 && mapping->end - before->start <= heap_bytes;
}

bool extents_read(struct maps *maps, struct extents *extents) {
    struct mapping mapping;
    extents->items.count = 0;
    while (maps_next(maps, &mapping)) {
        enum extent_kind kind = kind_of(&mapping);
        size_t count = extents->items.count;
        if (!is_wanted(&mapping, kind)) continue;
        if (count && continues(&extents->items.items[count - 1], &mapping, kind)) {
            extents->items.items[count - 1].end = mapping.end;
            continue;
        }
        struct extent *slot = array_push(&extents->items);
        if (!slot) return false;
        *slot = (struct extent){mapping.start, mapping.end, mapping.offset, kind,
                                mapping.permissions[2] == 'x'};
    }
    return true;
}

bool extents_of_process(pid_t pid, struct extents *extents, struct error *error) {
    struct maps maps;
    if (!maps_open(&maps, pid, "maps", error)) return false;
    bool is_ok = extents_read(&maps, extents) || error_set(error, "out of memory");
    maps_close(&maps);
    return is_ok;
}
