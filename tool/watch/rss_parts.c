// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/rss_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/sample.h"
#include "tool/base/text.h"
#include "tool/base/unnamed_file.h"
#include "tool/glibc/arenas.h"
#include "tool/proc/elf_headers.h"
#include "tool/proc/pagemap.h"
#include "tool/proc/process.h"
#include "tool/proc/remote.h"
#include "tool/watch/stack_end.h"

enum { LIMITS_BYTES = 4096 };

// Data of a file that are less are taken as they are: nobody asks what of them is none.
enum { DATA_SMALL_BYTES = 64 << 10 };

// A guard is a page, two with musl, four in the JVM. A larger one is address space that somebody
// keeps for later, as the JVM's collectors do.
enum { GUARD_PAGES_MOST = 4 };

// A stack with less is taken as it is.
enum { STACK_SMALL_BYTES = 256 << 10 };

struct reading {
    struct rss_parts *out;
    struct mapping now, before;  // `before` has no name
    bool is_before_anonymous, is_before_file_data, is_before_own;
    uint64_t stack_end;                   // of a stack in this mapping; 0: it is not known
    uint64_t module_start, module_inode;  // of the last file that was mapped from its first byte
    struct rss_parts_source source;
};

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

static bool is_own_library(const char *name) {
    const char *base = text_base_name(name);
    return starts(name, "/memfd:libcairn") || !strcmp(base, "libcairn.so") ||
           !strcmp(base, "libcairn-cxx.so");
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

// Returns where a stack that is behind a guard page ends: with its thread's data or, where these
// are not found, at the usual size of a stack.
static uint64_t stack_end_of(const struct reading *reading) {
    const struct mapping *now = &reading->now;
    const struct rss_parts_source *source = &reading->source;
    const uint64_t limit = source->stack_limit_bytes;
    uint64_t end = 0;
    if (source->pagemap.file < 0 || now->rss_bytes <= STACK_SMALL_BYTES) return now->end;
    if (source->pid) end = stack_end_find(source->pid, &source->pagemap, now->start, now->end);
    if (!end && limit && limit < now->end - now->start) end = now->start + limit;
    return end ? end : now->end;
}

// Behind a guard page, no code; all of it, or its lower end if it is joined with something else.
static uint64_t stack_bytes_of(struct reading *reading) {
    const struct mapping *now = &reading->now, *before = &reading->before;
    bool is_guarded =
        before->end == now->start && starts(before->permissions, "---") &&
        reading->is_before_anonymous &&
        before->end - before->start <= GUARD_PAGES_MOST * (uint64_t)sysconf(_SC_PAGESIZE);
    reading->stack_end = now->end;
    if (starts(now->name, "[anon: glibc: pthread stack")) return now->rss_bytes;
    if (!is_guarded || !starts(now->permissions, "rw-") || now->is_unreserved) return 0;
    reading->stack_end = stack_end_of(reading);
    if (reading->stack_end == now->end) return now->rss_bytes;
    uint64_t present =
        pagemap_resident_bytes(&reading->source.pagemap, now->start, reading->stack_end);
    return present < now->rss_bytes ? present : now->rss_bytes;
}

// Notes memory from `start` on, behind a stack or data of a file. Plain neighbours become one.
static void note_memory(struct reading *reading, uint64_t start, uint64_t rss) {
    const struct mapping *now = &reading->now;
    struct rss_parts *out = reading->out;
    const bool is_plain =
        now->permissions[1] == 'w' && !now->is_unreserved && strcmp(now->name, "[heap]") != 0;
    const size_t count = out->memory.count;
    struct mapped_memory *last = count ? &out->memory.items[count - 1] : NULL;
    if (is_plain && last && last->is_plain && last->end == start) {
        last->end = now->end;
        last->rss_bytes += rss;
    } else if (rss && (last = array_push(&out->memory))) {
        *last = (struct mapped_memory){start, now->end, rss, is_plain};
    }
}

// Resident bytes of heaps of glibc's arenas in a mapping. The kernel may join the accessible part
// of a heap with a mapping before it, such as cairn's memory, and the heap may have grown since the
// mapping was listed. Only resident pages are read.
static uint64_t heap_bytes_in(const struct rss_parts_source *source, uint64_t start, uint64_t end) {
    struct remote remote = remote_of(source->pid);
    uint64_t resident = 0, at = (start + ARENA_HEAP_BYTES - 1) / ARENA_HEAP_BYTES;
    for (at *= ARENA_HEAP_BYTES; at >= start && at < end; at += ARENA_HEAP_BYTES) {
        struct arena_heap heap;
        uint8_t flags;
        pagemap_flags(&source->pagemap, at, 1, &flags);
        if (flags & PAGE_RESIDENT && remote_read(&remote, at, &heap, sizeof heap) &&
            arena_heap_is_valid(&heap, at, at + ARENA_HEAP_BYTES))
            resident += pagemap_resident_bytes(&source->pagemap, at, at + heap.accessible_bytes);
    }
    return resident;
}

// The name within "[anon:NAME]", up to its end; NULL: it has none, or one of glibc's malloc.
static const char *name_of(const struct mapping *mapping, size_t *length) {
    static const char start[] = "[anon:";
    const char *name = mapping->name + sizeof start - 1;
    if (!starts(mapping->name, start) || starts(name, " glibc: ")) return NULL;
    *length = strlen(name);
    while (*length && (name[*length - 1] == ']' || name[*length - 1] == '\n')) --*length;
    if (*length >= MAPPED_NAME_BYTES) *length = MAPPED_NAME_BYTES - 1;
    return name;
}

// Adds a mapping to those of its name; beyond so many names it has none.
static void note_name(struct reading *reading) {
    enum { NAMES_MOST = 256 };
    const struct mapping *now = &reading->now;
    struct rss_parts *out = reading->out;
    size_t length, at = 0;
    const char *name = name_of(now, &length);
    if (!name || out->names.count == NAMES_MOST) return;
    while (at < out->names.count && (strncmp(out->names.items[at].name, name, length) != 0 ||
                                     out->names.items[at].name[length]))
        at++;
    if (at == out->names.count) {
        struct mapped_name *slot = array_push(&out->names);
        if (!slot) return;
        *slot = (struct mapped_name){.rss_bytes = 0};
        memcpy(slot->name, name, length);
    }
    out->names.items[at].rss_bytes += now->rss_bytes;
    out->names.items[at].pss_bytes += now->pss_bytes;
    out->names.items[at].swap_bytes += now->swap_bytes;
}

static int compare_names(const void *a, const void *b) {
    const struct mapped_name *left = a, *right = b;
    if (left->rss_bytes != right->rss_bytes) return left->rss_bytes < right->rss_bytes ? 1 : -1;
    return strcmp(left->name, right->name);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Returns what of a mapping's PSS is that of so many of its resident bytes.
static uint64_t share_of(const struct mapping *mapping, uint64_t bytes) {
    uint64_t rss = mapping->rss_bytes, pss = least(mapping->pss_bytes, rss);
    return rss ? least(pss, (uint64_t)((double)pss * ((double)bytes / (double)rss))) : 0;
}

static void add_shares(struct reading *reading, uint64_t stack_bytes, uint64_t data_bytes) {
    const struct mapping *now = &reading->now;
    struct rss_parts *out = reading->out;
    uint64_t stack = share_of(now, stack_bytes), data = share_of(now, data_bytes);
    out->stacks_pss_bytes += stack;
    out->data_pss_bytes += data;
    out->heap_pss_bytes +=
        share_of(now, now->rss_bytes) - least(share_of(now, now->rss_bytes), stack + data);
}

// Of memory without reservation: what of it lies in glibc's arenas.
static uint64_t arena_bytes_of(const struct reading *reading) {
    const struct mapping *now = &reading->now;
    const struct rss_parts_source *source = &reading->source;
    if (now->permissions[1] != 'w' || now->is_undumped) return 0;
    if (!source->pid || source->pagemap.file < 0)
        return now->start % ARENA_HEAP_BYTES == 0 ? now->rss_bytes : 0;
    uint64_t bytes = heap_bytes_in(source, now->start, now->end);
    return bytes < now->rss_bytes ? bytes : now->rss_bytes;
}

// Finds where the data of the file before this mapping end, by its program headers: the kernel may
// have joined them with memory behind them. Small ones are taken as they are.
static uint64_t data_end_of(const struct reading *reading) {
    const struct mapping *now = &reading->now;
    const struct rss_parts_source *source = &reading->source;
    struct remote remote = remote_of(source->pid);
    const struct memory_reader memory = remote_reader(&remote);
    Elf64_Phdr headers[ELF_HEADERS_MAX];
    uint64_t end = 0, bias = 0, page_bytes = source->pagemap.page_bytes;
    uint8_t flags = 0;
    bool is_known = source->pid && source->pagemap.file >= 0 && now->rss_bytes > DATA_SMALL_BYTES &&
                    reading->module_inode && reading->module_inode == reading->before.inode;
    if (is_known) pagemap_flags(&source->pagemap, reading->module_start, 1, &flags);
    if (!(flags & PAGE_RESIDENT)) return now->end;
    size_t count = elf_headers_at(&memory, reading->module_start, headers);
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type != PT_LOAD) continue;
        if (!end) bias = reading->module_start - (headers[i].p_vaddr - headers[i].p_offset);
        end = bias + headers[i].p_vaddr + headers[i].p_memsz;
    }
    end = (end + page_bytes - 1) / page_bytes * page_bytes;
    if (!count || end >= now->end) return now->end;
    return end > now->start ? end : now->start;
}

static uint64_t data_bytes_of(const struct reading *reading, uint64_t end) {
    const struct mapping *now = &reading->now;
    if (end == now->end) return now->rss_bytes;
    return least(now->rss_bytes, pagemap_resident_bytes(&reading->source.pagemap, now->start, end));
}

// Returns where memory that is neither a stack nor data of a file begins in a mapping.
static uint64_t memory_start(const struct reading *reading, uint64_t stack_bytes,
                             uint64_t data_end) {
    const struct mapping *now = &reading->now;
    if (stack_bytes) return reading->stack_end;
    return data_end ? data_end : now->start;
}

static void add_anonymous(struct reading *reading) {
    const struct mapping *now = &reading->now;
    struct cairn_picture *picture = &reading->out->picture;
    bool has_data = reading->is_before_file_data && reading->before.end == now->start &&
                    !now->is_unreserved && !*now->name;
    uint64_t data_end = has_data ? data_end_of(reading) : 0;
    uint64_t data = has_data ? data_bytes_of(reading, data_end) : 0;
    uint64_t stack = has_data ? 0 : stack_bytes_of(reading);
    uint64_t rest = now->rss_bytes - stack - data;
    picture->stack_count += stack > 0;
    picture->stacks_bytes += stack;
    picture->heap_bytes += rest;
    *(reading->is_before_own ? &picture->own_bytes : &picture->files_bytes) += data;
    if (!stack && rest >= now->huge_bytes) picture->huge_bytes += now->huge_bytes;
    add_shares(reading, stack, data);
    if (!stack) note_name(reading);
    note_memory(reading, memory_start(reading, stack, data_end), rest);
    if (now->is_unreserved && now->is_undumped)
        reading->out->undumped_bytes += now->rss_bytes;
    else if (now->is_unreserved)
        reading->out->unreserved_bytes += now->rss_bytes - arena_bytes_of(reading);
}

static void add_named(struct reading *reading) {
    const struct mapping *now = &reading->now;
    struct cairn_picture *picture = &reading->out->picture;
    uint64_t *part = &picture->other_bytes;
    if (unnamed_file_is_called(now->name, "cairn") || is_own_library(now->name))
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
    if (now->permissions[3] == 'p') {
        uint64_t *share = part == &picture->stacks_bytes ? &reading->out->stacks_pss_bytes
                                                         : &reading->out->data_pss_bytes;
        *share += least(now->anonymous_bytes, now->pss_bytes);
    }
    picture->stack_count += part == &picture->stacks_bytes;
    if (now->permissions[1] == 'w' && is_libc(now->name))
        reading->out->libc_data = (struct mapped_range){now->start, now->end};
}

static void add_mapping(struct reading *reading) {
    struct mapping *now = &reading->now;
    struct cairn_picture *picture = &reading->out->picture;
    picture->rss_bytes += now->rss_bytes;
    picture->pss_bytes += now->pss_bytes;
    picture->swap_bytes += now->swap_bytes;
    if (reading->source.each) reading->source.each(reading->source.context, now);
    if (is_anonymous(now))
        add_anonymous(reading);
    else
        add_named(reading);
    reading->is_before_file_data =
        *now->name == '/' && now->permissions[1] == 'w' && now->permissions[3] == 'p';
    if (*now->name == '/' && !now->offset) {
        reading->module_start = now->start;
        reading->module_inode = now->inode;
    }
    reading->is_before_own = is_own_library(now->name);
    reading->is_before_anonymous = !*now->name;
    reading->before = *now;
    reading->before.name = NULL;
}

bool rss_parts_read(struct maps *smaps, const struct rss_parts_source *source,
                    struct rss_parts *parts) {
    struct reading reading = {.out = parts, .source = *source};
    *parts = (struct rss_parts){0};
    parts->picture.knows = CAIRN_PICTURE_KNOWS_HUGE;
    while (!smaps->is_odd && maps_next(smaps, &reading.now)) add_mapping(&reading);
    if (parts->names.count)
        qsort(parts->names.items, parts->names.count, sizeof *parts->names.items, compare_names);
    return !smaps->is_odd;
}

void rss_parts_free(struct rss_parts *parts) {
    array_free(&parts->memory);
    array_free(&parts->names);
}

// The soft limit of stacks is the size that glibc gives each thread.
static uint64_t stack_limit(pid_t pid) {
    char text[LIMITS_BYTES];
    uint64_t limit = 0;
    process_read(pid, "limits", text, sizeof text);
    const char *line = strstr(text, "Max stack size");
    return line && sscanf(line, "Max stack size %" SCNu64, &limit) == 1 ? limit : 0;
}

bool rss_parts_with_each(pid_t pid, void (*each)(void *context, const struct mapping *mapping),
                         void *context, struct rss_parts *parts) {
    struct maps smaps;
    *parts = (struct rss_parts){0};
    if (!maps_open(&smaps, pid, "smaps", NULL)) return false;
    struct rss_parts_source source = {pid, pagemap_open(pid), stack_limit(pid), each, context};
    bool is_ok = rss_parts_read(&smaps, &source, parts);
    pagemap_close(&source.pagemap);
    maps_close(&smaps);
    return is_ok && parts->picture.rss_bytes;
}

bool rss_parts_of_process(pid_t pid, struct rss_parts *parts) {
    return rss_parts_with_each(pid, NULL, NULL, parts);
}

void rss_parts_settle_own(struct rss_parts *parts, uint64_t own_bytes) {
    struct cairn_picture *picture = &parts->picture;
    uint64_t bytes = parts->unreserved_bytes;
    if (bytes > own_bytes) bytes = own_bytes;
    parts->unreserved_bytes -= bytes;
    bytes += parts->undumped_bytes;
    if (bytes > picture->heap_bytes) bytes = picture->heap_bytes;
    picture->heap_bytes -= bytes;
    picture->own_bytes += bytes;
}

uint64_t rss_parts_samples_bytes(pid_t pid, uint64_t live_samples) {
    enum { PLACES_MAX = 1 << 24 };
    struct remote remote = remote_of(pid);
    struct cairn_live_samples table;
    uint64_t bytes = 0;
    if (!live_samples || !remote_read(&remote, live_samples, &table, sizeof table)) return 0;
    if (table.count > PLACES_MAX || table.keys > INT64_MAX || table.entries > INT64_MAX) return 0;
    remote.pagemap = pagemap_open(pid);
    if (remote.pagemap.file < 0) return 0;
    uint64_t keys_end = table.keys + table.count * sizeof(uint64_t);
    uint64_t entries_end = table.entries + table.count * sizeof(struct cairn_live_sample);
    bytes += pagemap_resident_bytes(&remote.pagemap, table.keys, keys_end);
    bytes += pagemap_resident_bytes(&remote.pagemap, table.entries, entries_end);
    remote_close(&remote);
    return bytes;
}

bool rss_parts_is_moment(int64_t live_before, int64_t live_bytes) {
    enum { CHANGED_SHARE = 8, CHANGED_MIN_BYTES = 1 << 20 };
    int64_t change, more = live_before > live_bytes ? live_before : live_bytes;
    if (__builtin_sub_overflow(live_before, live_bytes, &change)) return false;
    return llabs(change) <= more / CHANGED_SHARE + CHANGED_MIN_BYTES;
}

bool rss_parts_settle_free(struct cairn_picture *picture, int64_t live_after) {
    enum { FREED_SHARE = 64, FREED_MIN_BYTES = 64 << 10 };
    int64_t freed;
    if (__builtin_sub_overflow(picture->live_bytes, live_after, &freed)) return false;
    if (freed <= picture->live_bytes / FREED_SHARE + FREED_MIN_BYTES) return false;
    picture->arena_count = 0;
    picture->arena_bytes = picture->free_chunk_bytes = picture->free_top_bytes = 0;
    picture->free_resident_bytes = 0;
    picture->is_cut = 1;
    return true;
}
