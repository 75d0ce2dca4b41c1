// SPDX-License-Identifier: Apache-2.0
// Of each cell it is counted how many pages at each part of a block's length were resident. That is
// how likely a block is written to that far, and so each block of the cell gets a length: where
// half of them are filled and half are never used, so are those of the replay.
#include "tool/replay/touch.h"

#include <stdlib.h>

static const uint64_t block_bytes_most = UINT64_C(1) << 40;  // that is followed
enum {
    PAGES_AT_ONCE = 32,
    PAGES_SHIFT = 5,
    PIECES_MOST = 64,       // of a block that are counted one by one
    BLOCKS_MOST = 1 << 21,  // that are remembered
    YOUNG_MS = 1,           // a block that was just allocated is not written to yet
};

struct touch_cell {
    // Pages that were seen, and of these resident: of blocks in new places, and of any.
    float pages[2][TOUCH_PARTS], resident[2][TOUCH_PARTS];
};
enum { ANYWHERE, NEW_PLACE };

struct touch_block {
    uint64_t number, size;
    uint64_t first;  // where its first whole page begins
    uint64_t pages, resident;
    uint32_t cell;
    bool is_new;  // in its place was no block before
};

// --- places that are new

static uint64_t page_up(const struct touch *touch, uint64_t address) {
    return (address + touch->page_bytes - 1) / touch->page_bytes;
}

// Bits of the pages from `page` up to `end` that lie in the same 32.
static uint32_t bits_of(uint64_t page, uint64_t end) {
    uint32_t first = page % PAGES_AT_ONCE;
    uint64_t count = end - page < PAGES_AT_ONCE - first ? end - page : PAGES_AT_ONCE - first;
    return (uint32_t)(((UINT64_C(1) << count) - 1) << first);
}

static bool is_covered(const struct touch *touch, uint64_t page, uint64_t end) {
    for (; page < end; page = (page / PAGES_AT_ONCE + 1) * PAGES_AT_ONCE)
        if (turns_of(&touch->covered, page >> PAGES_SHIFT) & bits_of(page, end)) return true;
    return false;
}

static bool cover(struct touch *touch, uint64_t page, uint64_t end) {
    for (; page < end; page = (page / PAGES_AT_ONCE + 1) * PAGES_AT_ONCE) {
        uint32_t were = turns_of(&touch->covered, page >> PAGES_SHIFT);
        uint32_t more = bits_of(page, end) & ~were;
        if (more && !turns_set(&touch->covered, page >> PAGES_SHIFT, were | more)) return false;
    }
    return true;
}

// A block that grew where it is has its old part, which is new if it was. What a damaged log says
// is larger than any heap is not followed page by page.
bool touch_follow(struct touch *touch, struct live_block *block, const struct live_block *freed) {
    const uint64_t start = block->address, end = start + block->size;
    if (block->size > block_bytes_most) return true;
    uint64_t first = page_up(touch, start), last = end / touch->page_bytes;
    bool is_same = freed && freed->address == start && first < last;
    if (is_same) first = page_up(touch, start + freed->size);
    block->is_marked = !touch->is_late && (!is_same || freed->is_marked) &&
                       (first >= last || !is_covered(touch, first, last));
    return cover(touch, start / touch->page_bytes, page_up(touch, end ? end : 1));
}

// --- what was seen

static struct touch_cell *cell_of(struct touch *touch, uint32_t cell) {
    uint32_t entry = turns_of(&touch->cells, cell);
    if (entry) return &touch->seen.items[entry - 1];
    struct touch_cell *added = array_push(&touch->seen);
    if (!added || !turns_set(&touch->cells, cell, (uint32_t)touch->seen.count)) return NULL;
    *added = (struct touch_cell){0};
    return added;
}

static void note_page(struct touch_cell *cell, int part, bool is_new, bool is_resident,
                      double weight) {
    for (int place = ANYWHERE; place <= (is_new ? NEW_PLACE : ANYWHERE); place++) {
        cell->pages[place][part] += (float)weight;
        cell->resident[place][part] += is_resident ? (float)weight : 0;
    }
}

// Pages of a block that are resident are taken for its first ones.
static void note_block(const struct touch *touch, struct touch_cell *cell,
                       const struct touch_block *block) {
    const uint64_t step = block->pages / PIECES_MOST + 1, page_bytes = touch->page_bytes;
    const uint64_t last_start = block->size > page_bytes ? block->size - page_bytes : 1;
    for (uint64_t i = 0; i < block->pages; i += step) {
        uint64_t part = (block->first + i * page_bytes) * TOUCH_PARTS / last_start;
        if (part >= TOUCH_PARTS) part = TOUCH_PARTS - 1;
        note_page(cell, (int)part, block->is_new, i < block->resident, (double)step);
    }
}

static int by_number(const void *left, const void *right) {
    const struct touch_block *a = left, *b = right;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->resident < b->resident) - (a->resident > b->resident);
}

// Of looks at the same block the one that saw most stays: it is filled as time goes.
static void sort_blocks(struct touch *touch) {
    struct touch_block *blocks = touch->blocks.items;
    size_t kept = 0;
    if (!touch->blocks.count) return;
    qsort(blocks, touch->blocks.count, sizeof *blocks, by_number);
    for (size_t i = 1; i < touch->blocks.count; i++)
        if (blocks[i].number != blocks[kept].number) blocks[++kept] = blocks[i];
    touch->blocks.count = kept + 1;
}

static bool look_at_block(struct touch *touch, const struct event *event,
                          const struct live_block *block) {
    const uint64_t first = page_up(touch, block->address);
    const uint64_t end = (block->address + block->size) / touch->page_bytes;
    if (end <= first) return true;
    if (touch->blocks.count == BLOCKS_MOST) sort_blocks(touch);
    if (touch->blocks.count == BLOCKS_MOST) return true;
    struct touch_block *seen = array_push(&touch->blocks);
    if (!seen) return false;
    *seen = (struct touch_block){.number = block->number,
                                 .size = block->size,
                                 .first = first * touch->page_bytes - block->address,
                                 .pages = end - first,
                                 .resident = event->size < end - first ? event->size : end - first,
                                 .cell = block->cell,
                                 .is_new = block->is_marked};
    return true;
}

static bool look_at_cell(struct touch *touch, const struct event *event) {
    struct touch_cell *cell = cell_of(touch, event->cell);
    for (int part = 0; cell && part < TOUCH_PARTS; part++) {
        cell->pages[ANYWHERE][part] += (float)event->address;
        cell->resident[ANYWHERE][part] += (float)event->size;
    }
    return cell;
}

bool touch_look(struct touch *touch, const struct event *event, const struct live_block *block) {
    if (event_kind(event) == CAIRN_EVENT_RESIDENT) return look_at_cell(touch, event);
    if (!block || block->cell != event->cell || block->ms + YOUNG_MS >= event->ms) return true;
    return look_at_block(touch, event, block);
}

// --- what follows from it

bool touch_end(struct touch *touch) {
    sort_blocks(touch);
    turns_free(&touch->covered);
    for (size_t i = 0; i < touch->blocks.count; i++) {
        struct touch_cell *cell = cell_of(touch, touch->blocks.items[i].cell);
        if (!cell) return false;
        note_block(touch, cell, &touch->blocks.items[i]);
    }
    return true;
}

bool touch_is_known(const struct touch *touch) {
    return touch->seen.count > 0;
}

// A block that was looked at itself, in a place that was new.
static bool find_block(struct touch *touch, uint64_t number, uint64_t *bytes) {
    size_t *next = &touch->next_block;
    while (*next < touch->blocks.count && touch->blocks.items[*next].number < number) ++*next;
    if (*next == touch->blocks.count || touch->blocks.items[*next].number != number) return false;
    const struct touch_block *block = &touch->blocks.items[*next];
    *bytes = block->resident ? block->first + block->resident * touch->page_bytes : 0;
    if (block->resident == block->pages) *bytes = block->size;
    return block->is_new;
}

// Numbers that lie as if they were drawn, from 0 up to 1.
static double drawn(uint64_t number) {
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    enum { BITS = 24 };
    number = (number ^ number >> 15) * factor;
    number = (number ^ number >> 29) * factor;
    return (double)(number >> (64 - BITS)) / (1 << BITS);
}

// A part of which no page was seen is as the one before it, or as the first one that was.
static int parts_of(const struct touch_cell *cell, uint64_t number, bool *is_anywhere) {
    const double least = drawn(number);
    int place = ANYWHERE, parts = 0, unknown = 0;
    for (int part = 0; part < TOUCH_PARTS; part++)
        if (cell->pages[NEW_PLACE][part] > 0) place = NEW_PLACE;
    bool is_touched = false, is_first = true;
    *is_anywhere = place == ANYWHERE;
    for (int part = 0; part < TOUCH_PARTS; part++) {
        double pages = (double)cell->pages[place][part];
        bool is_known = pages > 0;
        if (is_known) is_touched = (double)cell->resident[place][part] / pages > least;
        unknown += is_first && !is_known;
        parts += is_touched ? 1 + (is_first ? unknown : 0) : 0;
        is_first &= !is_known;
    }
    return parts;
}

bool touch_bytes(struct touch *touch, uint64_t number, const struct event *event, uint64_t *bytes,
                 bool *is_assumed) {
    *is_assumed = false;
    if (event->size < touch->page_bytes) return false;
    if (find_block(touch, number, bytes)) return true;
    uint32_t entry = turns_of(&touch->cells, event->cell);
    if (!entry) return false;
    int parts = parts_of(&touch->seen.items[entry - 1], number, is_assumed);
    *bytes = parts == TOUCH_PARTS
                 ? event->size
                 : (event->size - touch->page_bytes) / TOUCH_PARTS * (uint64_t)parts;
    return true;
}

void touch_free(struct touch *touch) {
    turns_free(&touch->covered);
    turns_free(&touch->cells);
    array_free(&touch->seen);
    array_free(&touch->blocks);
}
