// SPDX-License-Identifier: Apache-2.0
// Finds the resident memory that the program mapped itself.
#include <stdlib.h>

#include "tool/base/clock.h"
#include "tool/glibc/chunks.h"
#include "tool/proc/pagemap.h"
#include "tool/proc/remote.h"
#include "tool/watch/free_chunks.h"
#include "tool/watch/rss_parts.h"

enum { LIST_MAX = 1 << 22, TRIES = 3 };

struct search {
    struct remote remote;
    uint64_t until_ns;          // of processor time: a picture may not take for ever
    bool is_cut;                // it did not suffice
    uint64_t untouched_bytes;   // of blocks, without last pages: how much of one was asked for ...
    uint64_t last_pages_bytes;  // ... is not known; these are not resident either
};

// Notes what of a large block is in no resident page.
static void note_untouched(struct search *search, uint64_t end, uint64_t bytes) {
    const uint64_t page_bytes = search->remote.pagemap.page_bytes;
    uint8_t flags = PAGE_RESIDENT;
    if (bytes) pagemap_flags(&search->remote.pagemap, end - page_bytes, 1, &flags);
    bool has_last = flags & PAGE_RESIDENT;
    search->untouched_bytes += bytes - (has_last ? 0 : page_bytes);
    search->last_pages_bytes += has_last ? 0 : page_bytes;
}

static struct search search_begin(pid_t pid, uint64_t most_ns) {
    struct search search = {.remote = remote_of(pid),
                            .until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + most_ns};
    search.remote.pagemap = pagemap_open(pid);
    return search;
}

static bool has_time(struct search *search) {
    search->is_cut |= clock_ns(CLOCK_THREAD_CPUTIME_ID) >= search->until_ns;
    return !search->is_cut;
}

// Returns resident bytes of malloc's large blocks in [at, end), as far as there is time.
static uint64_t large_blocks(struct search *search, uint64_t at, uint64_t end) {
    const struct pagemap *pagemap = &search->remote.pagemap;
    const uint64_t page_bytes = pagemap->page_bytes;
    struct page_heads heads;
    uint64_t found = 0;
    while (at < end && has_time(search)) {
        page_heads_read(&heads, &search->remote, PAGE_RESIDENT, at, end);
        for (size_t i = 0; i < heads.count; i++) {
            uint64_t address = heads.items[i].address;
            if (address < at) continue;  // inside the block before
            uint64_t size =
                chunk_mapped_bytes(heads.items[i].words, page_bytes, page_bytes, end - address);
            uint64_t resident = pagemap_resident_bytes(pagemap, address, address + size);
            found += resident;
            note_untouched(search, address + size, size - resident);
            at = address + size;
        }
        if (at < heads.end) at = heads.end;
    }
    return found;
}

// What of plain memory is no large block, and all that was mapped without reservation and is
// neither an arena nor cairn's, such as V8's heap. The process may have unmapped or moved a block
// since its memory was listed: what is resident is looked at again.
static bool sum_by_heads(struct search *search, const struct rss_parts *parts, uint64_t *bytes) {
    *bytes = parts->unreserved_bytes;
    for (size_t i = 0; i < parts->memory.count; i++) {
        const struct mapped_memory *memory = &parts->memory.items[i];
        if (!memory->is_plain) continue;
        uint64_t blocks = large_blocks(search, memory->start, memory->end);
        if (search->is_cut) return false;
        uint64_t resident =
            pagemap_resident_bytes(&search->remote.pagemap, memory->start, memory->end);
        if (resident > memory->rss_bytes) resident = memory->rss_bytes;
        if (blocks < resident) *bytes += resident - blocks;
    }
    return true;
}

bool rss_parts_find_other(pid_t pid, const struct rss_parts *parts, uint64_t *bytes) {
    struct search search = search_begin(pid, FREE_CHUNKS_LONG_NS);
    if (search.remote.pagemap.file < 0) return false;
    bool is_known = sum_by_heads(&search, parts, bytes);
    remote_close(&search.remote);
    return is_known;
}

// A copy of the process' list, as it was at one moment; for free(). NULL: it could not be had.
static struct cairn_mapping_range *read_list(const struct remote *remote, uint64_t address,
                                             uint32_t *count) {
    for (int i = 0; i < TRIES; i++) {
        struct cairn_mapping_table table, again;
        if (!remote_read(remote, address, &table, sizeof table) || table.count > LIST_MAX)
            return NULL;
        struct cairn_mapping_range *list = calloc(table.count + 1, sizeof *list);
        bool is_read = list && (!table.count ||
                                remote_read(remote, table.list, list, table.count * sizeof *list));
        bool is_same = is_read && remote_read(remote, address, &again, sizeof again) &&
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
static bool sum_by_list(const struct search *search, const struct rss_parts *parts,
                        struct recording *recording, uint64_t *bytes) {
    uint32_t count, at = 0;
    struct cairn_mapping_range *list =
        read_list(&search->remote, recording->header.mappings_ranges, &count);
    if (!list) return false;
    *bytes = 0;
    for (size_t i = parts->memory.count; i-- > 0;) {
        const struct mapped_memory *memory = &parts->memory.items[i];
        while (at < count && list[at].start >= memory->end) at++;
        for (uint32_t k = at; k < count && list[k].end > memory->start; k++) {
            uint64_t start = list[k].start, end = list[k].end;
            if (start < memory->start) start = memory->start;
            if (end > memory->end) end = memory->end;
            if (start < end && is_private_memory(recording, list[k].mapper))
                *bytes += pagemap_resident_bytes(&search->remote.pagemap, start, end);
        }
    }
    free(list);
    return true;
}

bool rss_parts_find_mapped(pid_t pid, const struct rss_parts *parts, struct recording *recording,
                           uint64_t most_ns, struct cairn_picture *picture) {
    struct search search = search_begin(pid, most_ns);
    bool is_glibc = recording->header.allocator == CAIRN_ALLOCATOR_GLIBC, is_known = false;
    if (search.remote.pagemap.file < 0) return false;
    if (recording->header.has_mappings)
        is_known = sum_by_list(&search, parts, recording, &picture->mapped_bytes);
    else if (is_glibc)
        is_known = sum_by_heads(&search, parts, &picture->mapped_bytes);
    picture->untouched_bytes = search.untouched_bytes;
    // their rounding, but for what of them was asked for
    uint64_t rounding = search.last_pages_bytes;
    picture->slack_bytes -= rounding < picture->slack_bytes ? rounding : picture->slack_bytes;
    remote_close(&search.remote);
    return is_known;
}
