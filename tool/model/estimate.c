// SPDX-License-Identifier: Apache-2.0
#include "tool/model/estimate.h"

#include <math.h>
#include <string.h>

#include "format/sample.h"

static int64_t add_wrapping(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static bool is_estimate(const struct estimate *estimate) {
    return estimate->samples || estimate->bytes_variance != 0 || estimate->bytes_weight > 0;
}

static bool is_bounded(const struct estimate *estimate) {
    return estimate->own_bytes_most + estimate->before_bytes_most > 0 || !is_estimate(estimate);
}

// What is not known of one is not known of both.
static void add_most(struct estimate *sum, const struct estimate *added) {
    bool is_known = is_bounded(sum) && is_bounded(added);
    sum->own_bytes_most = is_known ? fmax(sum->own_bytes_most, added->own_bytes_most) : 0;
    sum->own_blocks_most = is_known ? fmax(sum->own_blocks_most, added->own_blocks_most) : 0;
    sum->before_bytes_most = is_known ? fmax(sum->before_bytes_most, added->before_bytes_most) : 0;
    sum->before_blocks_most =
        is_known ? fmax(sum->before_blocks_most, added->before_blocks_most) : 0;
}

// An estimate that nothing can be missing from has no limit to add.
static double limit_of(double weight, double limit, double added_weight, double added) {
    if (!(weight > 0)) return added;
    if (!(added_weight > 0)) return limit;
    return limit > 0 && added > 0 ? fmax(limit, added) : 0;
}

// All but the variances.
static void add_samples(struct estimate *sum, const struct estimate *added) {
    add_most(sum, added);
    sum->samples = add_wrapping(sum->samples, added->samples);
    sum->uncertain += added->uncertain;
    sum->extra_blocks += added->extra_blocks;
    sum->bytes_over += added->bytes_over;
    sum->blocks_over += added->blocks_over;
    sum->bytes_limit =
        limit_of(sum->bytes_weight, sum->bytes_limit, added->bytes_weight, added->bytes_limit);
    sum->blocks_limit =
        limit_of(sum->blocks_weight, sum->blocks_limit, added->blocks_weight, added->blocks_limit);
    sum->bytes_weight = fmax(sum->bytes_weight, added->bytes_weight);
    sum->blocks_weight = fmax(sum->blocks_weight, added->blocks_weight);
}

void estimate_add(struct estimate *sum, const struct estimate *added) {
    add_samples(sum, added);
    sum->bytes_variance += added->bytes_variance;
    sum->blocks_variance += added->blocks_variance;
}

void estimate_forget_limits(struct estimate *estimate) {
    estimate->bytes_limit = estimate->blocks_limit = 0;
    estimate->own_bytes_most = estimate->own_blocks_most = 0;
    estimate->bytes_least = estimate->blocks_least = 0;
    estimate->before_bytes_most = estimate->before_blocks_most = 0;
}

int64_t estimate_whole_blocks(uint64_t parts) {
    const uint64_t half = CAIRN_SAMPLE_ONE / 2;
    bool is_negative = (int64_t)parts < 0;
    return (int64_t)(is_negative ? parts - half : parts + half) / CAIRN_SAMPLE_ONE;
}

static double positive(double value) {
    return value > 0 ? value : 0;
}

double estimate_related(double variance, double added) {
    double deviation = sqrt(positive(variance)) + sqrt(positive(added));
    return deviation * deviation;
}

void estimate_add_related(struct estimate *sum, const struct estimate *added) {
    add_samples(sum, added);
    sum->bytes_variance = estimate_related(sum->bytes_variance, added->bytes_variance);
    sum->blocks_variance = estimate_related(sum->blocks_variance, added->blocks_variance);
}

// A damaged file may hold any number.
static int64_t whole(double value) {
    const double most = 0x1p62;
    return value < most ? (int64_t)value : (int64_t)most;
}

static const double deviations = 1.96;

// What is left of sums that cancel is below a byte.
int64_t estimate_interval(double variance) {
    return variance > 0 ? whole(deviations * sqrt(variance)) : 0;
}

int64_t estimate_bytes_most(const struct estimate *estimate) {
    return whole(estimate->own_bytes_most + estimate->before_bytes_most);
}

int64_t estimate_blocks_most(const struct estimate *estimate) {
    return whole(estimate->own_blocks_most + estimate->before_blocks_most);
}

// A little more than the square, so that the interval of it is the same again.
double estimate_variance(int64_t interval) {
    const double slack = 1e-6;
    double deviation = ((double)interval + (interval ? slack : 0)) / deviations;
    return deviation * deviation;
}

struct estimate estimate_of_interval(int64_t interval_bytes, int64_t samples) {
    return (struct estimate){.samples = samples,
                             .uncertain = (double)samples,
                             .bytes_variance = estimate_variance(interval_bytes)};
}

// A sample's share of `uncertain` is 0.92 to 1, so few of them are counted exactly.
int64_t estimate_samples(const struct estimate *estimate) {
    const double noise = 0.05;
    int64_t count = whole(ceil(positive(estimate->uncertain - noise)));
    return estimate->samples > 0 && count > estimate->samples ? estimate->samples : count;
}

int64_t estimate_certain(const struct estimate *estimate) {
    int64_t uncertain = estimate_samples(estimate);
    return estimate->samples > uncertain ? estimate->samples - uncertain : 0;
}

// The sum of (1/p - 1)^2: a variance is the sum of (1/p - 1)^2 + (1/p - 1).
static double squares_of(const struct estimate *estimate) {
    return positive(estimate->blocks_variance - estimate->extra_blocks);
}

// Of blocks, as a fraction too; certain samples have the weight 0 in these sums.
static double effective_of(const struct estimate *estimate) {
    double squares = squares_of(estimate), count = (double)estimate_samples(estimate);
    if (!(estimate->extra_blocks > 0) || !(squares > 0)) return count;
    return fmin(count, estimate->extra_blocks * estimate->extra_blocks / squares);
}

int64_t estimate_block_samples(const struct estimate *estimate) {
    return whole(effective_of(estimate) + 0.5);
}

// What is missed is missed by Poisson's law: at no sample the upper limit of 95 % is 3.7 samples,
// or 1.96 roots of 3.5. The more samples there are, the less of that is needed.
static const double missed_most = 3.5, missed_least = 1;
static const double many_samples = 20;

// With many samples the mean of their weights is known: T, or less than the highest T there was.
static double missed_bytes(const struct estimate *estimate) {
    double count = (double)estimate_samples(estimate), share = fmin(count / many_samples, 1);
    double missed = missed_most - (missed_most - missed_least) * share;
    double squares = estimate->bytes_weight * estimate->bytes_weight;
    if (share >= 1) squares = fmin(squares, positive(estimate->bytes_variance) / count);
    return missed * squares;
}

// Adds what was taken off the value, so that the interval ends above where it did.
static int64_t with_over(int64_t interval, double over) {
    return over > 0 ? whole((double)interval + ceil(over)) : interval;
}

static int64_t bytes_interval(const struct estimate *estimate) {
    double weight = estimate->bytes_weight;
    int64_t interval =
        estimate_interval(positive(estimate->bytes_variance) + missed_bytes(estimate));
    if (!(estimate->bytes_limit > 0)) return interval;
    double seldom = weight > 0 ? positive(estimate->bytes_variance) / weight : 0;
    double most = fmax(estimate->bytes_limit - seldom, estimate_unsure_bytes(estimate));
    return (int64_t)fmin((double)interval, ceil(most));
}

// Where sizes differ a lot, the smallest ones are few among the samples and many among the blocks;
// effective samples are few then, and less than half of the samples.
static double missed_blocks(const struct estimate *estimate) {
    double effective = effective_of(estimate);
    double seen = estimate->extra_blocks > 0 ? squares_of(estimate) / estimate->extra_blocks : 0;
    bool is_uniform = 2 * effective >= (double)estimate_samples(estimate);
    if (effective >= many_samples && is_uniform) return missed_least * seen * seen;
    double fading = effective > many_samples ? many_samples / effective : 1;
    double weight = fmax(seen, estimate->blocks_weight * fading);
    return missed_most * weight * weight;
}

int64_t estimate_bytes_interval(const struct estimate *estimate) {
    return with_over(bytes_interval(estimate), estimate->bytes_over);
}

static int64_t blocks_interval(const struct estimate *estimate) {
    int64_t interval =
        estimate_interval(positive(estimate->blocks_variance) + missed_blocks(estimate));
    if (!(estimate->blocks_limit > 0)) return interval;
    double unsure = estimate_unsure_blocks(estimate);
    return (int64_t)fmin((double)interval, ceil(fmax(estimate->blocks_limit - unsure, unsure)));
}

int64_t estimate_blocks_interval(const struct estimate *estimate) {
    return with_over(blocks_interval(estimate), estimate->blocks_over);
}

// The bytes of a sample beyond itself vary as the blocks do that it stands for beyond itself.
double estimate_over_blocks(const struct estimate *estimate, double bytes) {
    double held = estimate->bytes_variance;
    double squares = estimate->uncertain != 0 ? held / estimate->uncertain : 0;
    return held != 0 ? fmin(bytes * sqrt(positive(squares)) / held, 1) * estimate->extra_blocks : 0;
}

void estimate_take_over(struct estimate *estimate, double bytes, double blocks, double value) {
    double share = value > 0 ? sqrt(positive(value - bytes) / value) : 1;
    double lower = value - bytes - share * (double)bytes_interval(estimate);
    double most = estimate->own_bytes_most + estimate->before_bytes_most;
    estimate->bytes_over = bytes;
    estimate->blocks_over = blocks;
    bool is_news = bytes > 0 && lower > estimate->bytes_least && !(most > 0 && lower >= most);
    if (is_news) estimate->bytes_least = floor(lower);
}

// A sample stands for T to 1.582 T bytes: k/p of a block just below T.
double estimate_unsure_bytes(const struct estimate *estimate) {
    const double most_of_rate = 1.582;
    return most_of_rate * estimate->bytes_weight * (double)estimate_samples(estimate);
}

// Each sample is a block that was there.
double estimate_unsure_blocks(const struct estimate *estimate) {
    return positive(estimate->extra_blocks);
}

// Programs have blocks so small, whether a sample met one or not.
enum { SMALLEST_BYTES = 32 };

static void find_rates(struct sampled_scale *scale, const struct cairn_sampling *sampling) {
    uint64_t least = sampling->rate_bytes, most = sampling->rate_most_bytes;
    if (sampling->rate_now_bytes && sampling->rate_now_bytes < least)
        least = sampling->rate_now_bytes;
    if (most < least) most = least;
    scale->rate_least = (double)(least ? least : 1);
    scale->rate_most = (double)(most ? most : 1);
}

static double extra_of(uint64_t parts) {
    return (double)(int64_t)parts / CAIRN_SAMPLE_ONE;
}

// The smallest size that a sample met.
static uint32_t smallest_of(const struct recording *recording, size_t id, uint32_t smallest) {
    struct cairn_sample_size sizes[CAIRN_SAMPLE_SIZES];
    if (!recording_sample_sizes(recording, id, sizes)) return smallest;
    for (size_t i = 0; i < CAIRN_SAMPLE_SIZES; i++)
        if (sizes[i].samples && sizes[i].least_bytes < smallest) smallest = sizes[i].least_bytes;
    return smallest ? smallest : 1;
}

// Allocations are counted. What was there before may itself be an estimate: the end of its
// interval.
static void find_most(struct sampled_scale *scale, const struct estimate *before,
                      struct sampled_totals totals) {
    if (!totals.is_known) return;
    scale->own_bytes = (double)totals.own_bytes;
    scale->own_blocks = (double)totals.own_blocks;
    scale->before_bytes = (double)totals.before_bytes;
    scale->before_blocks = (double)totals.before_blocks;
    if (!totals.is_before_estimate) return;
    struct estimate all = *before;
    all.bytes_weight = scale->rate_most;
    all.blocks_weight = scale->blocks_weight;
    scale->before_bytes += (double)estimate_bytes_interval(&all);
    scale->before_blocks += (double)estimate_blocks_interval(&all);
}

// The most that there can be is what certain samples were of, and what others stand for.
static void find_limits(struct sampled_scale *scale, const struct estimate *allocated,
                        uint64_t estimated_bytes) {
    double certain = (double)estimated_bytes - estimate_unsure_bytes(allocated);
    double bytes = scale->own_bytes + scale->before_bytes - fmax(certain, 0);
    double blocks = scale->own_blocks + scale->before_blocks - (double)estimate_certain(allocated);
    if (!(scale->own_blocks + scale->before_blocks > 0) || bytes < 0 || blocks < 0) return;
    scale->is_complete = bytes < 1 || blocks < 1;
    scale->bytes_limit = bytes;
    scale->blocks_limit = blocks;
}

struct sampled_scale sampled_scale_of(const struct recording *recording,
                                      struct sampled_totals totals) {
    struct sampled_scale scale = {0};
    struct cairn_sampling sampling;
    struct recorded_cell counted;
    uint32_t smallest = SMALLEST_BYTES;
    uint64_t bytes = 0;
    struct estimate sum = {0}, before = {0};
    if (!recording_sampling(recording, &sampling) || !sampling.is_on) return scale;
    find_rates(&scale, &sampling);
    for (size_t id = CAIRN_CELL_OTHER; recording_cell(recording, id, &counted); id++) {
        struct cairn_sample_cell cell;
        recording_sample_cell(recording, id, &cell);
        const struct estimate added = sampled_estimate(
            &scale, (int64_t)counted.calls, 0, cell.allocated_variance, cell.calls_variance);
        estimate_add(&sum, &added);
        if (recording_is_inherited(recording, id)) {
            estimate_add(&before, &added);
            before.extra_blocks += extra_of(cell.extra_calls);
        }
        bytes += counted.allocated_bytes;
        smallest = smallest_of(recording, id, smallest);
    }
    scale.blocks_weight = fmax(scale.rate_most / smallest, 1);
    find_most(&scale, &before, totals);
    find_limits(&scale, &sum, bytes);
    return scale;
}

struct estimate sampled_estimate(const struct sampled_scale *scale, int64_t samples,
                                 double extra_blocks, double bytes_variance,
                                 double blocks_variance) {
    double rate = scale->rate_least;
    struct estimate estimate = {.samples = samples,
                                .bytes_variance = bytes_variance,
                                .blocks_variance = blocks_variance,
                                .uncertain = rate > 0 ? bytes_variance / (rate * rate) : 0,
                                .extra_blocks = extra_blocks,
                                .own_bytes_most = scale->own_bytes,
                                .own_blocks_most = scale->own_blocks,
                                .before_bytes_most = scale->before_bytes,
                                .before_blocks_most = scale->before_blocks};
    if (scale->is_complete) return estimate;
    estimate.bytes_weight = scale->rate_most;
    estimate.blocks_weight = scale->blocks_weight;
    estimate.bytes_limit = scale->bytes_limit;
    estimate.blocks_limit = scale->blocks_limit;
    return estimate;
}

void sampled_exclude_below(const struct sampled_scale *scale, uint64_t size,
                           struct estimate *estimate) {
    double weight = size ? scale->rate_most / (double)size : estimate->blocks_weight;
    if (weight <= 1) estimate->bytes_weight = estimate->blocks_weight = 0;
    if (weight < estimate->blocks_weight) estimate->blocks_weight = weight;
}

bool sampled_has_saved_peak(const struct recording *recording, const struct recorded_cell *cell,
                            bool is_peak_at_end) {
    return cell->epoch >= recording->header.totals.peak_epoch && !is_peak_at_end;
}

void sampled_cell(const struct recording *recording, const struct sampled_scale *scale, size_t id,
                  bool has_saved_peak, const struct sampled_counts *counts,
                  struct estimate estimates[ESTIMATED_COUNT]) {
    struct cairn_sample_cell cell;
    recording_sample_cell(recording, id, &cell);
    estimates[ESTIMATED_ALLOCATED] =
        sampled_estimate(scale, counts->calls, extra_of(cell.extra_calls), cell.allocated_variance,
                         cell.calls_variance);
    estimates[ESTIMATED_EXIT] = sampled_estimate(
        scale, counts->exit, extra_of(cell.extra_calls - cell.extra_frees),
        cell.allocated_variance - cell.freed_variance, cell.calls_variance - cell.frees_variance);
    estimates[ESTIMATED_PEAK] =
        has_saved_peak
            ? sampled_estimate(scale, counts->peak, extra_of(cell.peak_extra),
                               (double)cell.peak_bytes_variance, (double)cell.peak_blocks_variance)
            : estimates[ESTIMATED_EXIT];
    bool is_before = recording_is_inherited(recording, id), is_either = id == CAIRN_CELL_OTHER;
    for (int i = 0; i < ESTIMATED_COUNT && !is_either; i++) {
        struct estimate *estimate = &estimates[i];
        if (is_before) estimate->own_bytes_most = estimate->own_blocks_most = 0;
        if (!is_before) estimate->before_bytes_most = estimate->before_blocks_most = 0;
    }
}

void sampled_sum(const struct recording *recording, const struct sampled_scale *scale,
                 bool is_peak_at_end, struct estimate estimates[ESTIMATED_COUNT]) {
    struct estimate of_cell[ESTIMATED_COUNT] = {0};
    struct recorded_cell cell;
    memset(estimates, 0, ESTIMATED_COUNT * sizeof *estimates);
    if (!recording_is_sampled(recording)) return;
    for (size_t id = CAIRN_CELL_OTHER; recording_cell(recording, id, &cell); id++) {
        if (!cell.calls && !cell.frees && !cell.freed_bytes) continue;  // not used yet
        const struct sampled_counts counts = {.calls = (int64_t)cell.calls,
                                              .peak = cell.peak_blocks,
                                              .exit = (int64_t)(cell.calls - cell.frees)};
        bool has_saved_peak = sampled_has_saved_peak(recording, &cell, is_peak_at_end);
        sampled_cell(recording, scale, id, has_saved_peak, &counts, of_cell);
        for (int i = 0; i < ESTIMATED_COUNT; i++) estimate_add(&estimates[i], &of_cell[i]);
    }
    sampled_add_unseen(scale, estimates);
}

void sampled_add_unseen(const struct sampled_scale *scale,
                        struct estimate estimates[ESTIMATED_COUNT]) {
    for (int i = 0; i < ESTIMATED_COUNT; i++)
        if (estimate_is_none(&estimates[i])) estimates[i] = sampled_estimate(scale, 0, 0, 0, 0);
}
