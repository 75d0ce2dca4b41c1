// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/windows.h"

#include <stdlib.h>
#include <string.h>

#include "format/live_map.h"
#include "tool/base/search.h"
#include "tool/heap/windows_internal.h"
#include "tool/model/index_table.h"

enum { HEADER = CHUNK_HEADER_BYTES, WORD = 8 };
// Of what may be copied: for windows, large blocks, and blocks that reach out of a window.
enum { PARTS = 16, PARTS_WINDOWS = 8, PARTS_LARGE = 3, PARTS_CROSSING = 2 };
static const uint64_t stretch_bytes = 1ull << LIVE_LEAF_SHIFT, data_bytes_max = 16ull << 20,
                      run_up_bytes = 16 << 10,  // in front of a window, to find chunks in
    crossing_bytes_max = 256 << 10,             // of a block, behind its window
    end_bytes = 16 << 10;                       // of one that has more

static void want(struct drawing *drawing, struct spans *spans, uint64_t start, uint64_t end) {
    const uint64_t page_bytes = drawing_page_bytes(drawing);
    if (!spans_add(spans, round_down(start, page_bytes), round_up(end, page_bytes)))
        drawing->is_bad = true;
}

// Copied, and which of its pages are there.
static void copy(struct drawing *drawing, uint64_t start, uint64_t end) {
    want(drawing, &drawing->windows->copied, start, end);
    want(drawing, &drawing->pages, start, end);
}

// --- drawing

// Puts `wanted` of the items of an array in front, drawn at random.
#define DRAW(array, wanted, seed)                                                                  \
    for (size_t drawn_ = 0; drawn_ < (wanted) && drawn_ < (array)->count; drawn_++) {              \
        size_t other_ = drawn_ + hash_mix(seed, drawn_) % ((array)->count - drawn_);               \
        __typeof__(*(array)->items) item_ = (array)->items[other_];                                \
        (array)->items[other_] = (array)->items[drawn_];                                           \
        (array)->items[drawn_] = item_;                                                            \
    }

// What a window costs: with its slots, or what lies in front of it.
static uint64_t window_cost(const struct drawing *drawing) {
    bool is_wide = drawing->header && drawing->header->slot_bytes == sizeof(uint64_t);
    const uint64_t slots = is_wide ? (WINDOW_BYTES >> LIVE_WIDE_SHIFT) * sizeof(uint64_t)
                                   : (WINDOW_BYTES >> LIVE_NARROW_SHIFT) * sizeof(uint32_t);
    return WINDOW_BYTES +
           (drawing->windows->are_by_map ? slots + 3 * drawing_page_bytes(drawing) : run_up_bytes);
}

// What reaches out of its window: as a whole, or its end, which says where its use ends.
static void copy_crossing(struct drawing *drawing, uint64_t from, uint64_t end) {
    uint64_t bytes = end > from ? end - from : 0;
    if (end > 1ull << LIVE_ADDRESS_BITS_AARCH64 || !bytes) return;
    want(drawing, &drawing->pages, from, end);
    if (bytes > crossing_bytes_max || bytes > drawing->crossing_left) bytes = end_bytes;
    if (bytes > end - from) bytes = end - from;
    if (bytes > drawing->crossing_left) return;
    drawing->crossing_left -= bytes;
    copy(drawing, end - bytes, end);
}

static void copy_slots(struct drawing *drawing, uint64_t start, uint64_t bytes) {
    bool is_wide = drawing->header->slot_bytes == sizeof(uint64_t);
    const unsigned shift = is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
    const uint64_t slot_bytes = is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    const struct block_stretch *items = drawing->heap.block_stretches.items;
    size_t at;
    search_first(at, drawing->heap.block_stretches.count, items[at].start + stretch_bytes > start);
    for (; at < drawing->heap.block_stretches.count && items[at].start <= start; at++) {
        uint64_t first = items[at].slots + ((start - items[at].start) >> shift) * slot_bytes;
        // and the one behind, which may extend the last one
        copy(drawing, first, first + ((bytes >> shift) + 2) * slot_bytes);
        want(drawing, &drawing->pages, items[at].slots,
             items[at].slots + (stretch_bytes >> shift) * slot_bytes);
    }
}

static void take_recorded(struct drawing *drawing, const struct candidate *candidate) {
    const uint64_t start = candidate->start, end = start + WINDOW_BYTES;
    struct heap_window *window = array_push(&drawing->windows->drawn);
    if (window) *window = (struct heap_window){.start = start};
    if (!window) drawing->is_bad = true;
    copy(drawing, start - WORD, end);  // the head of a block at its start is in front of it
    copy_slots(drawing, start, WINDOW_BYTES);
    uint64_t last = candidate->end
                        ? candidate->end
                        : candidate->last + drawing_size_by_head(drawing, candidate->last);
    copy_crossing(drawing, end, last);
}

struct resync windows_resync(const struct heap_window *window, const struct memory_reader *memory) {
    uint64_t start = window->start - run_up_bytes, end = window->start + WINDOW_BYTES;
    if (start < round_up(window->range_start, HEADER))
        start = round_up(window->range_start, HEADER);
    if (end > window->range_end) end = window->range_end;
    return (struct resync){.memory = memory,
                           .start = start,
                           .end = end,
                           .range_start = window->range_start,
                           .range_end = window->range_end,
                           .is_main = window->is_main,
                           .behind = window->behind};
}

static void take_arena(struct drawing *drawing, const struct candidate *candidate) {
    const struct memory_reader memory = drawing_reader(drawing);
    const struct glibc_range *range = NULL;
    for (size_t i = 0; i < drawing->ranges.count; i++)
        if (drawing->ranges.items[i].start < candidate->start + WINDOW_BYTES &&
            drawing->ranges.items[i].end > candidate->start)
            range = &drawing->ranges.items[i];
    struct heap_window *window = range ? array_push(&drawing->windows->drawn) : NULL;
    if (!window) {
        drawing->is_bad = true;
        return;
    }
    *window = (struct heap_window){.start = candidate->start,
                                   .range_start = range->start,
                                   .range_end = range->end,
                                   .is_main = range->is_main};
    const struct resync resync = windows_resync(window, &memory);
    struct resync_found found;
    copy(drawing, resync.start, resync.end);
    if (!resync_find(&resync, &found)) return;
    window->behind = found.behind;
    // with the head of the chunk behind, which says whether the last one is in use
    if (found.behind < range->end) copy_crossing(drawing, resync.end, found.behind + HEADER);
}

static int compare_windows(const void *a, const void *b) {
    const struct heap_window *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static size_t windows_most(const struct drawing *drawing) {
    return drawing->bytes_max / PARTS * PARTS_WINDOWS / window_cost(drawing);
}

static bool draw_windows(struct drawing *drawing) {
    struct heap_windows *windows = drawing->windows;
    size_t wanted = windows_most(drawing);
    windows->window_count = drawing->candidates.count;
    if (wanted > drawing->candidates.count) wanted = drawing->candidates.count;
    DRAW(&drawing->candidates, wanted, windows->seed);
    drawing->crossing_left = drawing->bytes_max / PARTS * PARTS_CROSSING;
    for (size_t i = 0; i < wanted && !drawing->is_bad; i++) {
        if (windows->are_by_map)
            take_recorded(drawing, &drawing->candidates.items[i]);
        else
            take_arena(drawing, &drawing->candidates.items[i]);
    }
    if (windows->drawn.count)
        qsort(windows->drawn.items, windows->drawn.count, sizeof *windows->drawn.items,
              compare_windows);
    for (size_t i = 0; i < windows->drawn.count && !drawing->is_bad; i++) {
        const uint64_t start = windows->drawn.items[i].start;
        drawing->is_bad = !spans_add(&windows->begins, start, start + WINDOW_BYTES);
    }
    return !drawing->is_bad;
}

static bool is_zero(const uint8_t *bytes, uint64_t size) {
    return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

// The last of its pages that are there, back to one that is in use now: they say where its use
// ends.
static void copy_end(struct drawing *drawing, const struct large_block *block, uint64_t most,
                     uint8_t *page) {
    const uint64_t page_bytes = drawing_page_bytes(drawing),
                   first = round_down(block->address, page_bytes);
    uint64_t copied = 0, end = round_up(block->address + block->size, page_bytes);
    for (bool is_used = false; end > first && copied < most && !is_used; end -= page_bytes) {
        // others may lie on its first and last page
        uint64_t from = end - page_bytes, to = end;
        uint8_t flags;
        pagemap_flags(&drawing->remote->pagemap, from, 1, &flags);
        if (!(flags & (PAGE_RESIDENT | PAGE_OWN))) continue;
        copy(drawing, from, to);
        copied += page_bytes;
        if (from < block->address) from = block->address;
        if (to > block->address + block->size) to = block->address + block->size;
        is_used = remote_read(drawing->remote, from, page, to - from) && !is_zero(page, to - from);
    }
    drawing->large_left -= copied;
}

static int compare_large(const void *a, const void *b) {
    const struct large_block *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

static int by_size(const void *a, const void *b) {
    const struct large_block *left = a, *right = b;
    if (left->size != right->size) return left->size < right->size ? -1 : 1;
    return compare_large(a, b);
}

static bool draw_large(struct drawing *drawing) {
    struct heap_windows *windows = drawing->windows;
    const uint64_t least = 3 * drawing_page_bytes(drawing);
    uint8_t *page = malloc(drawing_page_bytes(drawing));
    drawing->large_left = drawing->bytes_max / PARTS * PARTS_LARGE;
    // and what windows do not need
    drawing->large_left += (windows_most(drawing) - windows->drawn.count) * window_cost(drawing);
    if (!page) return false;
    size_t wanted = drawing->large.count;
    for (size_t i = 0; i < wanted; i++) windows->large_bytes += drawing->large.items[i].size;
    windows->large_count = wanted;
    if (wanted > drawing->large_left / least) wanted = drawing->large_left / least;
    drawing->large_left -= wanted * least / 2;  // for heads and slots
    DRAW(&drawing->large, wanted, ~windows->seed);
    if (wanted) qsort(drawing->large.items, wanted, sizeof *drawing->large.items, by_size);
    for (size_t i = 0; i < wanted && !drawing->is_bad; i++) {
        const struct large_block *block = &drawing->large.items[i];
        struct large_block *slot = array_push(&windows->large);
        if (slot) *slot = *block;
        if (!slot || !spans_add(&windows->begins, block->address, block->address + 1))
            drawing->is_bad = true;
        want(drawing, &drawing->pages, block->address - HEADER, block->address + block->size);
        copy(drawing, block->address - HEADER, block->address);
        if (windows->are_by_map)
            copy_slots(drawing, round_down(block->address, 1 << LIVE_NARROW_SHIFT),
                       1 << LIVE_NARROW_SHIFT);
        // what one does not need is for those behind it
        copy_end(drawing, block, drawing->large_left / (wanted - i), page);
    }
    free(page);
    if (windows->large.count)
        qsort(windows->large.items, windows->large.count, sizeof *windows->large.items,
              compare_large);
    return !drawing->is_bad;
}

// --- the plan

static void copy_map(struct drawing *drawing) {
    const struct cairn_header *header = drawing->header;
    uint64_t tops[2 * LIVE_TOP_COUNT] = {0};
    const size_t count =
        header->slot_bytes == sizeof(uint64_t) ? 2 * LIVE_TOP_COUNT : LIVE_TOP_COUNT;
    remote_read_present(drawing->remote, header->live_map, tops, count * sizeof *tops);
    copy(drawing, header->live_map, header->live_map + count * sizeof *tops);
    for (size_t i = 0; i < count; i++)
        if (tops[i]) copy(drawing, tops[i], tops[i] + LIVE_MID_COUNT * sizeof *tops);
}

static void add_piece(struct drawing *drawing, const struct piece *piece) {
    struct piece *slot = array_push(&drawing->plan->pieces);
    if (slot) *slot = *piece;
    if (!slot) drawing->is_bad = true;
}

// What names types: constants of modules as they are, and an allocator's own variables.
static void add_modules(struct drawing *drawing, const struct extents *extents) {
    for (size_t i = 0; i < drawing->heap.pieces.count; i++)
        if (drawing->heap.pieces.items[i].kind == PIECE_CONSTANT)
            add_piece(drawing, &drawing->heap.pieces.items[i]);
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct extent *extent = &extents->items.items[i];
        if (extent->kind == EXTENT_DATA && extent->end - extent->start <= data_bytes_max)
            add_piece(drawing, &(struct piece){extent->start, extent->end, PIECE_WHOLE, false});
    }
}

static int compare_pieces(const void *a, const void *b) {
    const struct piece *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Ascending and apart: what lies beside a module's data may share a page with it.
static void part_pieces(struct plan *plan) {
    struct piece *items = plan->pieces.items;
    if (plan->pieces.count) qsort(items, plan->pieces.count, sizeof *items, compare_pieces);
    for (size_t i = 1; i < plan->pieces.count; i++) {
        if (items[i].start >= items[i - 1].end) continue;
        if (items[i].kind == PIECE_HEADS)
            items[i].start = items[i - 1].end < items[i].end ? items[i - 1].end : items[i].end;
        else
            items[i - 1].end = items[i].start;
    }
}

static void add_head_pages(struct drawing *drawing) {
    const struct spans *copied = &drawing->windows->copied;
    for (size_t i = 0; i < copied->items.count; i++)
        for (uint64_t at = copied->items.items[i].start; at < copied->items.items[i].end;
             at += drawing_page_bytes(drawing)) {
            uint64_t *slot = array_push(&drawing->plan->head_pages);
            if (slot) *slot = at;
            if (!slot) drawing->is_bad = true;
        }
}

static bool make_plan(struct drawing *drawing, const struct extents *extents) {
    if (drawing->windows->are_by_map) copy_map(drawing);
    spans_settle(&drawing->pages);
    spans_settle(&drawing->windows->copied);
    spans_settle(&drawing->windows->begins);
    for (size_t i = 0; i < drawing->pages.items.count; i++) {
        const struct span *span = &drawing->pages.items.items[i];
        add_piece(drawing, &(struct piece){span->start, span->end, PIECE_HEADS, false});
    }
    add_modules(drawing, extents);
    add_head_pages(drawing);
    part_pieces(drawing->plan);
    return !drawing->is_bad;
}

static uint64_t own_bytes(const struct drawing *drawing, uint64_t start, uint64_t end) {
    const uint64_t page_bytes = drawing_page_bytes(drawing);
    uint64_t bytes = 0;
    for (uint64_t at = start; at < end; at += page_bytes) {
        uint8_t flags;
        pagemap_flags(&drawing->remote->pagemap, at, 1, &flags);
        if (flags & PAGE_OWN) bytes += page_bytes;
    }
    return bytes;
}

// Data of modules is copied in any case (add_modules): what of it finds no room beside the parts
// that are drawn is taken from them, but for half of all.
static void leave_room_for_modules(struct drawing *drawing, const struct extents *extents) {
    const uint64_t beside =
        drawing->bytes_max / PARTS * (PARTS - PARTS_WINDOWS - PARTS_LARGE - PARTS_CROSSING);
    uint64_t bytes = 0, most = drawing->bytes_max / 2;
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct extent *extent = &extents->items.items[i];
        if (extent->kind == EXTENT_DATA && extent->end - extent->start <= data_bytes_max)
            bytes += own_bytes(drawing, extent->start, extent->end);
    }
    if (bytes > beside) drawing->bytes_max -= bytes - beside < most ? bytes - beside : most;
}

bool windows_draw(const struct remote *remote, const struct cairn_header *header,
                  uint64_t bytes_max, uint64_t seed, struct heap_windows *windows,
                  struct plan *plan, struct error *error) {
    struct extents extents = {0};
    struct drawing drawing = {.remote = remote,
                              .header = header,
                              .windows = windows,
                              .plan = plan,
                              .bytes_max = bytes_max};
    *windows = (struct heap_windows){.seed = seed, .are_drawn = true};
    bool is_ok = plan_make(remote, header, PLAN_HEAP, &drawing.heap, error) &&
                 extents_of_process(remote->pid, &extents, error);
    if (is_ok) leave_room_for_modules(&drawing, &extents);
    windows->are_by_map = is_ok && header && drawing.heap.block_stretches.count;
    if (is_ok)
        is_ok = ((windows->are_by_map ? drawing_scan_map(&drawing)
                                      : drawing_scan_arenas(&drawing, &extents)) &&
                 draw_windows(&drawing) && draw_large(&drawing) && make_plan(&drawing, &extents)) ||
                error_set(error, "out of memory");
    plan_free(&drawing.heap);
    spans_free(&drawing.pages);
    array_free(&extents.items);
    array_free(&drawing.candidates);
    array_free(&drawing.ranges);
    array_free(&drawing.large);
    return is_ok;
}

void windows_free(struct heap_windows *windows) {
    array_free(&windows->drawn);
    array_free(&windows->large);
    spans_free(&windows->copied);
    spans_free(&windows->begins);
    *windows = (struct heap_windows){0};
}

size_t windows_unit_of(const struct heap_windows *windows, uint64_t address) {
    size_t at;
    search_first(at, windows->large.count, windows->large.items[at].address >= address);
    if (at < windows->large.count && windows->large.items[at].address == address)
        return windows->drawn.count + at;
    search_first(at, windows->drawn.count, windows->drawn.items[at].start > address);
    bool is_inside = at && address - windows->drawn.items[at - 1].start < WINDOW_BYTES;
    return is_inside ? at - 1 : SIZE_MAX;
}
