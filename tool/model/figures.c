// SPDX-License-Identifier: Apache-2.0
#include "tool/model/figures.h"

#include "tool/model/sampled.h"

int64_t figures_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

uint64_t figures_freed(uint64_t exact, int64_t left) {
    return left > 0 && (uint64_t)left > exact ? 0 : exact - (uint64_t)left;
}

bool figures_is_inherited(const struct cairn_thread *thread) {
    return thread->tid == 0 && thread->slot == CAIRN_SLOT_SHARED;
}

// What allocations and frees cost that are not sampled: too little to be measured one by one. A
// pair takes some nanoseconds (bench/results/performance.md).
static uint64_t passing_ns(const struct cairn_thread *thread) {
    const uint64_t pair_ns = 4;
    return thread->allocations * pair_ns;
}

static void add_thread(struct figures *figures, const struct cairn_thread *thread) {
    if (figures_is_inherited(thread)) {
        figures->inherited_blocks += thread->allocations;
        figures->inherited_bytes += thread->allocated_bytes;
    } else {
        figures->allocations += thread->allocations;
        figures->allocated_bytes += thread->allocated_bytes;
    }
    int64_t blocks = (int64_t)(thread->allocations - thread->frees);
    if (thread->is_sampled) blocks = thread->estimated_blocks / CAIRN_SAMPLE_ONE;
    figures->frees += thread->allocations - (uint64_t)blocks;
    figures->failed += thread->failed;
    figures->own_ns += thread->own_ns + (thread->is_sampled ? passing_ns(thread) : 0);
    figures->exit_bytes = figures_add(figures->exit_bytes, thread->net_bytes);
    figures->exit_blocks = figures_add(figures->exit_blocks, blocks);
}

static void add_estimates(struct figures *figures, const struct recording *recording,
                          bool is_peak_at_end) {
    struct estimate estimates[ESTIMATED_COUNT];
    struct cairn_sampling sampling;
    figures->is_sampled = recording_sampling(recording, &sampling) && sampling.is_on;
    if (!figures->is_sampled) return;
    sampled_sum(recording, is_peak_at_end, estimates);
    figures->peak_estimate = estimates[ESTIMATED_PEAK];
    figures->exit_estimate = estimates[ESTIMATED_EXIT];
    figures->rate_bytes = sampling.rate_bytes;
    figures->frees =
        figures_freed(figures->allocations + figures->inherited_blocks, figures->exit_blocks);
}

struct figures figures_of(const struct recording *recording) {
    const struct cairn_header *header = &recording->header;
    struct figures figures = {.peak_bytes = header->totals.peak_bytes,
                              .peak_ns = header->totals.peak_ns};
    struct cairn_thread thread;
    for (size_t i = 0; i < FIGURES_THREADS_MAX && recording_thread(recording, i, &thread); i++)
        add_thread(&figures, &thread);
    for (size_t reason = 0; reason < CAIRN_LOSS_MAX; reason++) figures.lost += header->lost[reason];
    // the counter of the peak moves when the heap shrinks; if it holds more now, the peak is now
    bool is_at_end = figures.exit_bytes > 0 && (uint64_t)figures.exit_bytes > figures.peak_bytes;
    if (is_at_end) {
        figures.peak_bytes = (uint64_t)figures.exit_bytes;
        figures.peak_ns = recording_last_ns(recording);
    }
    add_estimates(&figures, recording, is_at_end);
    return figures;
}

bool figures_is_small(const struct figures *figures) {
    return figures->peak_bytes < FIGURES_SMALL_BYTES;
}

bool figures_own_share(uint64_t own_ns, uint64_t cpu_ns, unsigned *thousandths) {
    const unsigned whole = 1000;
    if (!cpu_ns || !own_ns) return false;
    *thousandths = own_ns < cpu_ns ? (unsigned)((double)own_ns / (double)cpu_ns * whole) : whole;
    return true;
}
