// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/own_memory.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tool/watch/pages.h"

enum { PAGE_BYTES = 4096, PAGES_AT_ONCE = 512, PAGES_MAX = 1 << 16, LIST_MAX = 1 << 22, TRIES = 3 };
enum { FLAGS = 7, FLAG_MMAPPED = 2 };

struct looking {
    pid_t pid;
    int pages;
    uint64_t pages_left;  // to be looked at: a picture may not take for ever
};

// A chunk's first two words: what lies before it (0), its size with flags.
struct head {
    uint64_t before, size;
};

static bool read_memory(pid_t pid, uint64_t address, void *out, size_t bytes) {
    struct iovec mine = {out, bytes};
    struct iovec theirs = {(void *)(uintptr_t)address, bytes};  // NOLINT: of the process
    return process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == (ssize_t)bytes;
}

// The heads of the pages that are resident; of the others zeros.
static void read_heads(const struct looking *looking, uint64_t at, size_t count,
                       struct head *heads) {
    bool are_present[PAGES_AT_ONCE];
    struct iovec mine[PAGES_AT_ONCE], theirs[PAGES_AT_ONCE];
    size_t used = 0;
    pages_are_present(looking->pages, at, count, are_present);
    for (size_t i = 0; i < count; i++) {
        heads[i] = (struct head){0};
        if (!are_present[i]) continue;
        mine[used] = (struct iovec){&heads[i], sizeof *heads};
        theirs[used++] = (struct iovec){(void *)(uintptr_t)(at + i * PAGE_BYTES),  // NOLINT
                                        sizeof *heads};
    }
    if (used) (void)!process_vm_readv(looking->pid, mine, used, theirs, used, 0);
}

// Size of the large block that begins there, 0: none does.
static uint64_t block_bytes(const struct head *head, uint64_t at, uint64_t end) {
    uint64_t size = head->size & ~(uint64_t)FLAGS;
    bool is_mmapped = (head->size & FLAGS) == FLAG_MMAPPED && !head->before;
    return is_mmapped && size && size % PAGE_BYTES == 0 && size <= end - at ? size : 0;
}

// Resident bytes of malloc's large blocks in [at, end); looking->pages_left 0: not all was seen.
static uint64_t large_blocks(struct looking *looking, uint64_t at, uint64_t end) {
    struct head heads[PAGES_AT_ONCE];
    uint64_t found = 0;
    while (at < end && looking->pages_left) {
        size_t count = (end - at) / PAGE_BYTES, i = 0;
        uint64_t from = at;
        if (count > PAGES_AT_ONCE) count = PAGES_AT_ONCE;
        if (count > looking->pages_left) count = looking->pages_left;
        if (!count) break;
        read_heads(looking, at, count, heads);
        for (; i < count && at < from + count * PAGE_BYTES; i = (at - from) / PAGE_BYTES) {
            uint64_t size = block_bytes(&heads[i], at, end);
            if (size) found += pages_present_bytes(looking->pages, at, at + size);
            at += size ? size : PAGE_BYTES;
        }
        looking->pages_left -= count;
    }
    return found;
}

// What of plain memory is no large block.
static bool look_at_heads(struct looking *looking, const struct mappings *mappings,
                          uint64_t *bytes) {
    *bytes = 0;
    for (size_t i = 0; i < mappings->memory.count; i++) {
        const struct mapped_memory *memory = &mappings->memory.items[i];
        if (!memory->is_plain) continue;
        uint64_t blocks = large_blocks(looking, memory->start, memory->end);
        if (!looking->pages_left) return false;
        if (blocks < memory->rss_bytes) *bytes += memory->rss_bytes - blocks;
    }
    return true;
}

// A copy of the process' list, as it was at one moment; for free(). NULL: it could not be had.
static struct cairn_mapping_range *read_list(pid_t pid, uint64_t address, uint32_t *count) {
    for (int i = 0; i < TRIES; i++) {
        struct cairn_mapping_table table, again;
        if (!read_memory(pid, address, &table, sizeof table) || table.count > LIST_MAX) return NULL;
        struct cairn_mapping_range *list = calloc(table.count + 1, sizeof *list);
        bool is_read = list && (!table.count ||
                                read_memory(pid, table.list, list, table.count * sizeof *list));
        bool is_same = is_read && read_memory(pid, address, &again, sizeof again) &&
                       again.change == table.change && table.change % 2 == 0;
        *count = table.count;
        if (is_same) return list;
        free(list);
    }
    return NULL;
}

static bool is_private_memory(struct recording *recording, uint32_t id) {
    struct cairn_mapper mapper;
    return recording_mapper(recording, id, &mapper) &&
           (mapper.kind == CAIRN_MAPPING_ANONYMOUS || mapper.kind == CAIRN_MAPPING_RESERVED);
}

// The list begins with the highest address, the mappings with the lowest.
static bool look_at_list(const struct looking *looking, const struct mappings *mappings,
                         struct recording *recording, uint64_t *bytes) {
    uint32_t count, at = 0;
    struct cairn_mapping_range *list =
        read_list(looking->pid, recording->header.mappings_ranges, &count);
    if (!list) return false;
    *bytes = 0;
    for (size_t i = mappings->memory.count; i-- > 0;) {
        const struct mapped_memory *memory = &mappings->memory.items[i];
        while (at < count && list[at].start >= memory->end) at++;
        for (uint32_t k = at; k < count && list[k].end > memory->start; k++) {
            uint64_t start = list[k].start, end = list[k].end;
            if (start < memory->start) start = memory->start;
            if (end > memory->end) end = memory->end;
            if (start < end && is_private_memory(recording, list[k].mapper))
                *bytes += pages_present_bytes(looking->pages, start, end);
        }
    }
    free(list);
    return true;
}

bool own_memory_look(pid_t pid, const struct mappings *mappings, struct recording *recording,
                     uint64_t *bytes) {
    struct looking looking = {.pid = pid, .pages = pages_open(pid), .pages_left = PAGES_MAX};
    bool is_glibc = recording->header.allocator == CAIRN_ALLOCATOR_GLIBC, is_known = false;
    if (looking.pages < 0) return false;
    if (recording->header.has_mappings)
        is_known = look_at_list(&looking, mappings, recording, bytes);
    else if (is_glibc)
        is_known = look_at_heads(&looking, mappings, bytes);
    close(looking.pages);
    return is_known;
}
