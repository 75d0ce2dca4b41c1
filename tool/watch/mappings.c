// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/mappings.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/watch/heaps.h"
#include "tool/watch/pages.h"

enum { PROC_PATH_BYTES = 64, PERMISSION_BYTES = 5 };

// A guard page may be larger than a page, on request.
static const uint64_t guard_max_bytes = 1 << 20, arena_align_bytes = 64 << 20;

// One mapping.
struct mapping {
    uint64_t start, end;
    char permissions[PERMISSION_BYTES];
    const char *name;  // "" for anonymous memory
    uint64_t rss_bytes, pss_bytes, swap_bytes;
    bool is_unreserved, is_undumped;
};

struct reading {
    struct mappings *out;
    struct mapping now, before;
    bool has_now, is_before_file_data, is_before_own;
    struct mappings_source source;
    char name[PATH_MAX], name_before[PATH_MAX];
};

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

static bool is_own_library(const char *name) {
    const char *base = text_base_name(name);
    return !strcmp(base, "libcairn.so") || !strcmp(base, "libcairn-cxx.so");
}

static bool is_shared_memory(const char *name) {
    return starts(name, "/memfd:") || starts(name, "/SYSV") || starts(name, "/dev/shm/") ||
           starts(name, "/dev/zero") || starts(name, "[anon_shmem");
}

static bool is_anonymous(const struct mapping *mapping) {
    const char *name = mapping->name;
    return (!*name || starts(name, "[anon:") || !strcmp(name, "[heap]")) &&
           mapping->permissions[3] == 'p';
}

static bool is_libc(const char *name) {
    const char *base = text_base_name(name);
    return starts(base, "libc.so.6") || starts(base, "libc-2.");
}

// Behind a guard page; all of it, or its lower end if it is joined with something else.
static uint64_t stack_bytes_of(const struct reading *reading) {
    const struct mapping *now = &reading->now, *before = &reading->before;
    bool is_guarded = before->end == now->start && starts(before->permissions, "---") &&
                      !*before->name && before->end - before->start <= guard_max_bytes;
    if (starts(now->name, "[anon: glibc: pthread stack")) return now->rss_bytes;
    if (!is_guarded || now->permissions[1] != 'w' || now->is_unreserved) return 0;
    uint64_t limit = reading->source.stack_limit_bytes, size = now->end - now->start;
    if (!limit || size <= limit || reading->source.pages < 0) return now->rss_bytes;
    uint64_t present = pages_present_bytes(reading->source.pages, now->start, now->start + limit);
    return present < now->rss_bytes ? present : now->rss_bytes;
}

// The lower end of a mapping may be a stack.
static void note_memory(struct reading *reading, uint64_t stack_bytes) {
    const struct mapping *now = &reading->now;
    uint64_t start = now->start, rss = now->rss_bytes - stack_bytes;
    if (!rss) return;
    if (stack_bytes && reading->source.stack_limit_bytes < now->end - start)
        start += reading->source.stack_limit_bytes;
    struct mapped_memory *memory = array_push(&reading->out->memory);
    if (!memory) return;
    *memory = (struct mapped_memory){start, now->end, rss,
                                     strcmp(now->name, "[heap]") != 0 && !now->is_unreserved &&
                                         now->permissions[1] == 'w'};
}

// Of memory without reservation: what of it lies in glibc's arenas.
static uint64_t arena_bytes_of(const struct reading *reading) {
    const struct mapping *now = &reading->now;
    const struct mappings_source *source = &reading->source;
    if (now->permissions[1] != 'w' || now->is_undumped) return 0;
    if (!source->pid || source->pages < 0)
        return now->start % arena_align_bytes == 0 ? now->rss_bytes : 0;
    uint64_t bytes = heaps_present_bytes(source->pid, source->pages, now->start, now->end);
    return bytes < now->rss_bytes ? bytes : now->rss_bytes;
}

static void add_anonymous(struct reading *reading) {
    const struct mapping *now = &reading->now;
    struct cairn_picture *picture = &reading->out->picture;
    bool is_data = reading->is_before_file_data && reading->before.end == now->start &&
                   !now->is_unreserved && !*now->name;
    uint64_t stack = is_data ? 0 : stack_bytes_of(reading);
    picture->stack_count += stack > 0;
    picture->stacks_bytes += stack;
    if (is_data && reading->is_before_own)
        picture->own_bytes += now->rss_bytes;
    else if (is_data)
        picture->files_bytes += now->rss_bytes;
    else
        picture->heap_bytes += now->rss_bytes - stack;
    if (!is_data) note_memory(reading, stack);
    if (now->is_unreserved && now->is_undumped)
        reading->out->undumped_bytes += now->rss_bytes;
    else if (now->is_unreserved)
        reading->out->unreserved_bytes += now->rss_bytes - arena_bytes_of(reading);
}

static void add_named(struct reading *reading) {
    const struct mapping *now = &reading->now;
    struct cairn_picture *picture = &reading->out->picture;
    uint64_t *part = &picture->other_bytes;
    if (starts(now->name, "/memfd:cairn") || is_own_library(now->name))
        part = &picture->own_bytes;
    else if (is_shared_memory(now->name))
        part = &picture->shared_bytes;
    else if (!strcmp(now->name, "[stack]"))
        part = &picture->stacks_bytes;
    else if (*now->name == '/' && !starts(now->name, "/dev/"))
        part = &picture->files_bytes;
    else if (!*now->name)
        part = &picture->shared_bytes;
    *part += now->rss_bytes;
    picture->stack_count += part == &picture->stacks_bytes;
    if (now->permissions[1] == 'w' && is_libc(now->name))
        reading->out->libc_data = (struct mapped_range){now->start, now->end};
}

// Everything that is said about a mapping was read.
static void finish_mapping(struct reading *reading) {
    struct mapping *now = &reading->now;
    struct cairn_picture *picture = &reading->out->picture;
    if (!reading->has_now) return;
    picture->rss_bytes += now->rss_bytes;
    picture->pss_bytes += now->pss_bytes;
    picture->swap_bytes += now->swap_bytes;
    if (is_anonymous(now))
        add_anonymous(reading);
    else
        add_named(reading);
    reading->is_before_file_data =
        *now->name == '/' && now->permissions[1] == 'w' && now->permissions[3] == 'p';
    reading->is_before_own = is_own_library(now->name);
    reading->before = *now;
    memcpy(reading->name_before, reading->name, sizeof reading->name_before);
    reading->before.name = reading->name_before;
}

// "7f4490000000-7f4490021000 rw-p 00000000 00:00 0   NAME".
static bool read_heading(struct reading *reading, const char *line) {
    struct mapping next = {0};
    int name = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &next.start, &next.end,
               next.permissions, &name) < 3 ||
        !name)
        return false;
    finish_mapping(reading);
    snprintf(reading->name, sizeof reading->name, "%s", line + name);
    reading->name[strcspn(reading->name, "\n")] = 0;
    reading->now = next;
    reading->now.name = reading->name;
    reading->has_now = true;
    return true;
}

static void read_flags(struct mapping *mapping, const char *flags) {
    mapping->is_unreserved = strstr(flags, " nr") != NULL;
    mapping->is_undumped = strstr(flags, " dd") != NULL;
}

static void read_value(struct mapping *mapping, const char *line) {
    const char *colon = strchr(line, ':');
    uint64_t kib = colon ? strtoull(colon + 1, NULL, 10) : 0;
    if (starts(line, "Rss:")) mapping->rss_bytes = kib * 1024;
    if (starts(line, "Pss:")) mapping->pss_bytes = kib * 1024;
    if (starts(line, "Swap:")) mapping->swap_bytes = kib * 1024;
    if (starts(line, "VmFlags:")) read_flags(mapping, line);
}

bool mappings_read(FILE *smaps, const struct mappings_source *source, struct mappings *mappings) {
    enum { LINE_BYTES = PATH_MAX + 128 };
    struct reading *reading = calloc(1, sizeof *reading);
    char *line = malloc(LINE_BYTES);
    *mappings = (struct mappings){0};
    bool is_ok = reading && line;
    if (is_ok) reading->out = mappings;
    if (is_ok) reading->source = *source;
    while (is_ok && fgets(line, LINE_BYTES, smaps)) {
        bool is_value = line[0] >= 'A' && line[0] <= 'Z';
        if (is_value)
            read_value(&reading->now, line);
        else
            is_ok = read_heading(reading, line);
    }
    if (is_ok) finish_mapping(reading);
    free(line);
    free(reading);
    return is_ok;
}

void mappings_free(struct mappings *mappings) {
    array_free(&mappings->memory);
}

// The soft limit of stacks is the size that glibc gives each thread.
static uint64_t stack_limit(pid_t pid) {
    char path[PROC_PATH_BYTES], line[256];
    uint64_t limit = 0;
    snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Max stack size %" SCNu64, &limit) == 1) break;
    fclose(file);
    return limit;
}

bool mappings_look(pid_t pid, struct mappings *mappings) {
    char path[PROC_PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
    FILE *file = fopen(path, "re");
    *mappings = (struct mappings){0};
    if (!file) return false;
    struct mappings_source source = {pid, pages_open(pid), stack_limit(pid)};
    bool is_ok = mappings_read(file, &source, mappings);
    if (source.pages >= 0) close(source.pages);
    fclose(file);
    return is_ok && mappings->picture.rss_bytes;
}

void mappings_settle_own(struct mappings *mappings, uint64_t own_bytes) {
    struct cairn_picture *picture = &mappings->picture;
    uint64_t bytes = mappings->unreserved_bytes;
    if (bytes > own_bytes) bytes = own_bytes;
    bytes += mappings->undumped_bytes;
    if (bytes > picture->heap_bytes) bytes = picture->heap_bytes;
    picture->heap_bytes -= bytes;
    picture->own_bytes += bytes;
}
