// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/cgroup_processes.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/proc/cached_files.h"
#include "tool/proc/process.h"
#include "tool/watch/free_chunks.h"

// Mapped and open files that are noted, files of less than so many bytes, and the processor time
// for the free memory of a process.
enum { FILES_MOST = 1 << 18, FILE_LEAST_BYTES = 64 << 10 };
static const uint64_t walk_ns = CLOCK_SECOND_NS;

#define SORT(array, compare)                                                                       \
    do {                                                                                           \
        if ((array).count) qsort((array).items, (array).count, sizeof *(array).items, compare);    \
    } while (false)

struct looking {
    struct cgroup_processes *out;
    bool (*own_bytes)(pid_t pid, uint64_t *bytes);
    bool is_known;   // which of its open files are cached
    bool has_break;  // the process at hand has a heap that brk moves, as glibc's malloc makes it
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// --- files and shared memory by name

// Adds to a file by its name; those of a process lie side by side, all of a name are one at the
// end.
static struct cgroup_file *file_of(struct cgroup_processes *out, const char *name, size_t length) {
    struct cgroup_file *last = out->files.count ? &out->files.items[out->files.count - 1] : NULL;
    if (last && !strncmp(last->name, name, length) && !last->name[length]) return last;
    if (out->files.count == FILES_MOST) return NULL;
    char *copy = strndup(name, length);
    struct cgroup_file *file = copy ? array_push(&out->files) : NULL;
    if (!file) free(copy);
    if (file) *file = (struct cgroup_file){.name = copy};
    return file;
}

static void join_file(struct cgroup_file *file, struct cgroup_file *other) {
    file->mapped_bytes += other->mapped_bytes;
    if (file->cached_bytes < other->cached_bytes) file->cached_bytes = other->cached_bytes;
    file->is_shared |= other->is_shared;
    free(other->name);
}

static int compare_file_names(const void *a, const void *b) {
    return strcmp(((const struct cgroup_file *)a)->name, ((const struct cgroup_file *)b)->name);
}

// Makes one of all of a name, and says how much of it is in memory: what is cached, which is no
// less than what is mapped, where that is known.
static void join_files(struct cgroup_processes *out) {
    struct cgroup_file *items = out->files.items;
    size_t kept = 0;
    SORT(out->files, compare_file_names);
    for (size_t i = 0; i < out->files.count; i++) {
        if (kept && !strcmp(items[kept - 1].name, items[i].name))
            join_file(&items[kept - 1], &items[i]);
        else
            items[kept++] = items[i];
    }
    out->files.count = kept;
    for (size_t i = 0; i < kept; i++)
        items[i].bytes = items[i].mapped_bytes > items[i].cached_bytes ? items[i].mapped_bytes
                                                                       : items[i].cached_bytes;
}

// The length of a name without the end that deleted files, and memory without a path, have.
static size_t name_length(const char *name) {
    static const char end[] = " (deleted)";
    size_t length = strlen(name), tail = sizeof end - 1;
    bool has_end = length > tail && !strcmp(name + length - tail, end);
    return has_end ? length - tail : length;
}

static bool is_memory(const char *name) {
    static const char *const starts[] = {"/memfd:", "/SYSV", "/dev/shm/", "/dev/zero",
                                         "[anon_shmem"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
    return false;
}

// Notes the share of a mapped file that is its pages, not pages of the process' own.
static void add_mapped(void *context, const struct mapping *mapping) {
    struct looking *looking = context;
    uint64_t own = least(mapping->anonymous_bytes, mapping->pss_bytes);
    bool is_shared = is_memory(mapping->name);
    looking->has_break |= !strcmp(mapping->name, "[heap]");
    if (mapping->pss_bytes == own || !(is_shared || mapping_is_file(mapping))) return;
    struct cgroup_file *file = file_of(looking->out, mapping->name, name_length(mapping->name));
    if (!file) return;
    file->mapped_bytes += mapping->pss_bytes - own;
    file->is_shared |= is_shared;
}

static void add_open(void *context, const struct cached_file *open) {
    struct looking *looking = context;
    struct cgroup_file *file = file_of(looking->out, open->name, name_length(open->name));
    if (!file) return;
    if (file->cached_bytes < open->bytes) file->cached_bytes = open->bytes;
    file->is_shared |= open->is_shared;
}

// --- a process

// Shares `bytes`, found among `rss` resident ones, by what of these is the process' own share.
static uint64_t share(uint64_t bytes, uint64_t pss, uint64_t rss) {
    if (!rss) return 0;
    return least(pss, (uint64_t)((double)bytes * ((double)pss / (double)rss)));
}

static void take(struct cgroup_process *process, enum memory_kind kind, uint64_t bytes,
                 uint64_t *left) {
    process->bytes[kind] += least(bytes, *left);
    *left -= least(bytes, *left);
}

static bool add_name(struct cgroup_processes *out, const struct mapped_name *name) {
    for (size_t i = 0; i < out->names.count; i++) {
        if (strcmp(out->names.items[i].name, name->name) != 0) continue;
        out->names.items[i].rss_bytes += name->rss_bytes;
        out->names.items[i].pss_bytes += name->pss_bytes;
        out->names.items[i].swap_bytes += name->swap_bytes;
        return true;
    }
    struct mapped_name *slot = array_push(&out->names);
    if (slot) *slot = *name;
    return slot != NULL;
}

// Splits the heap and whatever else is mapped without a file. Named memory goes first, then what
// was counted.
static void split_heap(struct looking *looking, struct cgroup_process *process,
                       struct rss_parts *parts) {
    struct cairn_picture *picture = &parts->picture;
    const uint64_t pss = parts->heap_pss_bytes;
    const struct mapped_range *data = &parts->libc_data;
    uint64_t own = 0, left = pss, mapped = 0, named = 0, named_rss = 0;
    process->is_recorded = looking->own_bytes && looking->own_bytes(process->pid, &own);
    for (size_t i = 0; i < parts->names.count; i++) {
        struct mapped_name *name = &parts->names.items[i];
        name->pss_bytes = least(name->pss_bytes, left - least(named, left));
        if (!add_name(looking->out, name)) continue;
        named += name->pss_bytes;
        named_rss += name->rss_bytes;
    }
    take(process, KIND_NAMED, named, &left);
    uint64_t before = picture->heap_bytes;
    if (process->is_recorded) rss_parts_settle_own(parts, own);
    take(process, KIND_OWN, share(before - picture->heap_bytes, pss, before), &left);
    bool is_glibc =
        data->start && free_chunks_find(process->pid, data->start, data->end, walk_ns, picture);
    bool is_split = is_glibc && rss_parts_find_other(process->pid, parts, &mapped);
    if (mapped < named_rss) mapped = named_rss;
    if (is_glibc) take(process, KIND_FREE, share(picture->free_resident_bytes, pss, before), &left);
    if (is_split) take(process, KIND_MAPPED, share(mapped - named_rss, pss, before), &left);
    process->is_cut = is_glibc && picture->is_cut;
    bool is_other = !is_glibc && !looking->has_break;
    take(process, is_split ? KIND_IN_USE : is_other ? KIND_MAPPED : KIND_HEAP, left, &left);
}

// False: it has ended, or may not be read.
static bool read_process(struct looking *looking, pid_t pid, struct cgroup_process *process) {
    struct rss_parts parts;
    struct process_stat stat;
    char name[NAME_MAX];
    *process = (struct cgroup_process){.pid = pid};
    if (!process_name(pid, name) || !process_stat(pid, &stat)) return false;
    text_escape(process->name, sizeof process->name, name);
    process->born = stat.born;
    looking->has_break = false;
    bool is_ok = rss_parts_with_each(pid, add_mapped, looking, &parts);
    if (is_ok) {
        process->rss_bytes = parts.picture.rss_bytes;
        process->swap_bytes = parts.picture.swap_bytes;
        process->bytes[KIND_STACKS] = parts.stacks_pss_bytes;
        process->bytes[KIND_DATA] = parts.data_pss_bytes;
        split_heap(looking, process, &parts);
        for (int kind = 0; kind < KINDS; kind++) process->anonymous_bytes += process->bytes[kind];
    }
    rss_parts_free(&parts);
    return is_ok;
}

// --- all of them

// Returns true if the process has memory of its own: a thread of the kernel has none.
static bool has_memory(pid_t pid) {
    char pages[64];
    return process_read(pid, "statm", pages, sizeof pages) && strncmp(pages, "0 ", 2) != 0;
}

static bool has_ended(pid_t pid) {
    struct process_stat stat;
    return !process_stat(pid, &stat) || process_has_ended(stat.state);
}

// Adds what the kernel has for a process.
static void add_kernel(struct cgroup_processes *out, pid_t pid) {
    enum { STATUS_BYTES = 4096, KIB = 1024 };
    char text[STATUS_BYTES];
    process_read(pid, "status", text, sizeof text);
    out->page_table_bytes += strtoull(process_field(text, "VmPTE"), NULL, 10) * KIB;
    out->thread_count += strtoull(process_field(text, "Threads"), NULL, 10);
}

static bool add_process(struct looking *looking, pid_t pid) {
    struct cgroup_processes *out = looking->out;
    struct cgroup_process process;
    if (pid <= 0) {
        out->hidden_count++;
        return true;
    }
    bool is_there = has_memory(pid);
    if (!is_there || !read_process(looking, pid, &process)) {
        if (has_ended(pid))
            out->ended_count++;
        else
            out->refused_count += is_there;
        return true;
    }
    if (!cached_files_of(pid, FILE_LEAST_BYTES, add_open, looking)) looking->is_known = false;
    struct cgroup_process *slot = array_push(&out->items);
    if (!slot) return false;
    *slot = process;
    add_kernel(out, pid);
    for (int kind = 0; kind < KINDS; kind++) out->bytes[kind] += process.bytes[kind];
    out->anonymous_bytes += process.anonymous_bytes;
    out->is_cut |= process.is_cut;
    return true;
}

static int by_bytes(uint64_t left, uint64_t right) {
    return left == right ? 0 : left < right ? 1 : -1;
}

static int compare_processes(const void *a, const void *b) {
    const struct cgroup_process *left = a, *right = b;
    int order = by_bytes(left->anonymous_bytes, right->anonymous_bytes);
    return order ? order : (left->pid > right->pid) - (left->pid < right->pid);
}

static int compare_names(const void *a, const void *b) {
    const struct mapped_name *left = a, *right = b;
    int order = by_bytes(left->pss_bytes, right->pss_bytes);
    return order ? order : strcmp(left->name, right->name);
}

static int compare_files(const void *a, const void *b) {
    const struct cgroup_file *left = a, *right = b;
    int order = by_bytes(left->bytes, right->bytes);
    return order ? order : strcmp(left->name, right->name);
}

bool cgroup_processes_read(const struct cgroup *cgroup,
                           bool (*own_bytes)(pid_t pid, uint64_t *bytes),
                           struct cgroup_processes *processes) {
    struct looking looking = {processes, own_bytes, true, false};
    struct process_pids list;
    *processes = (struct cgroup_processes){0};
    bool is_ok = cgroup_list(cgroup, &list);
    for (size_t i = 0; is_ok && i < list.pids.count; i++)
        is_ok = add_process(&looking, list.pids.items[i]);
    array_free(&list.pids);
    processes->has_open_files = looking.is_known;
    SORT(processes->items, compare_processes);
    SORT(processes->names, compare_names);
    join_files(processes);
    SORT(processes->files, compare_files);
    return is_ok;
}

void cgroup_processes_free(struct cgroup_processes *processes) {
    for (size_t i = 0; i < processes->files.count; i++) free(processes->files.items[i].name);
    array_free(&processes->items);
    array_free(&processes->names);
    array_free(&processes->files);
}

static const struct {
    const char *key, *text;
} words[KINDS] = {
    [KIND_IN_USE] = {"heap_in_use", "in use in glibc's malloc"},
    [KIND_FREE] = {"heap_free", "free in glibc's malloc, still resident"},
    [KIND_HEAP] = {"heap", "heap in use and other memory: how much of each is not known"},
    [KIND_MAPPED] = {"mapped", "mapped by programs or other allocators"},
    [KIND_NAMED] = {"named", "mapped with a name"},
    [KIND_STACKS] = {"stacks", "stacks of threads"},
    [KIND_DATA] = {"data", "data of programs and libraries"},
    [KIND_OWN] = {"cairn", "cairn in recorded processes"},
};

const char *memory_kind_key(enum memory_kind kind) {
    return words[kind].key;
}

const char *memory_kind_text(enum memory_kind kind) {
    return words[kind].text;
}
