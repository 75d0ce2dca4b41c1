// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/live_at_start.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "format/live_map.h"
#include "tool/proc/remote.h"

enum {
    GRANULES_MOST = 1 << (LIVE_LEAF_SHIFT - LIVE_WIDE_SHIFT),
    TOPS_MOST = 2 << (LIVE_ADDRESS_BITS_AARCH64 - LIVE_MID_SHIFT),
    AT_ONCE = 1024,  // headers of blocks: no more than IOV_MAX
    HEADER_BYTES = 8,
};

struct reading {
    struct remote remote;
    struct live_at_start *live;
    bool is_wide;
    uint32_t top_count;
    uint64_t size_most;   // no block has more
    size_t without_size;  // blocks whose size is to be read yet, the last ones
    uint64_t tops[TOPS_MOST];
    uint64_t mid[LIVE_MID_COUNT];
    union {
        uint32_t narrow[GRANULES_MOST + 1];  // one more: it may say more of the last one
        uint64_t wide[GRANULES_MOST + 1];
    } leaf;
};

static bool push(struct reading *reading, uint64_t address, uint64_t size, uint32_t cell) {
    if (!cell || (reading->is_wide && size > reading->size_most)) return true;
    struct live_found *found = array_push(&reading->live->blocks);
    if (found) *found = (struct live_found){address, size, cell};
    return found;
}

// glibc: the word before a block tells how much room it has; `size` is what of that is too much.
static void set_size(const struct reading *reading, struct live_found *found, uint64_t header) {
    const uint64_t flags = 7, room = (header & ~flags) - HEADER_BYTES;
    bool is_possible = room >= found->size && room - found->size <= reading->size_most;
    found->size = is_possible ? room - found->size : 0;
    if (!is_possible) found->cell = 0;
}

// Headers that cannot be read are of blocks that are gone: their cell becomes 0.
static void read_sizes(struct reading *reading) {
    struct live_found *found =
        reading->live->blocks.items + reading->live->blocks.count - reading->without_size;
    struct remote_span spans[AT_ONCE];
    uint64_t headers[AT_ONCE];
    for (size_t left = reading->without_size; left;) {
        size_t count = left < AT_ONCE ? left : AT_ONCE;
        for (size_t i = 0; i < count; i++)
            spans[i] = (struct remote_span){found[i].address - HEADER_BYTES, HEADER_BYTES};
        size_t done = remote_gather(&reading->remote, spans, count, headers) / HEADER_BYTES;
        for (size_t i = 0; i < done; i++) set_size(reading, &found[i], headers[i]);
        if (done < count) found[done++].cell = 0;
        found += done;
        left -= done;
    }
    reading->without_size = 0;
}

static bool add_narrow(struct reading *reading, uint64_t granule, uint32_t i, bool *is_extended) {
    const uint64_t half_bytes = 16;
    uint32_t slot = reading->leaf.narrow[i];
    uint64_t slack = slot & LIVE_SLACK_ESCAPE;
    uint64_t half = (slot >> LIVE_HALF_SHIFT & 1) * half_bytes;
    *is_extended = slack == LIVE_SLACK_ESCAPE;
    if (*is_extended) slack = LIVE_SLACK_BASE + (uint64_t)reading->leaf.narrow[i + 1];
    size_t before = reading->live->blocks.count;
    if (!push(reading, (granule << LIVE_NARROW_SHIFT) + half, slack, slot >> LIVE_ID_SHIFT))
        return false;
    reading->without_size += reading->live->blocks.count - before;
    return true;
}

static bool add_wide(struct reading *reading, uint64_t granule, uint32_t i, uint64_t odd,
                     bool *is_extended) {
    uint64_t slot = reading->leaf.wide[i], size = slot >> 32;
    *is_extended = size == LIVE_SIZE_ESCAPE;
    if (*is_extended) size = reading->leaf.wide[i + 1];
    return push(reading, (granule << LIVE_WIDE_SHIFT) + odd, size, (uint32_t)slot);
}

static bool read_leaf(struct reading *reading, uint64_t origin, uint64_t start, uint64_t odd) {
    const unsigned shift = reading->is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
    const size_t slot_bytes = reading->is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    const uint32_t count = 1u << (LIVE_LEAF_SHIFT - shift);
    uint64_t first = start >> shift, at = origin + first * slot_bytes;
    bool is_extended = false;
    memset((uint8_t *)&reading->leaf + count * slot_bytes, 0, slot_bytes);
    if (!remote_read(&reading->remote, at, &reading->leaf, (count + 1) * slot_bytes) &&
        !remote_read(&reading->remote, at, &reading->leaf, count * slot_bytes))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        bool is_extension = is_extended, is_ok = true;
        bool is_used = reading->is_wide ? reading->leaf.wide[i] : reading->leaf.narrow[i];
        is_extended = false;
        if (!is_used || is_extension) continue;
        is_ok = reading->is_wide ? add_wide(reading, first + i, i, odd, &is_extended)
                                 : add_narrow(reading, first + i, i, &is_extended);
        if (!is_ok) return false;
    }
    read_sizes(reading);
    return true;
}

static bool read_mid(struct reading *reading, uint64_t mid, uint32_t top) {
    uint64_t start = (uint64_t)(top % reading->top_count) << LIVE_MID_SHIFT;
    uint64_t odd = top >= reading->top_count ? sizeof(uint64_t) : 0;
    if (!remote_read(&reading->remote, mid, reading->mid, sizeof reading->mid)) return false;
    for (uint64_t i = 0; i < LIVE_MID_COUNT; i++) {
        uint64_t from = start | i << LIVE_LEAF_SHIFT;
        if (reading->mid[i] && !read_leaf(reading, reading->mid[i], from, odd)) return false;
    }
    return true;
}

// Places without blocks share one mid that stays empty.
static bool read_all(struct reading *reading, uint64_t tops) {
    uint32_t count = reading->is_wide ? 2 * reading->top_count : reading->top_count;
    uint64_t known_empty = 0;
    if (!tops || !remote_read(&reading->remote, tops, reading->tops, count * sizeof(uint64_t)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        size_t before = reading->live->blocks.count;
        if (!reading->tops[i] || reading->tops[i] == known_empty) continue;
        if (!read_mid(reading, reading->tops[i], i)) return false;
        if (reading->live->blocks.count == before) known_empty = reading->tops[i];
    }
    return true;
}

bool live_at_start_read(pid_t pid, const struct cairn_header *header, struct live_at_start *live) {
    struct reading *reading = malloc(sizeof *reading);
    *live = (struct live_at_start){0};
    if (!reading) return false;
    unsigned bits =
        header->machine == EM_AARCH64 ? LIVE_ADDRESS_BITS_AARCH64 : LIVE_ADDRESS_BITS_X86_64;
    reading->remote = remote_of(pid);
    reading->live = live;
    reading->is_wide = header->slot_bytes == sizeof(uint64_t);
    reading->top_count = 1u << (bits - LIVE_MID_SHIFT);
    reading->without_size = 0;
    int64_t live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED);
    const uint64_t more = 64u << 20;  // since threads told what they have
    reading->size_most = (live_bytes > 0 ? (uint64_t)live_bytes : 0) + more;
    bool is_read = read_all(reading, header->live_map);
    free(reading);
    if (!is_read) live_at_start_free(live);
    return is_read;
}

// A block that was there, in words of a chunk.
static size_t put_there(uint64_t *words, const struct live_found *found) {
    bool is_large = found->size > UINT32_MAX;
    uint64_t flags = CAIRN_EVENT_ALLOC | CAIRN_EVENT_THERE | (is_large ? CAIRN_EVENT_LARGE : 0);
    size_t count = 0;
    words[count++] = found->address << CAIRN_EVENT_ADDRESS_SHIFT | flags;
    words[count++] = found->size << 32 | found->cell;
    if (is_large) words[count++] = found->size;
    return count;
}

void live_at_start_write(const struct live_at_start *live, struct frame_writer *writer,
                         uint64_t start_ms, uint32_t *number) {
    enum { ROOM = CAIRN_EVENTS_CHUNK_BYTES / sizeof(uint64_t) };
    uint64_t words[ROOM];
    struct cairn_events_chunk chunk = {
        .slot = CAIRN_SLOT_SHARED, .thread = UINT32_MAX, .start_ms = start_ms};
    for (size_t i = 0; i < live->blocks.count;) {
        size_t count = 0;
        for (; i < live->blocks.count && count < ROOM - CAIRN_EVENT_WORDS_MOST; i++)
            if (live->blocks.items[i].cell)
                count += put_there(words + count, &live->blocks.items[i]);
        chunk.number = (*number)++;
        frame_writer_add(writer, &chunk, words, count);
    }
}

void live_at_start_free(struct live_at_start *live) {
    array_free(&live->blocks);
}
