// SPDX-License-Identifier: Apache-2.0
#include "tool/model/sampled_peak.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

// Points with the sums of all before each: what a window of them has is a difference.
struct walk {
    const struct peak_point *points;
    const double *sums;
    size_t count;
    const struct peak_known *known;
};

static double share_of_peak(const struct peak_known *known, double level) {
    return known->bytes > 0 ? fmin(fmax(level / known->bytes, 0), 1) : 0;
}

// Returns the variance of a sum of samples where the heap is as large as `level`.
static double variance_at(const struct peak_known *known, double level) {
    return known->variance * share_of_peak(known, level);
}

// Returns how often the blocks that are samples were replaced by others meanwhile, at most.
static double turns_of(const struct peak_known *known, double level, double allocated) {
    double held = variance_at(known, level) / known->sample_bytes;
    return held > 0 ? allocated / held : 0;
}

static double allocated_before(const struct walk *walk, size_t index) {
    return index ? walk->points[index - 1].allocated_bytes : 0;
}

static double allocated_in(const struct walk *walk, size_t from, size_t length) {
    double allocated =
        walk->points[from + length - 1].allocated_bytes - allocated_before(walk, from);
    return allocated > 0 ? allocated : 0;
}

static double mean_of(const struct walk *walk, size_t from, size_t length) {
    return (walk->sums[from + length] - walk->sums[from]) / (double)length;
}

// Returns how far the highest of so many independent sums is above their mean, in deviations.
static double deviations_of(double looks) {
    return looks > 1 ? sqrt(2 * log(looks)) : 0;
}

// Returns the deviation of a window's mean. Blocks of which any may be the next to go are others
// after two turns.
static double deviation_of(const struct walk *walk, size_t from, size_t length) {
    double level = mean_of(walk, from, length);
    double turns = turns_of(walk->known, level, allocated_in(walk, from, length)) / 2;
    double independent = fmin((double)length, turns);
    return sqrt(variance_at(walk->known, level) / fmax(independent, 1));
}

// Counts what is a little below a level as well: else an unusually high sum, which few others
// reach, would be taken for one that stands alone.
static const double below_level = 1.5;

// Returns how many windows, as far as they are independent of each other, reach a level.
static double looks_at(const struct walk *walk, size_t length, double level) {
    double looks = 0;
    for (size_t from = 0; from + length <= walk->count; from += length) {
        double mean = mean_of(walk, from, length);
        if (mean < level - below_level * deviation_of(walk, from, length)) continue;
        looks += fmin(turns_of(walk->known, mean, allocated_in(walk, from, length)), 1);
    }
    return looks;
}

// The noise is that among windows which can have been the highest by it. Those below do not count,
// and which they are depends on the noise: a few rounds find it.
enum { ROUNDS = 8 };

// Returns the highest mean of so many neighbouring points, less what is noise of it.
static double level_of(const struct walk *walk, size_t length) {
    size_t highest = 0, step = length / 2 ? length / 2 : 1;
    for (size_t from = 0; from + length <= walk->count; from += step)
        if (mean_of(walk, from, length) > mean_of(walk, highest, length)) highest = from;
    double mean = mean_of(walk, highest, length), noise = 0;
    double deviation = deviation_of(walk, highest, length), level = 0;
    for (int i = 0; i < ROUNDS; i++) {
        noise = deviations_of(looks_at(walk, length, level)) * deviation;
        level = mean - noise;
    }
    return level;
}

// Returns the level below which one sum of samples among so many is at least as high as the peak:
// sums of few samples reach higher above it than those of many (the root of Poisson's law).
static double level_below(const struct peak_known *known, double looks) {
    const double skew = 6;
    double deviations = deviations_of(looks), weight = known->variance / known->bytes;
    double rest = known->bytes - weight * deviations * deviations / skew;
    double half = deviations * sqrt(weight) / 2;
    if (rest <= 0) return 0;
    double root = sqrt(half * half + rest) - half;
    return root * root;
}

// Returns the highest sum, less what is noise of it.
static double level_of_highest(const struct walk *walk) {
    const struct peak_known *known = walk->known;
    double level = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double looks = 0, least = level - below_level * sqrt(variance_at(known, level));
        for (size_t at = 0; at < walk->count; at++)
            if (walk->points[at].most_bytes >= least)
                looks += turns_of(known, walk->points[at].most_bytes, allocated_in(walk, at, 1));
        level = level_below(known, looks);
    }
    return level;
}

static double highest_level(const struct walk *walk) {
    double level = fmax(walk->known->least_bytes, level_of_highest(walk));
    for (size_t length = 1; length <= walk->count; length *= 2)
        level = fmax(level, level_of(walk, length));
    return level;
}

double sampled_peak_over(const struct peak_point *points, size_t count,
                         const struct peak_known *known) {
    double *sums = calloc(count + 1, sizeof *sums);
    double over = 0;
    bool is_noisy = known->variance > 0 && known->sample_bytes > 0 && known->bytes > 0;
    if (sums && count && is_noisy) {
        for (size_t i = 0; i < count; i++) sums[i + 1] = sums[i] + points[i].last_bytes;
        const struct walk walk = {points, sums, count, known};
        over = fmax(known->bytes - highest_level(&walk), 0);
        // no sample stands for less than nothing
        over = fmin(over, known->variance / known->sample_bytes);
    }
    free(sums);
    return over;
}

static struct peak_point point_of(const struct cairn_point *point) {
    return (struct peak_point){.last_bytes = (double)point->last_bytes,
                               .most_bytes = (double)point->max_bytes,
                               .allocated_bytes = (double)point->allocated_bytes};
}

double sampled_peak_over_of(const struct recording *recording, const struct peak_known *known) {
    size_t all = recording_count(recording, CAIRN_SECTION_POINTS), count = 0;
    if (all > CAIRN_POINT_LIMIT) all = CAIRN_POINT_LIMIT;
    struct peak_point *points = calloc(all + 1, sizeof *points);
    struct cairn_point point;
    for (size_t i = 0; points && i < all && recording_point(recording, i, &point); i++)
        if (point.is_used) points[count++] = point_of(&point);
    double over = points ? sampled_peak_over(points, count, known) : 0;
    free(points);
    return over;
}
