// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread/region_stack.h"

#include "format/sample.h"
#include "runtime/stack/scope.h"
#include "runtime/thread/thread.h"
#include "runtime/unwind/unwind_cache.h"

static void set_bound(struct thread *thread) {
    int64_t high = thread->nest.high_bytes, total = thread->total_peak_bytes;
    thread->peak_bytes = high < total ? high : total;
}

void region_stack_note(struct thread *thread) {
    int64_t net = thread->record->net_bytes;
    if (net > thread->nest.high_bytes) thread->nest.high_bytes = net;
    set_bound(thread);
}

static int64_t high_now(const struct thread *thread) {
    int64_t high = thread->nest.high_bytes, net = thread->record->net_bytes;
    return high == INT64_MAX || net > high ? net : high;
}

// What is remembered of stacks was in another region.
static void forget_stacks(struct thread *thread, uint32_t id) {
    if (thread->nest.id == id) return;
    thread->nest.id = id;
    thread->seen = (struct walk_seen){0};
    stack_cache_reset(&thread->recall);
}

// The slot's last thread may have ended in a region.
void region_stack_reset(struct thread *thread) {
    forget_stacks(thread, 0);
    thread->nest.depth = thread->nest.is_off = 0;
    thread->nest.high_bytes = INT64_MAX;
    for (unsigned i = 0; i < CAIRN_WRAP_HEAPS; i++) thread->wrapped[i] = 0;
}

bool region_stack_begin(struct thread *thread, const char *name) {
    bool is_named = name && name[0];
    return region_stack_begin_scope(
        thread, is_named ? scope_of_name(CAIRN_SCOPE_REGION, thread->nest.id, name) : 0);
}

bool region_stack_begin_scope(struct thread *thread, uint32_t id) {
    struct region_stack *nest = &thread->nest;
    const struct cairn_thread *record = thread->record;
    if (!nest->levels) nest->levels = sys_map(NEST_LEVELS * sizeof *nest->levels);
    if (!nest->levels) return false;
    if (nest->depth < NEST_LEVELS) {
        bool is_watched = nest->high_bytes != INT64_MAX;
        nest->levels[nest->depth] = (struct region_stack_level){
            .outer_id = nest->id,
            .outer_high_bytes = is_watched ? high_now(thread) : INT64_MAX,
            .allocations = record->allocations,
            .frees = cairn_thread_frees(record),
            .allocated_bytes = record->allocated_bytes,
            .net_bytes = record->net_bytes,
        };
        if (id) __atomic_fetch_add(&scope_at(id)->entries, 1, __ATOMIC_RELAXED);
        forget_stacks(thread, id ? id : nest->id);
        nest->high_bytes = record->net_bytes;
        set_bound(thread);
    }
    nest->depth++;
    return true;
}

bool region_stack_look(struct thread *thread, struct region_stack_figures *figures) {
    const struct region_stack *nest = &thread->nest;
    const struct cairn_thread *record = thread->record;
    if (!nest->depth) return false;
    uint32_t at = nest->depth < NEST_LEVELS ? nest->depth : NEST_LEVELS;
    const struct region_stack_level *level = &nest->levels[at - 1];
    uint64_t frees = cairn_thread_frees(record);  // an estimate may sink
    *figures = (struct region_stack_figures){
        .allocations = record->allocations - level->allocations,
        .frees = frees > level->frees ? frees - level->frees : 0,
        .allocated_bytes = record->allocated_bytes - level->allocated_bytes,
        .net_bytes = record->net_bytes - level->net_bytes,
        .rise_bytes = high_now(thread) - level->net_bytes,
    };
    return true;
}

static void keep_rise(uint32_t id, int64_t rise_bytes) {
    int64_t *place = &scope_at(id)->rise_bytes, there = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (rise_bytes > there && !__atomic_compare_exchange_n(place, &there, rise_bytes, false,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

bool region_stack_end(struct thread *thread, struct region_stack_figures *figures) {
    struct region_stack *nest = &thread->nest;
    if (!region_stack_look(thread, figures)) return false;
    if (--nest->depth >= NEST_LEVELS) return true;
    const struct region_stack_level *level = &nest->levels[nest->depth];
    int64_t high = high_now(thread);
    if (nest->id != level->outer_id) keep_rise(nest->id, figures->rise_bytes);
    forget_stacks(thread, level->outer_id);
    nest->high_bytes = level->outer_high_bytes;
    if (nest->high_bytes != INT64_MAX && high > nest->high_bytes) nest->high_bytes = high;
    set_bound(thread);
    return true;
}

void region_stack_switch(struct thread *thread, bool is_on) {
    thread->nest.is_off = !is_on;
    if (is_on) return;
    thread->line->left_bytes = 0;
    thread->seen = (struct walk_seen){0};
    stack_cache_reset(&thread->recall);
    thread->trace.generation = rule_generation() - 1;  // the last one never comes back
}

int64_t region_stack_thread_high(struct thread *thread) {
    struct region_stack *nest = &thread->nest;
    int64_t high = high_now(thread);
    uint32_t count = nest->depth < NEST_LEVELS ? nest->depth : NEST_LEVELS;
    for (uint32_t i = 0; i < count; i++) {
        int64_t *outer = &nest->levels[i].outer_high_bytes;
        if (*outer == INT64_MAX) *outer = high;  // from now on
        if (*outer > high) high = *outer;
    }
    if (nest->high_bytes == INT64_MAX) nest->high_bytes = high;
    set_bound(thread);
    return high;
}
