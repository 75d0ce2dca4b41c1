// SPDX-License-Identifier: Apache-2.0
// The peak is kept lazily, as that of the heap: who leaves a new highest total moves the epoch, and
// a mapper saves what it held before it changes for the first time in an epoch.
#include "runtime/record/mapped.h"

#include <string.h>
#include <sys/mman.h>

#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/event.h"
#include "runtime/record/event_log.h"
#include "runtime/record/ranges.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/cells.h"
#include "runtime/stack/hash.h"
#include "runtime/sys/lock.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/slots.h"

enum { HUGE_SHIFT_AT = 26, HUGE_SHIFT_MASK = 63 };
enum { TABLE_SLOTS = 2 * CAIRN_MAPPER_LIMIT };
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

bool mapped_is_on;

static struct ledger {
    struct lock lock;  // holder: address of its thread-locals
    struct ranges ranges;
    struct region mappers;
    uint32_t *table;      // mapper ids by cell and kind, open addressing; 0: empty
    uint64_t live_bytes;  // of all kinds but RESERVED
    uint32_t stamp;       // (atomic) changes so far
    uintptr_t allocator_start, allocator_end;  // code of an allocator that is not glibc's
} ledger;

static struct cairn_mapper *mapper_at(uint32_t id) {
    return (struct cairn_mapper *)ledger.mappers.base + id;
}

static uint32_t mapper_count(void) {
    uint64_t used = __atomic_load_n(ledger.mappers.used_bytes, __ATOMIC_RELAXED);
    uint64_t count = used / sizeof(struct cairn_mapper);
    return count < CAIRN_MAPPER_LIMIT ? (uint32_t)count : CAIRN_MAPPER_LIMIT;
}

static void count_lost(void) {
    __atomic_fetch_add(&sink.header->mappings_lost, 1, __ATOMIC_RELAXED);
}

static bool ledger_lock(void) {
    if (lock_take(&ledger.lock, (uintptr_t)&gate_self)) return true;
    count_lost();
    return false;
}

static void ledger_unlock(void) {
    lock_give_back(&ledger.lock);
}

// Where the mapper is in the table, or the empty place for it; a full table has none.
static uint32_t *table_place(uint32_t cell, uint32_t kind) {
    uint64_t key = (uint64_t)cell * CAIRN_MAPPING_KINDS + kind + 1;
    uint32_t at = (uint32_t)(hash_mix(key, HASH_FACTOR) % TABLE_SLOTS);
    for (;; at = (at + 1) % TABLE_SLOTS) {
        const struct cairn_mapper *mapper = mapper_at(ledger.table[at]);
        if (!ledger.table[at] || (mapper->cell == cell && mapper->kind == kind))
            return &ledger.table[at];
    }
}

// The mapper of a stack; that of unknown stacks where there is no room.
static uint32_t mapper_of(uint32_t cell, uint32_t kind) {
    if (cell == CAIRN_CELL_OTHER) return kind;
    uint32_t *place = table_place(cell, kind);
    if (*place) return *place;
    if (mapper_count() >= CAIRN_MAPPER_LIMIT) return kind;
    struct cairn_mapper *mapper = region_take(&ledger.mappers, sizeof *mapper);
    if (!mapper) return kind;
    mapper->cell = cell;
    mapper->kind = kind;
    __atomic_store_n(&mapper->is_ready, 1, __ATOMIC_RELEASE);
    *place = (uint32_t)(mapper - mapper_at(0));
    return *place;
}

static uint64_t held(const struct cairn_mapper *mapper) {
    return mapper->mapped_bytes - mapper->unmapped_bytes;
}

// Before a mapper changes.
static void mapper_turn(struct cairn_mapper *mapper) {
    uint32_t epoch = sink.header->mappings_epoch;
    if (mapper->epoch == epoch) return;
    mapper->peak_bytes = (int64_t)held(mapper);
    mapper->peak_ranges = (int64_t)mapper->live_ranges;
    publish_barrier();
    mapper->epoch = epoch;
}

// Before the total becomes smaller.
static void note_peak(void) {
    struct cairn_header *header = sink.header;
    if (ledger.live_bytes <= header->mappings_peak_bytes) return;
    header->mappings_peak_bytes = ledger.live_bytes;
    header->mappings_peak_ns = sink_now_coarse_ns();
    publish_barrier();
    header->mappings_epoch++;
}

static void count_lost_range(uint32_t id, uint64_t bytes, enum ranges_loss loss) {
    struct cairn_mapper *mapper = mapper_at(id);
    if (mapper->kind != CAIRN_MAPPING_RESERVED) note_peak();
    mapper_turn(mapper);
    mapper->unmapped_bytes += bytes;
    if (loss == RANGES_WHOLE) mapper->live_ranges--;
    if (loss == RANGES_SPLIT) mapper->live_ranges++;
    if (mapper->kind != CAIRN_MAPPING_RESERVED) ledger.live_bytes -= bytes;
}

static void count_range(struct cairn_mapper *mapper, uint64_t bytes) {
    mapper_turn(mapper);
    mapper->mapped_bytes += bytes;
    mapper->live_ranges++;
    if ((int64_t)held(mapper) > mapper->highest_bytes)
        mapper->highest_bytes = (int64_t)held(mapper);
    if (mapper->kind != CAIRN_MAPPING_RESERVED) ledger.live_bytes += bytes;
}

// Of huge pages as they are by default: as many pages as a page has room for their entries.
static uint64_t huge_page_bytes(unsigned flags) {
    const uint64_t entries = sys_page_bytes() / sizeof(uint64_t);
    unsigned shift = flags >> HUGE_SHIFT_AT & HUGE_SHIFT_MASK;
    return shift ? 1ull << shift : entries * sys_page_bytes();
}

static uint64_t bytes_of(const struct mapped_call *call) {
    if (!(call->flags & MAP_HUGETLB)) return sys_page_up(call->length);
    uint64_t page_bytes = huge_page_bytes((unsigned)call->flags);
    return (call->length + page_bytes - 1) & ~(page_bytes - 1);
}

static enum cairn_mapping_kind kind_of(const struct mapped_call *call) {
    if (call->protection == PROT_NONE) return CAIRN_MAPPING_RESERVED;
    if (!(call->flags & MAP_ANONYMOUS)) return CAIRN_MAPPING_FILE;
    return call->flags & MAP_SHARED ? CAIRN_MAPPING_SHARED : CAIRN_MAPPING_ANONYMOUS;
}

// Enters [start, start + bytes), in place of whatever was known there; the lock is held.
static void enter_range(uint64_t start, uint64_t bytes, uint32_t id) {
    uint32_t stamp = __atomic_add_fetch(&ledger.stamp, 1, __ATOMIC_RELAXED);
    struct cairn_mapping_range range = {start, start + bytes, id, stamp};
    ranges_remove(&ledger.ranges, start, start + bytes, stamp, count_lost_range);
    ranges_add(&ledger.ranges, &range);
    mapper_at(id)->calls++;
    count_range(mapper_at(id), bytes);
}

// The calling thread may note something: the recording is its own process'. `thread` is BUSY, or
// NULL where the stack cannot be had.
static bool note_begin(struct thread **thread, uintptr_t *frame) {
    *thread = gate_enter((uintptr_t)frame);
    if (process_state() == PROCESS_RECORDING && !slots_is_wiped()) return true;
    if (*thread) gate_leave(*thread);
    return false;
}

// A forked child opens its own at its first event.
static bool has_recording(uintptr_t *frame) {
    struct thread *thread = slots_is_wiped() ? gate_enter((uintptr_t)frame) : NULL;
    if (thread) gate_leave(thread);
    return !slots_is_wiped();
}

// With `thread` NULL, or without the stack's cell: among those of unknown stacks.
static uint32_t cell_of(struct thread *thread, enum cairn_mapping_kind kind, uintptr_t *frame) {
    if (!thread || kind == CAIRN_MAPPING_ALLOCATOR) return CAIRN_CELL_OTHER;
    uint32_t cell = event_stack(thread, frame);
    return cell ? cell : CAIRN_CELL_OTHER;
}

static bool is_wanted(const struct thread *thread) {
    return gate_is_recording() && !(thread && thread->nest.is_off);
}

uint32_t mapped_stamp(void) {
    return __atomic_load_n(&ledger.stamp, __ATOMIC_RELAXED);
}

void mapped_note_map(const void *result, const struct mapped_call *call, uintptr_t *frame) {
    struct thread *thread;
    uint64_t start = (uintptr_t)result, bytes = bytes_of(call);
    enum cairn_mapping_kind kind = kind_of(call);
    bool is_allocator = frame[1] >= ledger.allocator_start && frame[1] < ledger.allocator_end;
    if (is_allocator) kind = CAIRN_MAPPING_ALLOCATOR;
    if (!note_begin(&thread, frame)) return;
    bool is_entered = is_wanted(thread);
    uint32_t cell = is_entered ? cell_of(thread, kind, frame) : 0;
    if (ledger_lock()) {
        if (!ranges_prepare(&ledger.ranges))
            count_lost();
        else if (is_entered)
            enter_range(start, bytes, mapper_of(cell, kind));
        else
            ranges_remove(&ledger.ranges, start, start + bytes, mapped_stamp(), count_lost_range);
        if (settings.has_events && thread && is_entered)
            event_log_map(thread, start, bytes, cell, mapped_stamp());
        ledger_unlock();
    }
    if (thread) gate_leave(thread);
}

static COLD void log_unmap(uint64_t start, uint64_t bytes, uint32_t stamp, uintptr_t *frame) {
    struct thread *thread = gate_enter((uintptr_t)frame);
    if (!thread) return;
    event_log_unmap(thread, start, bytes, stamp);
    gate_leave(thread);
}

void mapped_note_unmap(const void *address, size_t length, uint32_t stamp, uintptr_t *frame) {
    uint64_t start = (uintptr_t)address, end = start + sys_page_up(length);
    if (process_state() != PROCESS_RECORDING || !has_recording(frame) || !ledger_lock()) return;
    if (ranges_prepare(&ledger.ranges))
        ranges_remove(&ledger.ranges, start, end, stamp, count_lost_range);
    else
        count_lost();
    ledger_unlock();
    if (settings.has_events) log_unmap(start, end - start, stamp, frame);
}

// It keeps its kind.
static void move_range(const struct mapped_move *move, uint32_t cell) {
    uint64_t old = (uintptr_t)move->old;
    const struct cairn_mapping_range *range = ranges_find(&ledger.ranges, old);
    uint32_t kind = range ? mapper_at(range->mapper)->kind : CAIRN_MAPPING_ANONYMOUS;
    bool is_copy = !move->old_length || (move->flags & MREMAP_DONTUNMAP);
    if (!is_copy)
        ranges_remove(&ledger.ranges, old, old + sys_page_up(move->old_length), move->stamp,
                      count_lost_range);
    if (!cell || !ranges_prepare(&ledger.ranges)) return;
    if (kind == CAIRN_MAPPING_ALLOCATOR) cell = CAIRN_CELL_OTHER;
    enter_range((uintptr_t)move->result, sys_page_up(move->length), mapper_of(cell, kind));
}

static COLD void log_move(struct thread *thread, const struct mapped_move *move, uint32_t cell) {
    bool is_copy = !move->old_length || (move->flags & MREMAP_DONTUNMAP);
    if (!is_copy)
        event_log_unmap(thread, (uintptr_t)move->old, sys_page_up(move->old_length), move->stamp);
    event_log_map(thread, (uintptr_t)move->result, sys_page_up(move->length), cell, mapped_stamp());
}

void mapped_note_move(const struct mapped_move *move, uintptr_t *frame) {
    struct thread *thread;
    if (!note_begin(&thread, frame)) return;
    uint32_t cell = is_wanted(thread) ? cell_of(thread, CAIRN_MAPPING_ANONYMOUS, frame) : 0;
    if (ledger_lock()) {
        if (ranges_prepare(&ledger.ranges))
            move_range(move, cell);
        else
            count_lost();
        if (settings.has_events && thread && cell) log_move(thread, move, cell);
        ledger_unlock();
    }
    if (thread) gate_leave(thread);
}

struct region *mapped_mappers(void) {
    ledger.mappers = sink_region(CAIRN_SECTION_MAPPERS);
    sink.header->mappings_ranges = (uintptr_t)&ledger.ranges.table;
    return &ledger.mappers;
}

bool mapped_begin(void) {
    ledger.table = sys_map(TABLE_SLOTS * sizeof *ledger.table);
    if (!ledger.table || !mapped_mappers()->base) return false;
    for (uint32_t kind = 0; kind < CAIRN_MAPPING_KINDS; kind++) {
        struct cairn_mapper *mapper = region_take(&ledger.mappers, sizeof *mapper);
        if (!mapper) return false;
        *mapper = (struct cairn_mapper){.cell = CAIRN_CELL_OTHER, .kind = kind, .is_ready = 1};
    }
    real_allocator_range(&ledger.allocator_start, &ledger.allocator_end);
    mapped_is_on = true;
    return true;
}

// The copied figures are the parent's, and it goes on changing them; the ranges are the child's. A
// thread of the parent may have been changing those when it forked: then nothing is known.
void mapped_inherit(void) {
    const struct cairn_mapping_range *list =
        (const struct cairn_mapping_range *)(uintptr_t)ledger.ranges.table.list;
    if (ledger.lock.holder) {
        ledger.ranges.table.count = 0;
        ledger.ranges.table.change &= ~1u;
        count_lost();
    }
    ledger.lock = (struct lock){0};
    ledger.live_bytes = 0;
    for (uint32_t id = 0; id < mapper_count(); id++) {
        struct cairn_mapper was = *mapper_at(id);
        *mapper_at(id) =
            (struct cairn_mapper){.cell = was.cell, .kind = was.kind, .is_ready = was.is_ready};
    }
    for (uint32_t i = 0; i < ledger.ranges.table.count; i++) {
        struct cairn_mapper *mapper = mapper_at(list[i].mapper);
        mapper->inherited_ranges++;
        count_range(mapper, list[i].end - list[i].start);
    }
}
