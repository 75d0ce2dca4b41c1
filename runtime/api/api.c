// SPDX-License-Identifier: Apache-2.0
// What include/cairn/cairn.h leads to. Only cairn_api is a symbol; the rest is its table.
//
// Each function that touches the thread's state goes through the gate as a hook does: an event of a
// signal handler that interrupts it is counted as lost, and a thread's first call registers it.
#include <errno.h>
#include <stddef.h>

#include "include/cairn/cairn.h"
#include "runtime/api/context.h"
#include "runtime/api/figures.h"
#include "runtime/api/pool.h"
#include "runtime/api/report.h"
#include "runtime/async/async.h"
#include "runtime/process/real.h"
#include "runtime/process/settings.h"
#include "runtime/process/state.h"
#include "runtime/record/event.h"
#include "runtime/record/sampling.h"
#include "runtime/record/snapshots.h"
#include "runtime/sink/sink.h"
#include "runtime/stack/module.h"
#include "runtime/thread/gate.h"
#include "runtime/thread/region_stack.h"
#include "runtime/thread/slots.h"
#include "runtime/thread/stack_memory.h"
#include "runtime/unwind/unwind_cache.h"

#define EXPORT __attribute__((visibility("default"), used))

// The first to call may be a library that was preloaded behind this one, whose constructor runs
// before ours.
static void be_started(void) {
    if (likely(process_state() != PROCESS_NEW)) return;
    int saved_errno = errno;
    real_resolve();
    process_start();
    errno = saved_errno;
}

ALWAYS_INLINE struct thread *enter(uintptr_t *frame) {
    be_started();
    return gate_enter((uintptr_t)frame);
}

// A forked child that has not recorded anything yet is none: its parent's figures are not its own.
static bool is_recorded(void) {
    be_started();
    return process_state() == PROCESS_RECORDING && !slots_is_wiped();
}

static int api_is_recording(void) {
    return is_recorded();
}

static void api_set_enabled(int who, int is_enabled) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return;
    if (who != CAIRN_THREAD) cairn_switch(sink.header, !is_enabled);
    if (who == CAIRN_THREAD) {
        if (!is_enabled) __atomic_store_n(&sink.header->control.was_off, 1, __ATOMIC_RELAXED);
        region_stack_switch(thread, is_enabled);
    }
    gate_leave(thread);
}

static int api_is_enabled(int who) {
    if (!is_recorded()) return 0;
    bool is_off = who == CAIRN_THREAD && gate_self->nest.is_off;
    return gate_is_recording() && !is_off;
}

static void api_region_begin(const char *name) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return;
    region_stack_begin(thread, name);
    gate_leave(thread);
}

static int api_region_end(struct cairn_stats *in_it) {
    struct region_stack_figures figures;
    struct thread *thread = enter(EVENT_HERE());
    bool is_done = thread && region_stack_end(thread, &figures);
    if (thread) gate_leave(thread);
    if (is_done && in_it)
        *in_it = (struct cairn_stats){.allocations = figures.allocations,
                                      .frees = figures.frees,
                                      .allocated_bytes = figures.allocated_bytes,
                                      .live_bytes = figures.net_bytes,
                                      .peak_bytes = figures.rise_bytes};
    return is_done;
}

static int api_stats(int who, struct cairn_stats *stats) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return 0;
    const struct cairn_thread *record = thread->record;
    if (who == CAIRN_THREAD)
        *stats = (struct cairn_stats){.allocations = record->allocations,
                                      .frees = cairn_thread_frees(record),
                                      .allocated_bytes = record->allocated_bytes,
                                      .live_bytes = record->net_bytes,
                                      .peak_bytes = region_stack_thread_high(thread)};
    else
        figures_of_process(stats);
    gate_leave(thread);
    return 1;
}

static int api_region_stats(const char *name, struct cairn_stats *stats) {
    return name && is_recorded() && figures_of_region(name, stats);
}

static void *api_pool_create(const char *name) {
    struct thread *thread = enter(EVENT_HERE());
    struct pool *pool = thread && name ? pool_make(name) : NULL;
    if (thread) gate_leave(thread);
    return pool;
}

// A forked child's first event may be one of a pool: its recording begins with it.
static COLD bool begin_child(void) {
    struct thread *thread = enter(EVENT_HERE());
    if (thread) gate_leave(thread);
    return is_recorded();
}

// Blocks of a pool are counted as long as the process is recorded, switched on or not.
static bool is_counted(void) {
    if (likely(is_recorded())) return true;
    return process_state() == PROCESS_RECORDING && begin_child();
}

static void api_pool_alloc(void *pool, const void *block, size_t bytes) {
    if (is_counted()) pool_add(pool, block, bytes, 0);
}

static int api_pool_free(void *pool, const void *block) {
    return is_counted() && pool_take(pool, block, NULL);
}

static void api_pool_destroy(void *pool) {
    if (is_counted()) pool_end(pool);
}

static int api_pool_stats(const char *name, struct cairn_stats *stats) {
    return name && is_recorded() && figures_of_pool(name, stats);
}

static int api_snapshot(const char *label, int is_mark) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return 0;
    totals_publish(thread, 0, 0);
    bool is_taken = snapshots_take(is_mark ? CAIRN_SNAPSHOT_MARK : CAIRN_SNAPSHOT_ASKED, label);
    gate_leave(thread);
    return is_taken;
}

static bool is_unbounded(enum event_mode mode) {
    return mode == EVENT_FULL || mode == EVENT_NOTED || mode == EVENT_AGED ||
           mode == EVENT_LOGGED || mode == EVENT_LOGGED_LATE;
}

static void api_set_thresholds(size_t min_bytes, size_t max_bytes) {
    if (!is_recorded()) return;
    settings.min_bytes = min_bytes;
    settings.max_bytes = max_bytes;
    if (is_unbounded(event_mode_wanted)) event_mode_wanted = EVENT_BOUNDED;
    if (is_unbounded(probes_event.mode)) probes_event.mode = EVENT_BOUNDED;
}

static int api_set_rate(uint64_t bytes) {
    return is_recorded() && bytes && sampling_set_rate(bytes);
}

static int api_histogram(struct cairn_histogram *histogram) {
    return is_recorded() && figures_of_sizes(histogram);
}

static uint32_t api_context_with(uint32_t context, const char *key, const char *value) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return context;
    context = context_with(context, key, value);
    gate_leave(thread);
    return context;
}

static uint32_t api_context_current(void) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return 0;
    uint32_t context = context_of_thread(thread);
    gate_leave(thread);
    return context;
}

static void api_context_enter(uint32_t context) {
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return;
    context_enter(thread, context);
    gate_leave(thread);
}

static int api_context_leave(void) {
    return api_region_end(NULL);
}

// Its module is entered before a stack has it.
static uint32_t api_awaited_at(uint32_t outer, const void *code) {
    struct async_place place = {.pc = (uintptr_t)code};
    struct module_place last = {0, 0};
    if (!settings.has_async) return 0;
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return 0;
    uint32_t known = async_seek(outer, place.pc);
    if (!known && rule_find_code(place.pc, &place.start, &place.end)) {
        module_note(place.pc, &last);
        known = async_awaited(outer, &place);
    }
    gate_leave(thread);
    return known;
}

static void api_resumed(uint32_t awaiters, const void *frame) {
    if (!settings.has_async) return;
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return;
    if (unlikely(!thread->async))
        thread->async = async_thread_make(walk_cut_limit ? walk_cut_limit : stack_memory_limit());
    if (thread->async) async_resumed(thread->async, awaiters, (uintptr_t)frame);
    gate_leave(thread);
}

static void api_suspended(void) {
    if (!settings.has_async) return;
    struct thread *thread = enter(EVENT_HERE());
    if (!thread) return;
    if (thread->async) async_suspended(thread->async);
    gate_leave(thread);
}

static const struct cairn_api_table table = {
    .version = CAIRN_API_VERSION,
    .bytes = sizeof table,
    .is_recording = api_is_recording,
    .set_enabled = api_set_enabled,
    .is_enabled = api_is_enabled,
    .region_begin = api_region_begin,
    .region_end = api_region_end,
    .stats = api_stats,
    .region_stats = api_region_stats,
    .report = report_write,
    .pool_create = api_pool_create,
    .pool_alloc = api_pool_alloc,
    .pool_free = api_pool_free,
    .pool_destroy = api_pool_destroy,
    .pool_stats = api_pool_stats,
    .snapshot = api_snapshot,
    .set_thresholds = api_set_thresholds,
    .set_rate = api_set_rate,
    .histogram = api_histogram,
    .context_with = api_context_with,
    .context_current = api_context_current,
    .context_enter = api_context_enter,
    .context_leave = api_context_leave,
    .awaited_at = api_awaited_at,
    .resumed = api_resumed,
    .suspended = api_suspended,
};

EXPORT const struct cairn_api_table *cairn_api(uint32_t version) {
    return version == CAIRN_API_VERSION ? &table : NULL;
}
