// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/touched.h"

#include <stdlib.h>

#include "tool/base/clock.h"
#include "tool/proc/pagemap.h"
#include "tool/watch/live_at_start.h"

enum {
    OF_CELL_MOST = 32,      // blocks of a cell that are looked at
    BLOCKS_MOST = 1 << 13,  // and of all: each takes a system call
};

static const uint64_t pause_first_ns = CLOCK_SECOND_NS / 100, pause_last_ns = CLOCK_SECOND_NS;

bool touched_is_due(struct touched_looks *looks, int64_t live_bytes, uint64_t now_ns,
                    bool is_last) {
    const int64_t least_bytes = 1 << 20, step = 4;
    const uint64_t spare_ns = is_last ? pause_last_ns : 0;
    bool has_grown = live_bytes - looks->live_bytes > looks->live_bytes / step;
    if (live_bytes < least_bytes || now_ns + spare_ns < looks->next_ns) return false;
    if (has_grown) looks->pause_ns = pause_first_ns;
    if (!has_grown && !is_last && now_ns < looks->next_ns + looks->pause_ns) return false;
    if (!has_grown && looks->pause_ns < pause_last_ns) looks->pause_ns *= 2;
    looks->live_bytes = live_bytes;
    return true;
}

void touched_was_read(struct touched_looks *looks, uint64_t begin_ns, uint64_t end_ns) {
    const uint64_t rest = 20;
    looks->next_ns = end_ns + (end_ns - begin_ns) * rest;
}

// Pages that are the block's alone.
static uint64_t whole_pages(const struct live_found *found, uint64_t page_bytes, uint64_t *first) {
    *first = (found->address + page_bytes - 1) & ~(page_bytes - 1);
    uint64_t end = (found->address + found->size) & ~(page_bytes - 1);
    return end > *first ? (end - *first) / page_bytes : 0;
}

// Of a cell: blocks with pages of their own, and those of them that are ahead.
struct cell_blocks {
    uint32_t count, ahead;
};

// Every so many of a cell's blocks is looked at, the last one surely: its place is new most likely.
static bool is_chosen(const struct cell_blocks *cell) {
    return cell->ahead % (cell->count / OF_CELL_MOST + 1) == 0;
}

// By cell; `chosen`: how many are looked at of all.
static struct cell_blocks *count_blocks(const struct live_at_start *live, uint64_t page_bytes,
                                        size_t *chosen) {
    uint32_t most = 0;
    uint64_t first;
    for (size_t i = 0; i < live->blocks.count; i++)
        if (live->blocks.items[i].cell > most) most = live->blocks.items[i].cell;
    struct cell_blocks *cells = calloc((size_t)most + 1, sizeof *cells);
    if (!cells) return NULL;
    for (size_t i = 0; i < live->blocks.count; i++) {
        const struct live_found *found = &live->blocks.items[i];
        if (found->cell) cells[found->cell].count += whole_pages(found, page_bytes, &first) > 0;
    }
    *chosen = 0;
    for (uint32_t i = 0; i <= most; i++) {
        cells[i].ahead = cells[i].count;
        *chosen += cells[i].count < OF_CELL_MOST ? cells[i].count : OF_CELL_MOST;
    }
    return cells;
}

static bool look(const struct live_at_start *live, const struct pagemap *pagemap,
                 struct cell_blocks *cells, size_t chosen, struct touched *touched) {
    const uint64_t page_bytes = pagemap->page_bytes;
    const size_t step = chosen / BLOCKS_MOST + 1;
    for (size_t i = 0, number = 0; i < live->blocks.count; i++) {
        const struct live_found *found = &live->blocks.items[i];
        struct cell_blocks *cell = &cells[found->cell];
        uint64_t first, pages = whole_pages(found, page_bytes, &first);
        if (!found->cell || !pages) continue;
        cell->ahead--;
        if (!is_chosen(cell) || number++ % step) continue;
        struct touched_block *block = array_push(&touched->blocks);
        if (!block) return false;
        uint64_t bytes = pagemap_resident_bytes(pagemap, first, first + pages * page_bytes);
        *block = (struct touched_block){found->address, bytes / page_bytes, found->cell};
    }
    return true;
}

bool touched_read(pid_t pid, const struct cairn_header *header, struct touched *touched) {
    struct live_at_start live = {0};
    size_t chosen = 0;
    *touched = (struct touched){0};
    struct pagemap pagemap = pagemap_open(pid);
    bool is_read = pagemap.file >= 0 && live_at_start_read(pid, header, &live);
    struct cell_blocks *cells = is_read ? count_blocks(&live, pagemap.page_bytes, &chosen) : NULL;
    is_read = cells && look(&live, &pagemap, cells, chosen, touched);
    free(cells);
    live_at_start_free(&live);
    pagemap_close(&pagemap);
    if (!is_read) touched_free(touched);
    return is_read;
}

void touched_write(const struct touched *touched, struct frame_writer *writer, uint64_t ms,
                   uint32_t *number) {
    enum { WORDS = 3, ROOM = CAIRN_EVENTS_CHUNK_BYTES / sizeof(uint64_t) };
    uint64_t words[ROOM];
    struct cairn_events_chunk chunk = {
        .slot = CAIRN_SLOT_SHARED, .thread = UINT32_MAX, .start_ms = ms};
    for (size_t i = 0; i < touched->blocks.count;) {
        size_t count = 0;
        for (; i < touched->blocks.count && count < ROOM - WORDS; i++, count += WORDS) {
            const struct touched_block *block = &touched->blocks.items[i];
            words[count] = block->address << CAIRN_EVENT_ADDRESS_SHIFT | CAIRN_EVENT_TOUCHED;
            words[count + 1] = block->pages;
            words[count + 2] = block->cell;
        }
        chunk.number = (*number)++;
        frame_writer_add(writer, &chunk, words, count);
    }
}

void touched_free(struct touched *touched) {
    array_free(&touched->blocks);
}
