// SPDX-License-Identifier: Apache-2.0
// What the values of a row say: whether the sides differ by more than their spread.
#include <stdlib.h>
#include <string.h>

#include "tool/render/diff.h"

const char *change_word(enum change_kind kind) {
    static const char *const words[CHANGE_KINDS] = {
        "same", "new", "gone", "grown", "shrunk", "not at this peak", "only at this peak"};
    return words[kind];
}

static int compare_values(const void *a, const void *b) {
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

// Lowest, median and highest value of a side. Sides are short: at most this many are looked at.
struct side {
    int64_t low, median, high;
};
enum { SIDE_MAX = 64 };

static struct side side_of(const int64_t *values, size_t count) {
    int64_t sorted[SIDE_MAX] = {0};
    if (count > SIDE_MAX) count = SIDE_MAX;
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare_values);
    size_t below = (count - 1) / 2, above = count / 2;  // the same for an odd number
    uint64_t gap = (uint64_t)sorted[above] - (uint64_t)sorted[below];
    int64_t median = (int64_t)((uint64_t)sorted[below] + gap / 2);
    return (struct side){sorted[0], median, sorted[count - 1]};
}

double diff_chance(const struct diff *diff) {
    size_t all = diff->recording_count, first = diff->first_count, second = all - first;
    double orders = 1;
    if (first < DIFF_RUNS_LEAST || second < DIFF_RUNS_LEAST) return 0;
    for (size_t i = 1; i <= first; i++) orders *= (double)(second + i) / (double)i;
    return 2 / orders;
}

// A small difference that noise makes now and then. Where nothing varied there is no noise.
static void doubt(const struct diff *diff, bool has_varied, struct change *change) {
    const double likely = 0.05;
    if (!has_varied || change->kind == CHANGE_NONE) return;
    change->chance = diff_chance(diff);
    int64_t least = diff->doubtful_below;
    bool is_small = change->delta < least && change->delta > -least;
    if (change->chance <= likely || !is_small) return;
    change->kind = CHANGE_NONE;
    change->is_noise = true;
}

static struct change counted_change(const struct diff *diff, const int64_t *values) {
    size_t second_count = diff->recording_count - diff->first_count;
    struct side before = side_of(values, diff->first_count);
    struct side after = side_of(values + diff->first_count, second_count);
    bool is_apart = after.low > before.high || after.high < before.low;
    int64_t difference = (int64_t)((uint64_t)after.median - (uint64_t)before.median);
    struct change change = {.before = before.median, .after = after.median, .delta = difference};
    bool differs = before.low != after.low || before.high != after.high ||
                   before.low != before.high || after.low != after.high;
    if (!is_apart)
        change.is_noise = differs;
    else if (!before.high)
        change.kind = CHANGE_NEW;
    else if (!after.high)
        change.kind = CHANGE_GONE;
    else
        change.kind = after.low > before.high ? CHANGE_GROWN : CHANGE_SHRUNK;
    doubt(diff, before.low != before.high || after.low != after.high, &change);
    return change;
}

// Variance of the mean of recordings `from` to `end`, which is as sure as their median at least.
static double side_variance(const struct diff *diff, const int64_t *values,
                            const struct diff_estimate *estimates, size_t from, size_t end) {
    double sum = 0, count = (double)(end - from);
    for (size_t i = from; i < end; i++)
        sum += values[i] || i >= diff->unseen.count ? estimates[i].variance + estimates[i].missed
                                                    : diff->unseen.items[i];
    return sum / (count * count);
}

struct change diff_change(const struct diff *diff, const int64_t *values,
                          const struct diff_estimate *estimates) {
    size_t first = diff->first_count;
    struct change change = counted_change(diff, values);
    if (!estimates) return change;
    change.interval =
        estimate_interval(side_variance(diff, values, estimates, 0, first) +
                          side_variance(diff, values, estimates, first, diff->recording_count));
    for (size_t i = 0; i < diff->recording_count; i++)
        change.samples = figures_add(change.samples, estimates[i].samples);
    bool is_within = change.delta <= change.interval && change.delta >= -change.interval;
    if (change.kind == CHANGE_NONE || !is_within) return change;
    change.kind = CHANGE_NONE;
    change.is_noise = true;
    return change;
}

// Says whether a side allocated at all.
static bool has_calls(const int64_t *calls, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (calls[i] > 0) return true;
    return false;
}

struct change diff_row_change(const struct diff *diff, size_t row) {
    size_t first = row * diff->recording_count, before = diff->first_count;
    struct change change = diff_change(diff, diff_values(diff, row), &diff->estimates.items[first]);
    const int64_t *calls = &diff->calls.items[first];
    if (!diff->is_of_peak) return change;
    if (change.kind == CHANGE_GONE && has_calls(calls + before, diff->recording_count - before))
        change.kind = CHANGE_NOT_AT_PEAK;
    if (change.kind == CHANGE_NEW && has_calls(calls, before)) change.kind = CHANGE_ONLY_AT_PEAK;
    return change;
}

struct ranked {
    uint64_t size;
    uint32_t row;
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *first = a, *second = b;
    if (first->size != second->size) return first->size < second->size ? 1 : -1;
    return (first->row > second->row) - (first->row < second->row);
}

uint32_t *diff_rank(const struct diff *diff, size_t *count, size_t *noise_count) {
    struct ranked *ranked = calloc(diff->rows.count + 1, sizeof *ranked);
    uint32_t *rows = calloc(diff->rows.count + 1, sizeof *rows);
    *count = *noise_count = 0;
    if (!ranked || !rows) {
        free(ranked);
        free(rows);
        return NULL;
    }
    for (uint32_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_row_change(diff, i);
        *noise_count += change.is_noise;
        uint64_t delta = (uint64_t)change.delta, size = change.delta < 0 ? 0 - delta : delta;
        if (change.kind != CHANGE_NONE) ranked[(*count)++] = (struct ranked){size, i};
    }
    qsort(ranked, *count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < *count; i++) rows[i] = ranked[i].row;
    free(ranked);
    return rows;
}
