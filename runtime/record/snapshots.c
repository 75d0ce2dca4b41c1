// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/snapshots.h"

#include <string.h>

#include "format/snapshots.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/values.h"
#include "runtime/sys/probes.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/thread.h"

// A new high is so much above the last one, at first; smaller steps than this say nothing.
enum { STEP_PERMILLE = 50, STEP_LEAST_BYTES = 64 << 10, PERMILLE = 1000 };

// The heap has fallen by so much of its height, and by that many bytes at least. Between two such
// snapshots lies a share of all that was allocated and freed until then: even of a heap that goes
// up and down for ever there are some hundred, and the last ones are not closer than the first.
enum { FALL_SHARE = 4, FALL_LEAST_BYTES = 256 << 10, FALL_PAUSE_SHARE = 4 };

static struct region region;
static struct cairn_header *header;

// (atomic) What threads race for here is only whether a snapshot is taken.
static struct {
    int64_t highest_bytes;  // since the last snapshot after a fall
    int64_t last_bytes;     // when it was looked at last
    uint64_t next_churn_bytes;
} fall;

static uint64_t high_after(int64_t live_bytes) {
    uint64_t held = live_bytes > 0 ? (uint64_t)live_bytes : 0;
    uint64_t step = held / PERMILLE * header->pace.step_permille;
    return held + (step > STEP_LEAST_BYTES ? step : STEP_LEAST_BYTES);
}

void snapshots_open(struct region snapshots, struct cairn_header *shared, uint64_t every_bytes) {
    struct cairn_pace *pace = &shared->pace;
    region = snapshots;
    header = shared;
    fall.highest_bytes = fall.last_bytes = 0;
    fall.next_churn_bytes = 0;
    values.header = shared;
    values.snapshots = (const struct cairn_snapshot *)snapshots.base;
    values.snapshot_bytes = snapshots.used_bytes;
    *pace = (struct cairn_pace){.every_bytes = every_bytes,
                                .next_churn_bytes = every_bytes ? every_bytes : UINT64_MAX,
                                .next_high_bytes = every_bytes ? STEP_LEAST_BYTES : UINT64_MAX,
                                .step_permille = STEP_PERMILLE};
}

// Room for the next one, and for those that others take meanwhile: each of them makes as much.
static bool make_room(const struct cairn_snapshot_table *table) {
    const uint64_t ahead = 16;
    if (!region.base) return false;
    uint64_t count = cairn_snapshot_count(table) + ahead;
    if (count > CAIRN_SNAPSHOT_LIMIT) count = CAIRN_SNAPSHOT_LIMIT;
    return region_claim(&region, count * sizeof *table->snapshots);
}

static enum cairn_snapshot_result take_as(uint32_t taker, struct cairn_snapshot *snapshot) {
    struct cairn_snapshot_table table = {header, (struct cairn_snapshot *)region.base,
                                         region.used_bytes};
    if (!make_room(&table)) return CAIRN_SNAPSHOT_FULL;
    snapshot->time_ns = sink_now_ns();
    snapshot->allocated_bytes = __atomic_load_n(&header->totals.allocated_bytes, __ATOMIC_RELAXED);
    snapshot->allocations = __atomic_load_n(&header->totals.allocations, __ATOMIC_RELAXED);
    enum cairn_snapshot_result result = cairn_snapshot_take(&table, snapshot, taker);
    if (unlikely(probes_snapshot) && result == CAIRN_SNAPSHOT_TAKEN)
        probe_snapshot(NULL, snapshot->reason, snapshot->label, (uint64_t)snapshot->live_bytes,
                       (uint64_t)snapshot->live_blocks);
    return result;
}

static uint32_t own_tid(void) {
    uint32_t tid = (uint32_t)gate_self->tid;
    return tid ? tid : (uint32_t)sys_tid();
}

static enum cairn_snapshot_result take(struct cairn_snapshot *snapshot) {
    return take_as(own_tid(), snapshot);
}

// Allocated and freed so far.
static uint64_t churn_bytes(int64_t live_bytes) {
    uint64_t allocated = __atomic_load_n(&header->totals.allocated_bytes, __ATOMIC_RELAXED);
    return 2 * allocated - (uint64_t)live_bytes;
}

static bool has_fallen(int64_t live_bytes) {
    int64_t highest = __atomic_load_n(&fall.highest_bytes, __ATOMIC_RELAXED);
    int64_t fallen = highest - live_bytes;
    return fallen >= FALL_LEAST_BYTES && fallen >= highest / FALL_SHARE &&
           churn_bytes(live_bytes) >= __atomic_load_n(&fall.next_churn_bytes, __ATOMIC_RELAXED) &&
           header->pace.every_bytes;
}

// It has fallen, and falls no more.
static bool is_low_now(int64_t live_bytes) {
    int64_t last = __atomic_load_n(&fall.last_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&fall.last_bytes, live_bytes, __ATOMIC_RELAXED);
    if (live_bytes > __atomic_load_n(&fall.highest_bytes, __ATOMIC_RELAXED))
        __atomic_store_n(&fall.highest_bytes, live_bytes, __ATOMIC_RELAXED);
    return live_bytes >= last && has_fallen(live_bytes);
}

// Whatever became of it, the next one is due later.
static COLD void take_by_itself(int64_t live_bytes, int64_t live_blocks,
                                enum cairn_snapshot_reason reason) {
    struct cairn_pace *pace = &header->pace;
    struct cairn_snapshot snapshot = {
        .reason = reason, .live_bytes = live_bytes, .live_blocks = live_blocks};
    if (take(&snapshot) == CAIRN_SNAPSHOT_BUSY) return;
    uint64_t high = high_after(live_bytes), churn = churn_bytes(live_bytes);
    if (reason == CAIRN_SNAPSHOT_LOW) {
        __atomic_store_n(&fall.highest_bytes, live_bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&fall.next_churn_bytes, churn + churn / FALL_PAUSE_SHARE,
                         __ATOMIC_RELAXED);
    }
    __atomic_store_n(&pace->next_churn_bytes, churn + pace->every_bytes, __ATOMIC_RELAXED);
    if (high > pace->next_high_bytes)
        __atomic_store_n(&pace->next_high_bytes, high, __ATOMIC_RELAXED);
}

bool snapshots_is_due(void) {
    int64_t live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED);
    const struct cairn_pace *pace = &header->pace;
    bool is_churn =
        churn_bytes(live_bytes) >= __atomic_load_n(&pace->next_churn_bytes, __ATOMIC_RELAXED);
    return (pace->every_bytes && is_churn) || has_fallen(live_bytes);
}

void snapshots_look(int64_t live_bytes, int64_t live_blocks) {
    const struct cairn_pace *pace = &header->pace;
    bool is_high = live_bytes > 0 && (uint64_t)live_bytes >=
                                         __atomic_load_n(&pace->next_high_bytes, __ATOMIC_RELAXED);
    bool is_churn =
        churn_bytes(live_bytes) >= __atomic_load_n(&pace->next_churn_bytes, __ATOMIC_RELAXED);
    bool is_low = is_low_now(live_bytes);
    if (unlikely(is_high))
        take_by_itself(live_bytes, live_blocks, CAIRN_SNAPSHOT_HIGH);
    else if (unlikely(is_low))
        take_by_itself(live_bytes, live_blocks, CAIRN_SNAPSHOT_LOW);
    else if (unlikely(is_churn && pace->every_bytes))
        take_by_itself(live_bytes, live_blocks, CAIRN_SNAPSHOT_CHURN);
}

bool snapshots_take(enum cairn_snapshot_reason reason, const char *label) {
    struct cairn_snapshot snapshot = {
        .reason = reason,
        .live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&header->totals.live_blocks, __ATOMIC_RELAXED)};
    if (label) memcpy(snapshot.label, label, strnlen(label, sizeof snapshot.label - 1));
    return take(&snapshot) == CAIRN_SNAPSHOT_TAKEN;
}

// While somebody else takes one it is tried again; without room it is not.
bool snapshots_take_for_heap(enum cairn_snapshot_reason reason, uint32_t heap) {
    struct cairn_snapshot snapshot = {
        .reason = reason,
        .heap = heap,
        .live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&header->totals.live_blocks, __ATOMIC_RELAXED)};
    return take(&snapshot) != CAIRN_SNAPSHOT_BUSY;
}

void snapshots_pace(uint64_t live_bytes, uint64_t churn, uint64_t *next_high_bytes,
                    uint64_t *next_churn_bytes) {
    bool is_paced = header && header->pace.every_bytes;
    *next_high_bytes = is_paced ? high_after((int64_t)live_bytes) : UINT64_MAX;
    *next_churn_bytes = is_paced ? churn + header->pace.every_bytes : UINT64_MAX;
}

bool snapshots_take_in_handler(enum cairn_snapshot_reason reason, int signal) {
    // not the thread's own number: it may have been interrupted while it takes one, and so may the
    // handler of another signal
    const uint32_t in_handler = 0x40000000u, signal_shift = 23;
    struct cairn_snapshot snapshot = {
        .reason = reason,
        .live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&header->totals.live_blocks, __ATOMIC_RELAXED)};
    return take_as(in_handler | (uint32_t)signal << signal_shift | own_tid(), &snapshot) ==
           CAIRN_SNAPSHOT_TAKEN;
}

static const struct cairn_section *section_of(const struct cairn_header *parent) {
    for (uint32_t i = 0; i < parent->section_count; i++)
        if (parent->sections[i].kind == CAIRN_SECTION_SNAPSHOTS) return &parent->sections[i];
    return NULL;
}

void snapshots_inherit(const struct cairn_header *parent) {
    const struct cairn_section *section = section_of(parent);
    struct cairn_snapshot *own = (struct cairn_snapshot *)region.base;
    uint64_t kept = 0, count = section ? section->used_bytes / sizeof *own : 0;
    header->totals.generation = __atomic_load_n(&parent->totals.generation, __ATOMIC_RELAXED);
    if (!section || !header->totals.generation || count > CAIRN_SNAPSHOT_LIMIT ||
        !region_claim(&region, CAIRN_SNAPSHOT_LIMIT * sizeof *own))
        return;
    const struct cairn_snapshot *theirs =
        (const struct cairn_snapshot *)((const uint8_t *)parent + section->offset);
    for (uint64_t i = 0; i < count; i++) {
        if (theirs[i].reason != CAIRN_SNAPSHOT_MARK) continue;
        own[kept] = (struct cairn_snapshot){
            .reason = CAIRN_SNAPSHOT_MARK, .generation = theirs[i].generation, .is_inherited = 1};
        memcpy(own[kept++].label, theirs[i].label, sizeof own->label);
    }
    *region.used_bytes = kept * sizeof *own;
}
