// SPDX-License-Identifier: Apache-2.0
// The total that a thread sees is live_bytes + (its net - what it has published). While it is alone
// that is exact at every time, published or not: live_bytes minus published_bytes is then a
// constant, the thread's base.
#include "runtime/record/totals.h"

#include "format/sample.h"
#include "runtime/record/snapshots.h"
#include "runtime/record/timeline.h"
#include "runtime/sink/sink.h"
#include "runtime/sys/sys.h"
#include "runtime/thread/slots.h"

// Bounds of what one thread holds back, and the share of the peak it may be. A single thread is
// exact anyway and publishes for the timeline only.
enum { BATCH_MIN_BYTES = 256, BATCH_ALONE_MIN_BYTES = 4096, BATCH_MAX_BYTES = 64 << 10 };
enum { BATCH_PEAK_SHARE = 256 };

static struct cairn_totals *totals(void) {
    return &sink.header->totals;
}

static bool is_threaded(void) {
    return __atomic_load_n(&totals()->is_threaded, __ATOMIC_ACQUIRE);
}

// The total was `bytes` and is about to sink: unless another thread noted more, this is the peak.
static void peak_note(uint64_t bytes, int64_t blocks) {
    struct cairn_totals *shared = totals();
    uint64_t highest = __atomic_load_n(&shared->peak_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes <= highest) return;
    } while (!__atomic_compare_exchange_n(&shared->peak_bytes, &highest, bytes, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    uint32_t epoch = __atomic_add_fetch(&shared->epoch, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&shared->peak_epoch, epoch, __ATOMIC_RELEASE);
    shared->peak_blocks = (uint64_t)blocks;
    shared->peak_after_ns = shared->peak_ns;
    shared->peak_ns = sink_now_coarse_ns();
}

static int64_t net_blocks(const struct thread *thread) {
    const struct cairn_thread *record = thread->record;
    if (record->is_sampled) return record->estimated_blocks / CAIRN_SAMPLE_ONE;
    return (int64_t)(record->allocations - record->frees);
}

COLD void totals_peak_left(struct thread *thread) {
    struct cairn_totals *shared = totals();
    int64_t bytes = shared->live_bytes + thread->record->net_bytes - thread->published_bytes;
    int64_t blocks = shared->live_blocks + net_blocks(thread) - thread->published_blocks;
    bool is_process_peak = thread->record->net_bytes > thread->total_peak_bytes;
    if (is_process_peak) thread->total_peak_bytes = thread->record->net_bytes;
    region_stack_note(thread);
    if (is_process_peak && bytes > 0) peak_note((uint64_t)bytes, blocks);
}

static int64_t batch_bytes(int64_t live_bytes) {
    int64_t highest = (int64_t)__atomic_load_n(&totals()->peak_bytes, __ATOMIC_RELAXED);
    int64_t least = is_threaded() ? BATCH_MIN_BYTES : BATCH_ALONE_MIN_BYTES;
    int64_t share = (highest > live_bytes ? highest : live_bytes) / BATCH_PEAK_SHARE;
    if (!is_threaded()) return share > least ? share : least;
    share /= slots_count();
    if (share < least) return least;
    return share < BATCH_MAX_BYTES ? share : BATCH_MAX_BYTES;
}

// What gdb may print, without knowing anything of the recording.
#define EXPORT __attribute__((visibility("default"), used))
EXPORT uint64_t TOTAL_ALLOCS, TOTAL_ALLOCATED_BYTES;  // (atomic)

void totals_begin(void) {
    TOTAL_ALLOCS = TOTAL_ALLOCATED_BYTES = 0;
}

void totals_publish_calls(struct thread *thread) {
    struct cairn_totals *shared = totals();
    const struct cairn_thread *record = thread->record;
    uint64_t bytes = record->allocated_bytes - thread->published_allocated;
    uint64_t calls = record->allocations - thread->published_allocations;
    __atomic_fetch_add(&shared->allocated_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&shared->allocations, calls, __ATOMIC_RELAXED);
    __atomic_fetch_add(&TOTAL_ALLOCATED_BYTES, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&TOTAL_ALLOCS, calls, __ATOMIC_RELAXED);
    thread->published_allocated = record->allocated_bytes;
    thread->published_allocations = record->allocations;
}

COLD void totals_publish(struct thread *thread, int64_t coming_bytes, int64_t coming_blocks) {
    struct cairn_totals *shared = totals();
    int64_t bytes = thread->record->net_bytes + coming_bytes;
    int64_t blocks = net_blocks(thread) + coming_blocks;
    int64_t change = bytes - thread->published_bytes;
    int64_t blocks_change = blocks - thread->published_blocks;
    int64_t before = __atomic_fetch_add(&shared->live_bytes, change, __ATOMIC_RELAXED);
    int64_t blocks_before =
        __atomic_fetch_add(&shared->live_blocks, blocks_change, __ATOMIC_RELAXED);
    if (is_threaded() && change < 0 && before > 0) peak_note((uint64_t)before, blocks_before);
    region_stack_note(thread);
    uint64_t now_ns = sink_now_ns();
    // Of several threads that publish often most notes would only move lines between processors.
    if (!is_threaded() || !timeline_has(&thread->point, before + change, now_ns)) {
        totals_publish_calls(thread);
        timeline_note(&thread->point, before + change, blocks_before + blocks_change, now_ns);
    }
    // what is about to change has not
    snapshots_look(before + change - coming_bytes, blocks_before + blocks_change - coming_blocks);
    uint64_t own_bytes = sys_told_own_bytes();
    if (sink.header->own_bytes != own_bytes) sink.header->own_bytes = own_bytes;
    int64_t batch = batch_bytes(before + change);
    thread->published_bytes = bytes;
    thread->published_blocks = blocks;
    thread->high_bytes = bytes + batch;
    thread->low_bytes = bytes - batch;
    if (is_threaded() && (uint64_t)batch > shared->batch_bytes)
        shared->batch_bytes = (uint64_t)batch;
}

// What the first thread has not published yet is published for it; its next event notices by its
// bounds, all of which it has passed then.
COLD void totals_share(struct thread *first) {
    struct cairn_totals *shared = totals();
    int64_t bytes = __atomic_load_n(&first->record->net_bytes, __ATOMIC_RELAXED);
    int64_t blocks = net_blocks(first);
    shared->live_bytes += bytes - first->published_bytes;
    shared->live_blocks += blocks - first->published_blocks;
    first->published_bytes = bytes;
    first->published_blocks = blocks;
    shared->batch_bytes = BATCH_MIN_BYTES;
    __atomic_store_n(&shared->is_threaded, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&first->total_peak_bytes, INT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&first->peak_bytes, INT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&first->high_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&first->low_bytes, bytes, __ATOMIC_RELEASE);
}

void totals_enter(struct thread *thread) {
    const struct cairn_totals *shared = totals();
    int64_t net = thread->record->net_bytes;
    thread->published_bytes = net;
    thread->published_blocks = net_blocks(thread);
    thread->published_allocated = thread->record->allocated_bytes;
    thread->published_allocations = thread->record->allocations;
    thread->high_bytes = net + BATCH_MIN_BYTES;
    thread->low_bytes = net - BATCH_MIN_BYTES;
    thread->total_peak_bytes =
        is_threaded() ? INT64_MAX : (int64_t)shared->peak_bytes - shared->live_bytes + net;
    thread->peak_bytes = thread->total_peak_bytes;
    region_stack_reset(thread);
}
