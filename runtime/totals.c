// SPDX-License-Identifier: Apache-2.0
#include "runtime/totals.h"

#include "runtime/sink/sink.h"
#include "runtime/sys/sys.h"

// Bounds of what one thread holds back, and the share of the peak it may be.
enum { BATCH_MIN_BYTES = 256, BATCH_MAX_BYTES = 64 << 10, BATCH_PEAK_SHARE = 256 };

static struct cairn_totals *totals(void) {
    return &sink.header->totals;
}

static uint64_t now_ns(void) {
    return sys_clock_coarse_ns() - sink.header->start_clock_ns;
}

// The total was `bytes` and is about to sink: unless another thread noted more, this is the peak.
static void peak_note(uint64_t bytes, int64_t blocks) {
    struct cairn_totals *shared = totals();
    uint64_t highest = __atomic_load_n(&shared->peak_bytes, __ATOMIC_RELAXED);
    do {
        if (bytes <= highest) return;
    } while (!__atomic_compare_exchange_n(&shared->peak_bytes, &highest, bytes, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    uint32_t epoch = __atomic_add_fetch(&shared->epoch, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->peak_epoch, epoch, __ATOMIC_RELAXED);
    shared->peak_blocks = (uint64_t)blocks;
    shared->peak_ns = now_ns();
}

static int64_t net_blocks(const struct thread *thread) {
    return (int64_t)(thread->record->allocations - thread->record->frees);
}

COLD void totals_peak_left(struct thread *thread) {
    thread->peak_bytes = thread->record->net_bytes;
    peak_note((uint64_t)thread->record->net_bytes, net_blocks(thread));
}

static int64_t batch_bytes(void) {
    uint64_t share = __atomic_load_n(&totals()->peak_bytes, __ATOMIC_RELAXED) / BATCH_PEAK_SHARE;
    share /= gate_thread_count();
    if (share < BATCH_MIN_BYTES) return BATCH_MIN_BYTES;
    return share < BATCH_MAX_BYTES ? (int64_t)share : BATCH_MAX_BYTES;
}

COLD void totals_publish(struct thread *thread, int64_t coming_bytes, int64_t coming_blocks) {
    struct cairn_totals *shared = totals();
    int64_t bytes = thread->record->net_bytes + coming_bytes;
    int64_t blocks = net_blocks(thread) + coming_blocks;
    int64_t change = bytes - thread->published_bytes;
    int64_t batch = batch_bytes();
    int64_t before = __atomic_fetch_add(&shared->live_bytes, change, __ATOMIC_RELAXED);
    int64_t blocks_before = __atomic_fetch_add(&shared->live_blocks,
                                               blocks - thread->published_blocks, __ATOMIC_RELAXED);
    if (change < 0 && before > 0) peak_note((uint64_t)before, blocks_before);
    thread->published_bytes = bytes;
    thread->published_blocks = blocks;
    thread->high_bytes = bytes + batch;
    thread->low_bytes = bytes - batch;
    if ((uint64_t)batch > shared->batch_bytes) shared->batch_bytes = (uint64_t)batch;
}

// The first thread's own total becomes the published one; its next event notices by its bounds.
COLD void totals_share(struct thread *first) {
    struct cairn_totals *shared = totals();
    int64_t bytes = __atomic_load_n(&first->record->net_bytes, __ATOMIC_RELAXED);
    int64_t blocks = net_blocks(first);
    first->published_bytes = bytes;
    first->published_blocks = blocks;
    shared->live_bytes = bytes;
    shared->live_blocks = blocks;
    shared->batch_bytes = BATCH_MIN_BYTES;
    __atomic_store_n(&shared->is_threaded, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&first->peak_bytes, INT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&first->high_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&first->low_bytes, bytes, __ATOMIC_RELEASE);
}

void totals_enter(struct thread *thread) {
    thread->published_bytes = thread->record->net_bytes;
    thread->published_blocks = net_blocks(thread);
    if (!totals()->is_threaded) {
        thread->high_bytes = INT64_MAX;
        thread->low_bytes = INT64_MIN;
        thread->peak_bytes = (int64_t)totals()->peak_bytes;
        return;
    }
    thread->peak_bytes = INT64_MAX;
    thread->high_bytes = thread->published_bytes + BATCH_MIN_BYTES;
    thread->low_bytes = thread->published_bytes - BATCH_MIN_BYTES;
}
