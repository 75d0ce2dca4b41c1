// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/heap_stacks.h"

#include "format/format.h"
#include "runtime/api/heap_blocks.h"
#include "runtime/api/heap_points.h"
#include "runtime/process/settings.h"
#include "runtime/record/snapshots.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/scope.h"
#include "runtime/sys/lock.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/gate.h"

struct known {
    uint64_t key;
    uint32_t entry;
};

// What is of one name within a heap. Its heap's lock is held by who changes it.
struct part {
    uint64_t live_bytes, live_blocks, allocated_bytes, calls;
    uint32_t points;  // heap_points.h; 0: none
};

static struct region entries;
static struct part *parts;  // (atomic) by scope; NULL: no memory

struct region *heap_stacks_region(void) {
    entries = sink_region(CAIRN_SECTION_HEAP_STACKS);
    return &entries;
}

static struct cairn_heap_stack *entry_at(uint32_t number) {
    return (struct cairn_heap_stack *)entries.base + number;
}

static void parts_open(void) {
    const size_t bytes = CAIRN_SCOPE_LIMIT * sizeof *parts;
    struct part *made = NULL, *none = NULL;
    if (!__atomic_load_n(&parts, __ATOMIC_ACQUIRE)) made = sys_map(bytes);
    if (made && !__atomic_compare_exchange_n(&parts, &none, made, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE))
        sys_unmap(made, bytes);
}

bool heap_stacks_open(struct heap_stacks *heap, uint32_t scope) {
    heap->scope = scope;
    heap->points = heap_points_make(scope);
    snapshots_pace(0, 0, &heap->next_high_bytes, &heap->next_churn_bytes);
    parts_open();
    return addresses_open(&heap->known, sizeof(struct known));
}

// Of a name within the heap; NULL: it is the heap's own scope, or there is no room.
static struct part *part_of(const struct heap_stacks *heap, uint32_t scope) {
    return parts && scope != heap->scope && scope < CAIRN_SCOPE_LIMIT ? &parts[scope] : NULL;
}

static uint32_t make(const struct heap_stacks *heap, uint32_t cell, uint32_t scope) {
    struct cairn_heap_stack *entry = entries.base ? region_take(&entries, sizeof *entry) : NULL;
    if (entry && entry == entry_at(0)) entry = region_take(&entries, sizeof *entry);  // 0 is none
    if (!entry) return 0;
    struct part *part = part_of(heap, scope);
    if (part && !part->points) part->points = heap_points_make(scope);
    entry->cell = cell;
    entry->scope = scope;
    entry->snapshot_epoch = __atomic_load_n(&sink.header->totals.epoch, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->is_ready, 1, __ATOMIC_RELEASE);
    return (uint32_t)(entry - entry_at(0));
}

uint32_t heap_stacks_find(struct heap_stacks *heap, uint32_t cell, uint32_t scope) {
    const unsigned half = 32;
    struct known *known = addresses_add(&heap->known, (uint64_t)cell << half | scope);
    if (known && !known->entry) known->entry = make(heap, cell, scope);
    return known ? known->entry : 0;
}

static uint64_t held(const struct cairn_heap_stack *entry) {
    return entry->allocated_bytes - entry->freed_bytes;
}

// As cell_turn_slow (cells.c): the value is there before the epoch says so.
static COLD void save_for_snapshots(struct heap_stacks *heap, uint32_t number) {
    struct cairn_heap_stack *entry = entry_at(number);
    uint32_t epoch = __atomic_load_n(&sink.header->totals.epoch, __ATOMIC_ACQUIRE);
    const struct cairn_value value = {.cell = CAIRN_VALUE_OF_HEAP | number,
                                      .from_epoch = entry->snapshot_epoch,
                                      .to_epoch = epoch,
                                      .blocks = (int32_t)(entry->calls - entry->frees),
                                      .bytes = (int64_t)held(entry)};
    if (values.entries.base && (value.bytes || value.blocks)) values_save(&heap->log, &value, 0);
    publish_barrier();
    entry->snapshot_epoch = epoch;
}

static void turn_for_snapshots(struct heap_stacks *heap, uint32_t number) {
    const struct cairn_totals *totals = &sink.header->totals;
    uint32_t snapshot_epoch = __atomic_load_n(&totals->snapshot_epoch, __ATOMIC_RELAXED);
    if (unlikely((int32_t)(entry_at(number)->snapshot_epoch - snapshot_epoch) < 0))
        save_for_snapshots(heap, number);
}

static void turn_for_peak(const struct heap_stacks *heap, struct cairn_heap_stack *entry) {
    uint32_t epoch = scope_at(heap->scope)->heap_epoch;
    if (entry->epoch == epoch) return;
    entry->peak_bytes = (int64_t)held(entry);
    entry->peak_blocks = (int64_t)(entry->calls - entry->frees);
    publish_barrier();
    entry->epoch = epoch;
}

// Before an entry changes.
static struct cairn_heap_stack *turn(struct heap_stacks *heap, uint32_t number) {
    turn_for_snapshots(heap, number);
    turn_for_peak(heap, entry_at(number));
    return entry_at(number);
}

// Before the heap becomes smaller.
static void note_peak(const struct heap_stacks *heap) {
    struct cairn_scope *scope = scope_at(heap->scope);
    if (heap->live_bytes <= scope->heap_peak_bytes) return;
    scope->heap_peak_bytes = heap->live_bytes;
    scope->heap_peak_ns = sink_now_ns();
    publish_barrier();
    scope->heap_epoch++;
}

static uint64_t churn_of(const struct heap_stacks *heap) {
    return 2 * heap->allocated_bytes - heap->live_bytes;
}

// Who is in the midst of something of cairn's does not begin this.
static COLD void take_snapshot(struct heap_stacks *heap, bool is_high) {
    struct thread *thread = gate_enter((uintptr_t)__builtin_frame_address(0));
    if (!thread) return;
    if (snapshots_take_for_heap(is_high ? CAIRN_SNAPSHOT_HIGH : CAIRN_SNAPSHOT_CHURN, heap->scope))
        snapshots_pace(heap->live_bytes, churn_of(heap), &heap->next_high_bytes,
                       &heap->next_churn_bytes);
    gate_leave(thread);
}

static void note_part(const struct heap_stacks *heap, uint32_t scope, uint64_t now_ns) {
    const struct part *part = part_of(heap, scope);
    if (!part) return;
    const struct cairn_point now = {.last_bytes = (int64_t)part->live_bytes,
                                    .last_blocks = (int64_t)part->live_blocks,
                                    .allocated_bytes = part->allocated_bytes,
                                    .allocations = part->calls};
    heap_points_note(part->points, &now, now_ns);
}

// After a change of a scope.
static void note(struct heap_stacks *heap, uint32_t scope, uint64_t now_ns) {
    const struct cairn_point now = {.last_bytes = (int64_t)heap->live_bytes,
                                    .last_blocks = (int64_t)heap->live_blocks,
                                    .allocated_bytes = heap->allocated_bytes,
                                    .allocations = heap->calls};
    heap_points_note(heap->points, &now, now_ns);
    note_part(heap, scope, now_ns);
    bool is_high = heap->live_bytes >= heap->next_high_bytes;
    if (unlikely(is_high) || unlikely(churn_of(heap) >= heap->next_churn_bytes))
        take_snapshot(heap, is_high);
}

// Milliseconds of CLOCK_MONOTONIC, low 32 bits: the same in a forked child.
static uint32_t ms_at(uint64_t now_ns) {
    const uint64_t ms_ns = 1000000;
    return (uint32_t)((sink.header->start_clock_ns + now_ns) / ms_ns);
}

static void add_block(struct heap_stacks *heap, uint32_t scope, uint64_t bytes) {
    struct part *part = part_of(heap, scope);
    heap->live_bytes += bytes;
    heap->live_blocks++;
    if (!part) return;
    part->live_bytes += bytes;
    part->live_blocks++;
}

static void drop_block(struct heap_stacks *heap, uint32_t scope, uint64_t bytes) {
    struct part *part = part_of(heap, scope);
    heap->live_bytes -= bytes;
    heap->live_blocks--;
    if (!part) return;
    part->live_bytes -= bytes;
    part->live_blocks--;
}

static void count_call(struct heap_stacks *heap, uint32_t scope, uint64_t bytes) {
    struct part *part = part_of(heap, scope);
    heap->allocated_bytes += bytes;
    heap->calls++;
    if (!part) return;
    part->allocated_bytes += bytes;
    part->calls++;
}

struct birth heap_stacks_alloc(struct heap_stacks *heap, uint32_t number, uint64_t bytes) {
    struct birth birth = {++heap->births, 0};
    if (!number) return birth;
    uint64_t now_ns = sink_now_ns();
    struct cairn_heap_stack *entry = turn(heap, number);
    entry->calls++;
    entry->allocated_bytes += bytes;
    heap_blocks_add(entry, number, bytes);
    count_call(heap, entry->scope, bytes);
    add_block(heap, entry->scope, bytes);
    if (settings.has_ages) birth.ms = ms_at(now_ns);
    note(heap, entry->scope, now_ns);
    return birth;
}

void heap_stacks_free(struct heap_stacks *heap, uint32_t number, uint64_t bytes,
                      struct birth birth) {
    if (!number) return;
    uint64_t now_ns = sink_now_ns();
    note_peak(heap);
    struct cairn_heap_stack *entry = turn(heap, number);
    entry->frees++;
    entry->freed_bytes += bytes;
    drop_block(heap, entry->scope, bytes);
    if (settings.has_ages)
        heap_blocks_count_age(entry, number, heap->births - birth.call, ms_at(now_ns) - birth.ms);
    note(heap, entry->scope, now_ns);
}

// Its age was counted a moment ago.
void heap_stacks_put_back(struct heap_stacks *heap, uint32_t number, uint64_t bytes,
                          struct birth birth) {
    if (!number) return;
    uint64_t now_ns = sink_now_ns();
    struct cairn_heap_stack *entry = turn(heap, number);
    entry->frees--;
    entry->freed_bytes -= bytes;
    add_block(heap, entry->scope, bytes);
    if (settings.has_ages)
        heap_blocks_drop_age(entry, heap->births - birth.call, ms_at(now_ns) - birth.ms);
    note(heap, entry->scope, now_ns);
}

static void move_part(struct heap_stacks *heap, const struct cairn_heap_stack *from,
                      const struct cairn_heap_stack *to, uint64_t bytes) {
    struct part *left = part_of(heap, from->scope);
    uint64_t now_ns = sink_now_ns();
    drop_block(heap, from->scope, bytes);
    add_block(heap, to->scope, bytes);
    count_call(heap, to->scope, bytes);
    heap->allocated_bytes -= bytes;
    heap->calls--;
    if (left) left->allocated_bytes -= bytes;
    if (left) left->calls--;
    note_part(heap, from->scope, now_ns);
    note_part(heap, to->scope, now_ns);
}

uint32_t heap_stacks_move(struct heap_stacks *heap, uint32_t number, uint32_t scope,
                          uint64_t bytes) {
    uint32_t found = number ? heap_stacks_find(heap, entry_at(number)->cell, scope) : 0;
    if (!found || found == number) return number;
    struct cairn_heap_stack *from = entry_at(number), *to = entry_at(found);
    uint32_t epoch = scope_at(heap->scope)->heap_epoch;
    turn_for_snapshots(heap, number);
    turn_for_snapshots(heap, found);
    if (from->epoch == epoch) turn_for_peak(heap, to);
    if (from->epoch != epoch && to->epoch == epoch) {
        to->peak_bytes += (int64_t)bytes;
        to->peak_blocks++;
    }
    from->calls--;
    from->allocated_bytes -= bytes;
    heap_blocks_drop(from, bytes);
    to->calls++;
    to->allocated_bytes += bytes;
    heap_blocks_add(to, found, bytes);
    move_part(heap, from, to, bytes);
    return found;
}

static uint64_t entry_count(void) {
    uint64_t bytes = entries.base ? *entries.used_bytes : 0;
    if (bytes > entries.capacity_bytes) bytes = entries.capacity_bytes;
    return bytes / sizeof(struct cairn_heap_stack);
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
        if (parts) parts[id] = (struct part){.points = parts[id].points};
        if (!scope->heap_epoch) continue;
        scope->heap_epoch++;
        scope->heap_peak_bytes = scope->heap_peak_ns = 0;
    }
}

bool heap_stacks_inherit_heap(struct heap_stacks *heap, struct lock *lock) {
    const bool is_own = lock->holder == (uintptr_t)&gate_self;
    if (lock->holder && !is_own) gate_count_loss(CAIRN_LOST_NESTED);
    if (!is_own) *lock = (struct lock){0};
    if (!is_own) addresses_renew(&heap->known);
    heap->live_bytes = heap->live_blocks = heap->allocated_bytes = heap->calls = 0;
    heap->log = (struct value_log){0};
    snapshots_pace(0, 0, &heap->next_high_bytes, &heap->next_churn_bytes);
    return is_own;
}

// Births go on: the block is as old as it was.
void heap_stacks_inherit_block(struct heap_stacks *heap, uint32_t number, uint64_t bytes) {
    uint32_t births = heap->births;
    if (number < entry_count()) heap_stacks_alloc(heap, number, bytes);
    heap->births = births;
}
