// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/heap_stacks.h"

#include "format/format.h"
#include "runtime/api/heap_points.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/sys.h"

struct known {
    uint64_t key;
    uint32_t entry;
};

static struct region entries;

struct region *heap_stacks_region(void) {
    entries = sink_region(CAIRN_SECTION_HEAP_STACKS);
    return &entries;
}

static struct cairn_heap_stack *entry_at(uint32_t number) {
    return (struct cairn_heap_stack *)entries.base + number;
}

bool heap_stacks_open(struct heap_stacks *stacks, uint32_t scope) {
    stacks->scope = scope;
    stacks->points = heap_points_make(scope);
    return addresses_open(&stacks->known, sizeof(struct known));
}

static uint32_t make(uint32_t cell, uint32_t scope) {
    struct cairn_heap_stack *entry = entries.base ? region_take(&entries, sizeof *entry) : NULL;
    if (entry && entry == entry_at(0)) entry = region_take(&entries, sizeof *entry);  // 0 is none
    if (!entry) return 0;
    uint32_t number = (uint32_t)(entry - entry_at(0));
    entry->cell = cell;
    entry->scope = scope;
    __atomic_store_n(&entry->is_ready, 1, __ATOMIC_RELEASE);
    return number;
}

uint32_t heap_stacks_find(struct heap_stacks *stacks, uint32_t cell, uint32_t scope) {
    const unsigned half = 32;
    struct known *known = addresses_add(&stacks->known, (uint64_t)cell << half | scope);
    if (known && !known->entry) known->entry = make(cell, scope);
    return known ? known->entry : 0;
}

static uint64_t held(const struct cairn_heap_stack *entry) {
    return entry->allocated_bytes - entry->freed_bytes;
}

// Before an entry changes.
static void turn(const struct heap_stacks *stacks, struct cairn_heap_stack *entry) {
    uint32_t epoch = scope_at(stacks->scope)->heap_epoch;
    if (entry->epoch == epoch) return;
    entry->peak_bytes = (int64_t)held(entry);
    entry->peak_blocks = (int64_t)(entry->calls - entry->frees);
    publish_barrier();
    entry->epoch = epoch;
}

// Before the heap becomes smaller.
static void note_peak(const struct heap_stacks *stacks) {
    struct cairn_scope *heap = scope_at(stacks->scope);
    if (stacks->live_bytes <= heap->heap_peak_bytes) return;
    heap->heap_peak_bytes = stacks->live_bytes;
    heap->heap_peak_ns = sink_now_ns();
    publish_barrier();
    heap->heap_epoch++;
}

static void note(const struct heap_stacks *stacks) {
    const struct cairn_point now = {.last_bytes = (int64_t)stacks->live_bytes,
                                    .last_blocks = (int64_t)stacks->live_blocks,
                                    .allocated_bytes = stacks->allocated_bytes,
                                    .allocations = stacks->calls};
    heap_points_note(stacks->points, &now, sink_now_ns());
}

void heap_stacks_alloc(struct heap_stacks *stacks, uint32_t number, uint64_t bytes) {
    if (!number) return;
    struct cairn_heap_stack *entry = entry_at(number);
    turn(stacks, entry);
    entry->calls++;
    entry->allocated_bytes += bytes;
    stacks->live_bytes += bytes;
    stacks->live_blocks++;
    stacks->allocated_bytes += bytes;
    stacks->calls++;
    note(stacks);
}

void heap_stacks_free(struct heap_stacks *stacks, uint32_t number, uint64_t bytes) {
    if (!number) return;
    struct cairn_heap_stack *entry = entry_at(number);
    note_peak(stacks);
    turn(stacks, entry);
    entry->frees++;
    entry->freed_bytes += bytes;
    stacks->live_bytes -= bytes;
    stacks->live_blocks--;
    note(stacks);
}

void heap_stacks_put_back(struct heap_stacks *stacks, uint32_t number, uint64_t bytes) {
    if (!number) return;
    struct cairn_heap_stack *entry = entry_at(number);
    turn(stacks, entry);
    entry->frees--;
    entry->freed_bytes -= bytes;
    stacks->live_bytes += bytes;
    stacks->live_blocks++;
    note(stacks);
}

uint32_t heap_stacks_move(struct heap_stacks *stacks, uint32_t number, uint32_t scope,
                          uint64_t bytes) {
    uint32_t found = number ? heap_stacks_find(stacks, entry_at(number)->cell, scope) : 0;
    if (!found || found == number) return number;
    struct cairn_heap_stack *from = entry_at(number), *to = entry_at(found);
    uint32_t epoch = scope_at(stacks->scope)->heap_epoch;
    if (from->epoch == epoch) turn(stacks, to);
    if (from->epoch != epoch && to->epoch == epoch) {
        to->peak_bytes += (int64_t)bytes;
        to->peak_blocks++;
    }
    from->calls--;
    from->allocated_bytes -= bytes;
    to->calls++;
    to->allocated_bytes += bytes;
    return found;
}

static uint64_t entry_count(void) {
    uint64_t count = entries.base ? *entries.used_bytes / sizeof(struct cairn_heap_stack) : 0;
    return count < CAIRN_HEAP_STACK_LIMIT ? count : CAIRN_HEAP_STACK_LIMIT;
}

// The parent goes on changing what was copied of it.
void heap_stacks_inherit(void) {
    uint64_t count = entry_count();
    heap_points_inherit();
    for (uint32_t i = 1; i < count; i++) {
        const struct cairn_heap_stack was = *entry_at(i);
        *entry_at(i) = (struct cairn_heap_stack){
            .cell = was.cell, .scope = was.scope, .is_ready = was.is_ready};
    }
    for (uint32_t id = 1; id < scope_limit(); id++) {
        struct cairn_scope *scope = scope_at(id);
        if (!scope->heap_epoch) continue;
        scope->heap_epoch++;
        scope->heap_peak_bytes = scope->heap_peak_ns = 0;
    }
}

void heap_stacks_inherit_heap(struct heap_stacks *stacks, bool is_torn) {
    stacks->live_bytes = stacks->live_blocks = stacks->allocated_bytes = stacks->calls = 0;
    if (is_torn) addresses_open(&stacks->known, sizeof(struct known));
}

void heap_stacks_inherit_block(struct heap_stacks *stacks, uint32_t number, uint64_t bytes) {
    if (number < entry_count()) heap_stacks_alloc(stacks, number, bytes);
}
