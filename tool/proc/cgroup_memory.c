// SPDX-License-Identifier: Apache-2.0
#include "tool/proc/cgroup_memory.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Pages that the kernel charges ahead on each processor (MEMCG_CHARGE_BATCH), and again as many of
// each statistic that it may not have added up yet.
enum { AHEAD_PAGES = 2 * 64 };

// Readings that are tried until the parts are no more than what is used.
enum { TRIES = 3 };

// No machine has more: sums of what a file claims stay within 64 bits, and signed ones too.
static const uint64_t bytes_most = UINT64_C(1) << 56;

static uint64_t parse(const char *text) {
    uint64_t number = strtoull(text, NULL, 10);
    return number < bytes_most ? number : bytes_most;
}

// Finds the number behind a name at the start of a line. False: there is no such line.
static bool find(const char *text, const char *name, uint64_t *number) {
    const size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != ' ') continue;
        *number = parse(line + length);
        return true;
    }
    return false;
}

static uint64_t number_in(const char *text, const char *name) {
    uint64_t number = 0;
    return find(text, name, &number) ? number : 0;
}

static uint64_t read_number(const struct cgroup *cgroup, const char *name, bool *is_there) {
    char text[CGROUP_FILE_BYTES];
    bool is_read = cgroup_read(cgroup, name, text) && *text >= '0' && *text <= '9';
    if (is_there) *is_there = is_read;
    return is_read ? parse(text) : 0;
}

static void tell(struct cgroup_parts *parts, enum cgroup_part part, uint64_t bytes) {
    parts->bytes[part] = bytes;
    parts->is_told[part] = true;
}

// Takes shared memory and pages that are swapped out as well out of the page cache: the kernel
// counts both there, and the latter with anonymous memory too.
static void tell_cache(struct cgroup_parts *parts, uint64_t cache, uint64_t shared,
                       uint64_t swapped_too) {
    cache -= shared < cache ? shared : cache;
    cache -= swapped_too < cache ? swapped_too : cache;
    tell(parts, CGROUP_FILES, cache);
    tell(parts, CGROUP_SHARED, shared);
}

// --- version 2

static const struct {
    const char *name;
    enum cgroup_part part;
} kernel_rows[] = {
    {"slab", CGROUP_SLAB},       {"kernel_stack", CGROUP_KERNEL_STACKS},
    {"percpu", CGROUP_PER_CPU},  {"pagetables", CGROUP_PAGE_TABLES},
    {"vmalloc", CGROUP_VMALLOC}, {"zswap", CGROUP_COMPRESSED},
};

// Splits the kernel's memory. Slab is counted by object and the sum by page: no part is more than
// what is left of the sum. Kernels before 5.18 do not tell it.
static void read_kernel(const char *text, struct cgroup_parts *parts) {
    uint64_t left, bytes;
    bool has_sum = find(text, "kernel", &left);
    for (size_t i = 0; i < sizeof kernel_rows / sizeof *kernel_rows; i++) {
        if (!find(text, kernel_rows[i].name, &bytes)) continue;
        if (has_sum && bytes > left) bytes = left;
        tell(parts, kernel_rows[i].part, bytes);
        if (has_sum) left -= bytes;
    }
    if (has_sum) tell(parts, CGROUP_KERNEL, left);
}

// Sums up hugetlb.2MB.current and its like.
static uint64_t hugetlb_bytes(const struct cgroup *cgroup) {
    static const char start[] = "hugetlb.", end[] = ".current", reserved[] = ".rsvd.current";
    DIR *directory = opendir(cgroup->path);
    uint64_t bytes = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);
        bool is_one = !strncmp(entry->d_name, start, sizeof start - 1) && length > sizeof end &&
                      !strcmp(entry->d_name + length - (sizeof end - 1), end) &&
                      !strstr(entry->d_name, reserved);
        if (is_one) bytes += read_number(cgroup, entry->d_name, NULL);
    }
    if (directory) closedir(directory);
    return bytes;
}

static void read_new(const struct cgroup *cgroup, const char *text, struct cgroup_parts *parts) {
    uint64_t bytes;
    tell(parts, CGROUP_ANONYMOUS, number_in(text, "anon"));
    tell_cache(parts, number_in(text, "file"), number_in(text, "shmem"),
               number_in(text, "swapcached"));
    read_kernel(text, parts);
    if (find(text, "sock", &bytes)) tell(parts, CGROUP_SOCKETS, bytes);
    if (find(text, "hugetlb", &bytes)) tell(parts, CGROUP_HUGETLB, bytes);
    parts->huge_bytes = number_in(text, "anon_thp");
    parts->swap_bytes = read_number(cgroup, "memory.swap.current", &parts->has_swap);
    bytes = hugetlb_bytes(cgroup);
    parts->beside_hugetlb_bytes = parts->bytes[CGROUP_HUGETLB] ? 0 : bytes;
}

// --- version 1

// Only the root of a hierarchy has this file; there, what is used is without the kernel's memory.
static bool is_root(const struct cgroup *cgroup) {
    return cgroup_has(cgroup, "cgroup.sane_behavior");
}

static void read_old(const struct cgroup *cgroup, const char *text, struct cgroup_parts *parts) {
    bool has_kernel;
    uint64_t kernel = read_number(cgroup, "memory.kmem.usage_in_bytes", &has_kernel);
    tell(parts, CGROUP_ANONYMOUS, number_in(text, "total_rss"));
    tell_cache(parts, number_in(text, "total_cache"), number_in(text, "total_shmem"),
               number_in(text, "total_swapcached"));
    if (is_root(cgroup))
        parts->beside_kernel_bytes = kernel;
    else if (has_kernel)
        tell(parts, CGROUP_KERNEL, kernel);
    parts->huge_bytes = number_in(text, "total_rss_huge");
    parts->has_swap = find(text, "total_swap", &parts->swap_bytes);
    parts->beside_sockets_bytes = read_number(cgroup, "memory.kmem.tcp.usage_in_bytes", NULL);
}

// --- both

static uint64_t ahead_most(void) {
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    return (processors > 0 ? (uint64_t)processors : 1) * AHEAD_PAGES * process_page_bytes();
}

static void close_sum(struct cgroup_parts *parts) {
    bool is_whole = parts->is_told[CGROUP_KERNEL] || parts->beside_kernel_bytes;
    uint64_t sum = 0;
    for (int part = 0; part < CGROUP_AHEAD; part++) sum += parts->bytes[part];
    parts->is_told[CGROUP_NOT_KNOWN] = true;
    parts->is_told[CGROUP_AHEAD] = is_whole;
    if (sum > parts->used_bytes) {
        parts->over_bytes = sum - parts->used_bytes;
        return;
    }
    bool is_ahead = is_whole && parts->used_bytes - sum <= ahead_most();
    parts->bytes[is_ahead ? CGROUP_AHEAD : CGROUP_NOT_KNOWN] = parts->used_bytes - sum;
}

static bool read_once(const struct cgroup *cgroup, struct cgroup_parts *parts) {
    char text[CGROUP_FILE_BYTES];
    struct cgroup_memory memory;
    bool is_there;
    *parts = (struct cgroup_parts){0};
    if (!cgroup_read(cgroup, "memory.stat", text)) return false;
    if (cgroup->is_old)
        read_old(cgroup, text, parts);
    else
        read_new(cgroup, text, parts);
    parts->used_bytes =
        read_number(cgroup, cgroup->is_old ? "memory.usage_in_bytes" : "memory.current", &is_there);
    if (!is_there || !cgroup_look(cgroup, UINT64_MAX, &memory)) return false;
    parts->limit_bytes = memory.limit_bytes;
    parts->kills = memory.kills < bytes_most ? memory.kills : bytes_most;
    close_sum(parts);
    return true;
}

bool cgroup_parts_read(const struct cgroup *cgroup, struct cgroup_parts *parts) {
    bool is_read = false;
    for (int i = 0; i < TRIES && (!is_read || parts->over_bytes); i++) {
        is_read = read_once(cgroup, parts);
        if (!is_read) break;
    }
    return is_read;
}

static const struct {
    const char *key, *text;
} words[CGROUP_PARTS] = {
    [CGROUP_ANONYMOUS] = {"anonymous", "anonymous memory of processes"},
    [CGROUP_FILES] = {"files", "page cache of files"},
    [CGROUP_SHARED] = {"shared", "shared memory and tmpfs"},
    [CGROUP_SLAB] = {"slab", "slab: objects of the kernel"},
    [CGROUP_KERNEL_STACKS] = {"kernel_stacks", "kernel stacks of threads"},
    [CGROUP_PAGE_TABLES] = {"page_tables", "page tables"},
    [CGROUP_PER_CPU] = {"per_cpu", "the kernel's memory by processor"},
    [CGROUP_VMALLOC] = {"vmalloc", "the kernel's vmalloc"},
    [CGROUP_COMPRESSED] = {"compressed", "swapped out into memory (zswap)"},
    [CGROUP_KERNEL] = {"kernel", "of the kernel, what else"},
    [CGROUP_SOCKETS] = {"sockets", "buffers of sockets"},
    [CGROUP_HUGETLB] = {"hugetlb", "huge pages of hugetlbfs"},
    [CGROUP_AHEAD] = {"ahead", "charged ahead by the kernel, or not counted yet"},
    [CGROUP_NOT_KNOWN] = {"not_known", "not known"},
};

const char *cgroup_part_key(enum cgroup_part part) {
    return words[part].key;
}

const char *cgroup_part_text(enum cgroup_part part, bool is_old) {
    if (is_old && part == CGROUP_KERNEL)
        return "of the kernel: slab, stacks, page tables, as one sum";
    return words[part].text;
}
