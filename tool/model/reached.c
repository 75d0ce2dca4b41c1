// SPDX-License-Identifier: Apache-2.0
#include "tool/model/reached.h"

// Bytes that threads hold back before they note them, as in the runtime: together a share of the
// peak, each at least the smallest batch.
enum { ALONE_MIN_BYTES = 4096, PEAK_SHARE = 256, BATCH_MIN_BYTES = 256, THREADS_MOST = 1024 };

// No process has more than the address space: larger numbers are damage.
static int64_t clamp(uint64_t bytes) {
    const uint64_t bytes_max = (uint64_t)1 << 47;
    return (int64_t)(bytes < bytes_max ? bytes : bytes_max);
}

// Returns how many threads lived together at most: a slot serves one after the other.
static size_t count_slots(const struct recording *recording) {
    const size_t count = recording_count(recording, CAIRN_SECTION_THREADS);
    struct cairn_thread thread;
    size_t most = 1;
    for (size_t i = 0; i < count && most < THREADS_MOST; i++) {
        if (!recording_thread(recording, i, &thread) || thread.slot == CAIRN_SLOT_SHARED) continue;
        if (thread.slot >= most) most = (size_t)thread.slot + 1;
    }
    return most < THREADS_MOST ? most : THREADS_MOST;
}

// Returns what a thread that is alone holds back at a total of so many bytes.
static int64_t batch_alone(int64_t bytes) {
    const int64_t share = bytes / PEAK_SHARE;
    return share < ALONE_MIN_BYTES ? ALONE_MIN_BYTES : share;
}

int64_t recording_margin_bytes(const struct recording *recording, uint64_t peak_bytes) {
    const int64_t share = batch_alone(clamp(peak_bytes));
    if (!recording->header.totals.is_threaded) return share;
    return share + (int64_t)count_slots(recording) * BATCH_MIN_BYTES;
}

// Finds the last used point before `index`. False: there is none.
static bool point_before(const struct recording *recording, uint64_t *index,
                         struct cairn_point *point) {
    while ((*index)-- > 0)
        if (recording_point(recording, (size_t)*index, point) && point->is_used) return true;
    return false;
}

// Tells totals that are counted from those of threads that note late what they hold, and from
// estimates.
static bool are_totals_exact(const struct recording *recording) {
    struct cairn_sampling sampling;
    return !recording->header.totals.is_threaded && !recording_sampling(recording, &sampling);
}

// Returns when the highest total but the peak was left, which came later.
static uint64_t lower_left_ns(const struct recording *recording, uint64_t bytes) {
    const struct cairn_totals *totals = &recording->header.totals;
    return bytes > totals->peak_bytes ? totals->peak_ns : totals->peak_after_ns;
}

// Returns when the timeline last rose by a batch from `index` on, a point at which all was reached
// but for less than a batch; `reached_ns` if it never did.
static uint64_t last_rise_ns(const struct recording *recording, uint64_t index, uint64_t left_ns,
                             uint64_t reached_ns) {
    const uint64_t point_ns = recording->header.totals.point_ns;
    struct cairn_point point;
    int64_t level = 0;
    for (; recording_point(recording, (size_t)index, &point) && index * point_ns < left_ns;
         index++) {
        if (!point.is_used) continue;
        const bool is_rise = level && point.max_bytes - level >= batch_alone(level);
        if (is_rise) reached_ns = (index + 1) * point_ns;
        if (is_rise || !level) level = point.max_bytes;
    }
    return reached_ns < left_ns ? reached_ns : left_ns;
}

uint64_t recording_reached_ns(const struct recording *recording, uint64_t left_ns, uint64_t bytes) {
    const uint64_t point_ns = recording->header.totals.point_ns;
    const int64_t least = clamp(bytes) - recording_margin_bytes(recording, bytes);
    struct cairn_point point;
    uint64_t count = recording_count(recording, CAIRN_SECTION_POINTS), reached_ns = left_ns;
    uint64_t index = point_ns ? left_ns / point_ns : 0, first = UINT64_MAX;
    if (index > count) index = count;  // the time may be damaged
    while (point_before(recording, &index, &point) && point.last_bytes >= least) {
        uint64_t end_ns = (index + 1) * point_ns;
        reached_ns = end_ns < left_ns ? end_ns : left_ns;
        first = index;
        if (point.min_bytes < least) break;
    }
    if (first == UINT64_MAX || !are_totals_exact(recording)) return reached_ns;
    reached_ns = last_rise_ns(recording, first, left_ns, reached_ns);
    const uint64_t after_ns = lower_left_ns(recording, bytes);
    return after_ns > reached_ns && after_ns < left_ns ? after_ns : reached_ns;
}

uint64_t recording_near_ns(const struct recording *recording, uint64_t reached_ns, uint64_t bytes,
                           uint64_t error_bytes) {
    enum { NOTABLE_PARTS = 20 };
    const uint64_t point_ns = recording->header.totals.point_ns;
    const uint64_t notable_ns = recording_last_ns(recording) / NOTABLE_PARTS;
    const int64_t least = clamp(bytes) - clamp(error_bytes);
    const size_t count = recording_count(recording, CAIRN_SECTION_POINTS);
    struct cairn_point point;
    if (!error_bytes || least <= 0 || reached_ns <= notable_ns) return 0;
    const uint64_t until_ns = reached_ns - notable_ns;
    for (size_t i = 0; i < count && point_ns && i < until_ns / point_ns; i++)
        if (recording_point(recording, i, &point) && point.is_used && point.max_bytes >= least)
            return (i + 1) * point_ns;
    return 0;
}
