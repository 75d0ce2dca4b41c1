// SPDX-License-Identifier: Apache-2.0
#include "runtime/moments.h"

#include <string.h>

#include "format/moments.h"
#include "runtime/gate.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/values.h"
#include "runtime/sys/probes.h"
#include "runtime/sys/sys.h"

// A new high is so much above the last one, at first; smaller steps than this say nothing.
enum { STEP_PERMILLE = 50, STEP_LEAST_BYTES = 64 << 10, PERMILLE = 1000 };

static struct region region;
static struct cairn_header *header;

static uint64_t high_after(int64_t live_bytes) {
    uint64_t live = live_bytes > 0 ? (uint64_t)live_bytes : 0;
    uint64_t step = live / PERMILLE * header->pace.step_permille;
    return live + (step > STEP_LEAST_BYTES ? step : STEP_LEAST_BYTES);
}

void moments_open(struct region moments, struct cairn_header *shared, uint64_t every_bytes) {
    struct cairn_pace *pace = &shared->pace;
    region = moments;
    header = shared;
    values.header = shared;
    values.moments = (const struct cairn_moment *)moments.base;
    values.moment_bytes = moments.used_bytes;
    *pace = (struct cairn_pace){.every_bytes = every_bytes,
                                .next_churn_bytes = every_bytes ? every_bytes : UINT64_MAX,
                                .next_high_bytes = every_bytes ? STEP_LEAST_BYTES : UINT64_MAX,
                                .step_permille = STEP_PERMILLE};
}

static enum cairn_moment_result take_as(uint32_t taker, struct cairn_moment *moment) {
    struct cairn_moment_table table = {header, (struct cairn_moment *)region.base,
                                       region.used_bytes};
    if (!region.base || !region_claim(&region, CAIRN_MOMENT_LIMIT * sizeof *moment))
        return CAIRN_MOMENT_FULL;
    moment->time_ns = sink_now_ns();
    moment->allocated_bytes = __atomic_load_n(&header->totals.allocated_bytes, __ATOMIC_RELAXED);
    moment->allocations = __atomic_load_n(&header->totals.allocations, __ATOMIC_RELAXED);
    enum cairn_moment_result result = cairn_moment_take(&table, moment, taker);
    if (unlikely(probes_snapshot) && result == CAIRN_MOMENT_TAKEN)
        probe_snapshot(NULL, moment->reason, moment->label, (uint64_t)moment->live_bytes,
                       (uint64_t)moment->live_blocks);
    return result;
}

static uint32_t own_tid(void) {
    uint32_t tid = (uint32_t)gate_self->tid;
    return tid ? tid : (uint32_t)sys_tid();
}

static enum cairn_moment_result take(struct cairn_moment *moment) {
    return take_as(own_tid(), moment);
}

// Allocated and freed so far.
static uint64_t churn_bytes(int64_t live_bytes) {
    uint64_t allocated = __atomic_load_n(&header->totals.allocated_bytes, __ATOMIC_RELAXED);
    return 2 * allocated - (uint64_t)live_bytes;
}

// Whatever became of it, the next one is due later.
static COLD void take_by_itself(int64_t live_bytes, int64_t live_blocks, bool is_high) {
    struct cairn_pace *pace = &header->pace;
    struct cairn_moment moment = {.reason = is_high ? CAIRN_MOMENT_HIGH : CAIRN_MOMENT_CHURN,
                                  .live_bytes = live_bytes,
                                  .live_blocks = live_blocks};
    if (take(&moment) == CAIRN_MOMENT_BUSY) return;
    uint64_t high = high_after(live_bytes);
    __atomic_store_n(&pace->next_churn_bytes, churn_bytes(live_bytes) + pace->every_bytes,
                     __ATOMIC_RELAXED);
    if (high > pace->next_high_bytes)
        __atomic_store_n(&pace->next_high_bytes, high, __ATOMIC_RELAXED);
}

bool moments_is_due(void) {
    int64_t live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED);
    const struct cairn_pace *pace = &header->pace;
    return pace->every_bytes &&
           churn_bytes(live_bytes) >= __atomic_load_n(&pace->next_churn_bytes, __ATOMIC_RELAXED);
}

void moments_look(int64_t live_bytes, int64_t live_blocks) {
    const struct cairn_pace *pace = &header->pace;
    bool is_high = live_bytes > 0 && (uint64_t)live_bytes >=
                                         __atomic_load_n(&pace->next_high_bytes, __ATOMIC_RELAXED);
    bool is_churn =
        churn_bytes(live_bytes) >= __atomic_load_n(&pace->next_churn_bytes, __ATOMIC_RELAXED);
    if (unlikely(is_high || (is_churn && pace->every_bytes)))
        take_by_itself(live_bytes, live_blocks, is_high);
}

bool moments_take(enum cairn_moment_reason reason, const char *label) {
    struct cairn_moment moment = {
        .reason = reason,
        .live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&header->totals.live_blocks, __ATOMIC_RELAXED)};
    if (label) memcpy(moment.label, label, strnlen(label, sizeof moment.label - 1));
    return take(&moment) == CAIRN_MOMENT_TAKEN;
}

bool moments_take_in_handler(enum cairn_moment_reason reason, int signal) {
    // not the thread's own number: it may have been interrupted while it takes one, and so may the
    // handler of another signal
    const uint32_t in_handler = 0x40000000u, signal_shift = 23;
    struct cairn_moment moment = {
        .reason = reason,
        .live_bytes = __atomic_load_n(&header->totals.live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&header->totals.live_blocks, __ATOMIC_RELAXED)};
    return take_as(in_handler | (uint32_t)signal << signal_shift | own_tid(), &moment) ==
           CAIRN_MOMENT_TAKEN;
}

static const struct cairn_section *section_of(const struct cairn_header *parent) {
    for (uint32_t i = 0; i < parent->section_count; i++)
        if (parent->sections[i].kind == CAIRN_SECTION_MOMENTS) return &parent->sections[i];
    return NULL;
}

void moments_inherit(const struct cairn_header *parent) {
    const struct cairn_section *section = section_of(parent);
    struct cairn_moment *own = (struct cairn_moment *)region.base;
    uint64_t kept = 0, count = section ? section->used_bytes / sizeof *own : 0;
    header->totals.generation = __atomic_load_n(&parent->totals.generation, __ATOMIC_RELAXED);
    if (!section || !header->totals.generation || count > CAIRN_MOMENT_LIMIT ||
        !region_claim(&region, CAIRN_MOMENT_LIMIT * sizeof *own))
        return;
    const struct cairn_moment *theirs =
        (const struct cairn_moment *)((const uint8_t *)parent + section->offset);
    for (uint64_t i = 0; i < count; i++) {
        if (theirs[i].reason != CAIRN_MOMENT_MARK) continue;
        own[kept] = (struct cairn_moment){
            .reason = CAIRN_MOMENT_MARK, .generation = theirs[i].generation, .is_inherited = 1};
        memcpy(own[kept++].label, theirs[i].label, sizeof own->label);
    }
    *region.used_bytes = kept * sizeof *own;
}
