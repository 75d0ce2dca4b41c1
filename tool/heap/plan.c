// SPDX-License-Identifier: Apache-2.0
#include "tool/heap/plan.h"

#include <stdlib.h>
#include <string.h>

#include "format/live_map.h"
#include "format/sample.h"
#include "tool/base/search.h"
#include "tool/glibc/arenas.h"
#include "tool/glibc/chunks.h"
#include "tool/proc/maps.h"
#include "tool/proc/pagemap.h"
#include "tool/proc/remote.h"

enum {
    HEADER = CHUNK_HEADER_BYTES,
    // Pages whose heads a search reads in all; fewer where the map has the sizes of blocks.
    SEARCHED_MAX = 1 << 20,
    SEARCHED_WITH_SIZES = 8192,
};
static const uint64_t stretch_bytes = 1ull << LIVE_LEAF_SHIFT, data_bytes_max = 64ull << 20,
                      extent_bytes_max = 1ull << 40;
static const uint64_t aligned_most = 2ull << 20;  // larger alignments have pages of their own

struct planning {
    const struct remote *remote;
    struct plan *plan;
    enum piece_kind chunks;  // kind of pieces of glibc's arenas
    bool has_sizes;          // blocks tell their sizes in the map: their heads are not needed
    unsigned searched_left;
    uint64_t reach;         // of blocks that begin in the extent: what lies behind it without a gap
    uint64_t blocks_until;  // the end of the last one with a mapping of its own
    bool is_code;           // what is added now
    bool is_bad;            // no memory
};

static uint64_t page_size(const struct planning *planning) {
    return planning->remote->pagemap.page_bytes;
}

static void add_piece(struct planning *planning, uint64_t start, uint64_t end,
                      enum piece_kind kind) {
    const uint64_t page_bytes = page_size(planning), mask = ~(page_bytes - 1);
    struct piece *slot = array_push(&planning->plan->pieces);
    if (!slot) planning->is_bad = true;
    if (slot)
        *slot =
            (struct piece){start & mask, (end + page_bytes - 1) & mask, kind, planning->is_code};
}

static void add_number(struct planning *planning, uint64_t **items, size_t *count, size_t *capacity,
                       uint64_t number) {
    if (array_make_room((void **)items, capacity, *count, sizeof number))
        (*items)[(*count)++] = number;
    else
        planning->is_bad = true;
}

// --- the map of live blocks

static uint64_t *read_words(const struct planning *planning, uint64_t address, size_t count) {
    uint64_t *words = malloc(count * sizeof *words);
    if (words) remote_read_present(planning->remote, address, words, count * sizeof *words);
    return words;
}

// The slots of a stretch.
static void add_leaf(struct planning *planning, uint64_t origin, uint64_t start, bool is_wide,
                     uint64_t odd) {
    struct plan *plan = planning->plan;
    const uint64_t slot_bytes = is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    const unsigned shift = is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
    uint64_t first = origin + (start >> shift) * slot_bytes;
    uint64_t bytes = (stretch_bytes >> shift) * slot_bytes;
    add_piece(planning, first, first + bytes, PIECE_WHOLE);
    struct block_stretch *stretch = array_push(&plan->block_stretches);
    if (stretch) *stretch = (struct block_stretch){start, first, odd};
    if (!stretch) planning->is_bad = true;
}

static void add_mid(struct planning *planning, uint64_t mid, uint32_t top, bool is_wide) {
    uint64_t *origins = read_words(planning, mid, LIVE_MID_COUNT);
    if (!origins) planning->is_bad = true;
    add_piece(planning, mid, mid + LIVE_MID_COUNT * sizeof *origins, PIECE_WHOLE);
    const uint64_t odd = top >= LIVE_TOP_COUNT ? sizeof(uint64_t) : 0;
    for (uint64_t i = 0; origins && i < LIVE_MID_COUNT; i++) {
        uint64_t start = (uint64_t)(top % LIVE_TOP_COUNT) << LIVE_MID_SHIFT | i << LIVE_LEAF_SHIFT;
        if (origins[i]) add_leaf(planning, origins[i], start, is_wide, odd);
    }
    free(origins);
}

// Places without blocks share one mid that stays empty.
static void add_live_map(struct planning *planning, const struct cairn_header *header) {
    bool is_wide = header->slot_bytes == sizeof(uint64_t);
    uint32_t count = is_wide ? 2 * LIVE_TOP_COUNT : LIVE_TOP_COUNT;
    uint64_t *tops = read_words(planning, header->live_map, count), empty = 0;
    if (!tops) planning->is_bad = true;
    add_piece(planning, header->live_map, header->live_map + count * sizeof *tops, PIECE_WHOLE);
    for (uint32_t i = 0; tops && i < count; i++) {
        size_t before = planning->plan->block_stretches.count;
        if (!tops[i] || tops[i] == empty) continue;
        add_mid(planning, tops[i], i, is_wide);
        if (planning->plan->block_stretches.count == before) empty = tops[i];
    }
    free(tops);
}

// The table of the samples that live.
static void add_samples(struct planning *planning, uint64_t address) {
    const uint64_t most = 1 << 24;
    struct cairn_live_samples table;
    if (!remote_read_present(planning->remote, address, &table, sizeof table) || table.count > most)
        return;
    add_piece(planning, address, address + sizeof table, PIECE_WHOLE);
    add_piece(planning, table.keys, table.keys + table.count * sizeof(uint64_t), PIECE_WHOLE);
    add_piece(planning, table.entries,
              table.entries + table.count * sizeof(struct cairn_live_sample), PIECE_WHOLE);
}

static int compare_stretches(const void *a, const void *b) {
    const struct block_stretch *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (left->odd > right->odd) - (left->odd < right->odd);
}

static bool has_blocks(const struct plan *plan, uint64_t start, uint64_t end) {
    size_t low;
    search_first(low, plan->block_stretches.count,
                 plan->block_stretches.items[low].start + stretch_bytes > start);
    return low < plan->block_stretches.count && plan->block_stretches.items[low].start < end;
}

// --- glibc's own

// Bytes of the heap that begins there; 0: none does.
static uint64_t arena_heap_bytes(const struct planning *planning, const struct page_head *head,
                                 uint64_t end) {
    struct arena_heap heap;
    uint64_t owner;
    memcpy(&heap, head->words, sizeof heap);
    if (!arena_heap_is_valid(&heap, head->address, end)) return 0;
    uint64_t first = heap.arena / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES;
    bool is_owned =
        first == head->address ||
        (remote_read_present(planning->remote, first, &owner, sizeof owner) && owner == heap.arena);
    return is_owned ? heap.bytes : 0;
}

// The pages that its head may lie on: an aligned block has it in front of its own place.
static void add_heads(struct planning *planning, uint64_t at, uint64_t size) {
    struct plan *plan = planning->plan;
    const uint64_t page_bytes = page_size(planning);
    uint64_t last = at;
    add_number(planning, &plan->head_pages.items, &plan->head_pages.count,
               &plan->head_pages.capacity, at);
    for (uint64_t align = 2 * page_bytes; align <= aligned_most && align < size; align *= 2) {
        uint64_t page = ((at + HEADER + align - 1) / align * align - HEADER) & ~(page_bytes - 1);
        if (page == last || page >= at + size) continue;
        last = page;
        add_number(planning, &plan->head_pages.items, &plan->head_pages.count,
                   &plan->head_pages.capacity, page);
    }
}

// A stretch of blocks without a gap.
struct stretch {
    uint64_t start, end;
};

static void end_stretch(struct planning *planning, struct stretch *stretch) {
    if (stretch->end > stretch->start)
        add_piece(planning, stretch->start, stretch->end, PIECE_HEADS);
    stretch->start = stretch->end;
}

static void note_place(struct planning *planning, uint64_t at) {
    struct plan *plan = planning->plan;
    if (!plan->is_searched)
        add_number(planning, &plan->places.items, &plan->places.count, &plan->places.capacity, at);
}

// What begins at a page of an extent; returns where to look next.
static uint64_t add_at(struct planning *planning, const struct page_head *head,
                       const struct extent *extent, struct stretch *stretch) {
    uint64_t at = head->address, size = arena_heap_bytes(planning, head, extent->end);
    if (size) {
        note_place(planning, at);
        add_piece(planning, at, at + size, planning->chunks);
        return at + size;
    }
    // a block that does not begin where one is expected has the usual size at least
    bool is_expected = at == extent->start || at == stretch->end;
    const uint64_t page_bytes = page_size(planning);
    size = chunk_mapped_bytes(head->words, page_bytes,
                              is_expected ? page_bytes : CHUNK_MAPPED_LEAST, planning->reach - at);
    if (!size) return at + page_bytes;
    if (at != stretch->end) {
        end_stretch(planning, stretch);
        stretch->start = at;
    }
    stretch->end = planning->blocks_until = at + size;
    note_place(planning, at);
    add_heads(planning, at, size);
    return stretch->end;
}

// Where to look next, if not everywhere: the kernel puts a new mapping in front of others or into a
// gap, so that a new block begins an extent, or follows another.
static uint64_t next_place(const struct plan *plan, uint64_t at) {
    uint64_t heap = (at + ARENA_HEAP_BYTES - 1) / ARENA_HEAP_BYTES * ARENA_HEAP_BYTES;
    size_t next;
    search_first(next, plan->places.count, plan->places.items[next] >= at);
    bool is_nearer = next < plan->places.count && plan->places.items[next] < heap;
    return is_nearer ? plan->places.items[next] : heap;
}

static void add_heaps(struct planning *planning, const struct extent *extent) {
    struct page_heads heads;
    struct stretch stretch = {0};
    for (uint64_t at = extent->start, next; at < extent->end;) {
        bool is_search = planning->searched_left;
        page_heads_read(&heads, planning->remote, PAGE_OWN, at,
                        is_search ? extent->end : at + page_size(planning));
        next = at;
        for (size_t i = 0; i < heads.count; i++) {
            if (heads.items[i].address < next) continue;
            if (is_search && planning->searched_left) planning->searched_left--;
            next = add_at(planning, &heads.items[i], extent, &stretch);
        }
        bool is_found = next > heads.end || (next > at && next == stretch.end);
        at = next > heads.end ? next : heads.end;
        if (!is_search && !is_found) at = next_place(planning->plan, at);
    }
    end_stretch(planning, &stretch);
}

// A block that began before reaches into the extent, or past it, where madvise cut its mapping.
static void add_memory(struct planning *planning, const struct extent *whole) {
    struct extent extent = *whole;
    size_t before = planning->plan->pieces.count;
    if (extent.end - extent.start > extent_bytes_max) return;  // address space, no heap
    if (extent.start < planning->blocks_until) extent.start = planning->blocks_until;
    if (extent.start >= extent.end) return;
    add_heaps(planning, &extent);
    bool is_found = planning->plan->pieces.count > before;
    if (planning->has_sizes && !is_found && has_blocks(planning->plan, extent.start, extent.end))
        add_piece(planning, extent.start, extent.end, PIECE_PAGES);
}

// What a module's words lead to: its headers, and what the dynamic linker changed before it became
// constant. The rest is as in the module's file.
static void add_constants(struct planning *planning, const struct extent *extent) {
    const uint64_t page_bytes = page_size(planning);
    size_t count = (extent->end - extent->start) / page_bytes;
    uint8_t *flags = malloc(count + 1);
    if (!flags) planning->is_bad = true;
    if (flags) pagemap_flags(&planning->remote->pagemap, extent->start, count, flags);
    if (flags && !extent->offset && flags[0])
        add_piece(planning, extent->start, extent->start + page_bytes, PIECE_CONSTANT);
    for (size_t i = 0, from; flags && i < count; i++) {
        if (!(flags[i] & PAGE_OWN)) continue;
        for (from = i; i < count && flags[i] & PAGE_OWN;) i++;
        add_piece(planning, extent->start + from * page_bytes, extent->start + i * page_bytes,
                  PIECE_CONSTANT);
    }
    free(flags);
}

static void add_of_heap(struct planning *planning, const struct extent *extent) {
    bool is_small = extent->end - extent->start <= data_bytes_max;
    if (extent->kind == EXTENT_MEMORY)
        add_memory(planning, extent);
    else if (extent->kind == EXTENT_CONSTANT && is_small)
        add_constants(planning, extent);
    else if (extent->kind == EXTENT_BREAK)
        add_piece(planning, extent->start, extent->end, planning->chunks);
    else if (extent->kind == EXTENT_DATA && is_small)
        add_piece(planning, extent->start, extent->end, PIECE_WHOLE);
}

// The recording is read by its own way.
static bool is_recording(const struct extent *extent, const struct cairn_header *header) {
    return header && extent->start >= header->self_address &&
           extent->start < header->self_address + header->mapped_bytes;
}

static void add_of_all(struct planning *planning, const struct extent *extent) {
    enum piece_kind kind = extent->kind == EXTENT_OTHER ? PIECE_PRESENT : PIECE_WHOLE;
    uint64_t at = extent->start;
    struct span gap;
    if (extent->end - at > extent_bytes_max) return;  // address space
    if (extent->kind == EXTENT_CONSTANT) return add_constants(planning, extent);
    while (spans_gap(&planning->plan->hidden, &at, extent->end, &gap))
        add_piece(planning, gap.start, gap.end, kind);
}

// Finds the end of memory without a gap that begins with this extent.
static uint64_t reach_of(const struct extents *extents, size_t number) {
    const struct extent *items = extents->items.items;
    while (number + 1 < extents->items.count && items[number + 1].kind == EXTENT_MEMORY &&
           items[number + 1].start == items[number].end)
        number++;
    return items[number].end;
}

static void add_extents(struct planning *planning, const struct extents *extents,
                        const struct cairn_header *header, enum plan_scope scope) {
    for (size_t i = 0; i < extents->items.count; i++) {
        const struct extent *extent = &extents->items.items[i];
        planning->is_code = extent->is_code;
        if (planning->reach < extent->end) planning->reach = reach_of(extents, i);
        if (scope != PLAN_ALL)
            add_of_heap(planning, extent);
        else if (!is_recording(extent, header))
            add_of_all(planning, extent);
    }
}

// --- all of it

static int compare_pieces(const void *a, const void *b) {
    const struct piece *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

// Pieces that overlap become one. Those that only touch do not: a heap begins where its piece does.
static void join_pieces(struct plan *plan) {
    size_t kept = 0;
    struct piece *items = plan->pieces.items;
    if (plan->pieces.count) qsort(items, plan->pieces.count, sizeof *items, compare_pieces);
    for (size_t i = 0; i < plan->pieces.count; i++) {
        struct piece *last = kept ? &items[kept - 1] : NULL;
        if (!last || items[i].start >= last->end) {
            items[kept++] = items[i];
            continue;
        }
        if (items[i].end > last->end) last->end = items[i].end;
        if (items[i].kind > last->kind) last->kind = items[i].kind;
        last->is_code = last->is_code && items[i].is_code;
    }
    plan->pieces.count = kept;
}

bool plan_make(const struct remote *remote, const struct cairn_header *header,
               enum plan_scope scope, struct plan *plan, struct error *error) {
    struct extents extents = {0};
    struct planning planning = {
        .remote = remote, .plan = plan, .chunks = scope == PLAN_HEADS ? PIECE_CHUNKS : PIECE_WHOLE};
    plan->pieces.count = plan->head_pages.count = plan->block_stretches.count = 0;
    bool is_ok = extents_of_process(remote->pid, &extents, error);
    if (is_ok && header) {
        planning.has_sizes = header->slot_bytes == sizeof(uint64_t);
        add_live_map(&planning, header);
        if (header->live_samples) add_samples(&planning, header->live_samples);
        if (plan->block_stretches.count)
            qsort(plan->block_stretches.items, plan->block_stretches.count,
                  sizeof *plan->block_stretches.items, compare_stretches);
    }
    if (!plan->is_searched)
        planning.searched_left = planning.has_sizes ? SEARCHED_WITH_SIZES : SEARCHED_MAX;
    if (is_ok) add_extents(&planning, &extents, header, scope);
    plan->is_searched = true;
    array_free(&extents.items);
    if (is_ok) join_pieces(plan);
    return is_ok && (!planning.is_bad || error_set(error, "out of memory"));
}

bool plan_find_hidden(struct plan *plan, pid_t pid, struct error *error) {
    struct maps maps;
    struct mapping mapping;
    bool is_ok = true;
    if (!maps_open(&maps, pid, "smaps", error)) return false;
    while (is_ok && maps_next(&maps, &mapping))
        if (mapping.is_undumped) is_ok = spans_add(&plan->hidden, mapping.start, mapping.end);
    maps_close(&maps);
    spans_settle(&plan->hidden);
    return is_ok || error_set(error, "out of memory");
}

void plan_free(struct plan *plan) {
    array_free(&plan->pieces);
    array_free(&plan->head_pages);
    array_free(&plan->block_stretches);
    spans_free(&plan->hidden);
    array_free(&plan->places);
}
