// SPDX-License-Identifier: Apache-2.0
// Noisy series are cut in two at the commit where the means of both sides differ most, in units of
// how sure that difference is; each half again, until no cut stands out. How far values scatter is
// taken from the differences between neighbours within the sides, on which levels and drifts
// have no part; where samples know their noise, that is a floor.
#include "tool/history/steps.h"

#include <math.h>
#include <stdlib.h>

// A cut has to stand out by so many deviations. Among a hundred commits the largest cut of pure
// noise reaches 4 once in some hundred series.
static const double stands_out = 5;
// Of pairs of values across a cut, so many have to differ the same way.
static const double beyond_least = 0.75;
// Noise that is only seen in the values themselves needs so many of them, and three on each side.
enum { SEEN_COUNT = 12, SEEN_SIDE = 3 };
// With fewer a step is what two values agree on after so many that agreed on another.
enum { QUIET_BEFORE = 4, QUIET_AFTER = 2 };

// What stands on both sides of a cut.
struct cut {
    size_t at;  // first value of the right side; 0: none
    double score;
};

static double mean(const struct step_value *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)values[i].value / (double)count;
    return sum;
}

// What the difference of two neighbours says of the variance of a value.
static double scatter(const struct step_value *value) {
    double difference = (double)value[1].value - (double)value[0].value;
    return difference * difference / 2;
}

static double scatter_of(const struct step_value *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i + 1 < count; i++) sum += scatter(&values[i]);
    return sum;
}

static double floor_of(const struct step_value *values, size_t count) {
    const double bound_deviations = 2;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double bound = (double)values[i].bound / bound_deviations;
        double variance = values[i].deviation * values[i].deviation + bound * bound;
        if (variance > most) most = variance;
    }
    return most;
}

// Whether only what is seen tells of the noise.
static bool is_seen_only(const struct step_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i].can_vary) return true;
    return false;
}

// What the scores of all cuts of a segment have in common.
struct segment {
    size_t count;
    double sum;      // of the values
    double scatter;  // of all neighbours
    double floor;    // the least variance of a value
    bool is_seen;    // only what is seen tells of the noise
};

// Of a cut at `at`, with what lies to its left; `across`: the scatter of the neighbours at the cut.
static double score_of(const struct segment *segment, size_t at, double left_sum, double across) {
    double left_count = (double)at, right_count = (double)(segment->count - at);
    double distance = fabs((segment->sum - left_sum) / right_count - left_sum / left_count);
    double variance = segment->floor;
    if (segment->is_seen) {
        double seen = (segment->scatter - across) / (double)(segment->count - 2);
        if (seen > variance) variance = seen;
    }
    if (distance < 1) return 0;
    if (variance <= 0) return INFINITY;
    return distance / sqrt(variance * (1 / left_count + 1 / right_count));
}

// Of how many pairs the one on the right is beyond the one on the left, in the direction in which
// the means lie; equal ones count half. A few outliers move a mean, not this.
static double share_beyond(const struct step_value *values, size_t count, size_t at) {
    bool is_up = mean(values + at, count - at) > mean(values, at);
    double beyond = 0;
    for (size_t i = 0; i < at; i++)
        for (size_t j = at; j < count; j++) {
            int64_t left = values[i].value, right = values[j].value;
            beyond += left == right ? 0.5 : (right > left) == is_up;
        }
    return beyond / ((double)at * (double)(count - at));
}

static bool are_alike(const struct step_value *one, const struct step_value *other) {
    double distance = fabs((double)one->value - (double)other->value);
    return distance <= (double)one->bound + (double)other->bound;
}

static struct cut quiet_cut(const struct step_value *values, size_t count) {
    size_t at = 1, after = 1;
    while (at < count && are_alike(&values[at], &values[0])) at++;
    while (at + after < count && are_alike(&values[at + after], &values[at])) after++;
    bool is_cut = at >= QUIET_BEFORE && at < count && after >= QUIET_AFTER &&
                  values[at].commit != values[at - 1].commit;
    return (struct cut){is_cut ? at : 0, INFINITY};
}

static struct cut best_cut(const struct step_value *values, size_t count) {
    struct segment segment = {.count = count,
                              .scatter = scatter_of(values, count),
                              .floor = floor_of(values, count),
                              .is_seen = is_seen_only(values, count)};
    size_t side = segment.is_seen ? SEEN_SIDE : 1;
    struct cut best = {0};
    double left = 0;
    if (segment.is_seen && count < SEEN_COUNT) return quiet_cut(values, count);
    for (size_t i = 0; i < count; i++) segment.sum += (double)values[i].value;
    for (size_t at = 1; at + side <= count; at++) {
        left += (double)values[at - 1].value;
        if (at < side || values[at].commit == values[at - 1].commit) continue;
        double score = score_of(&segment, at, left, scatter(&values[at - 1]));
        if (score > best.score) best = (struct cut){at, score};
    }
    bool is_step = best.score >= stands_out &&
                   (!segment.is_seen || share_beyond(values, count, best.at) >= beyond_least);
    if (!is_step) best.at = 0;
    return best;
}

// Levels are means between the steps around; filled in when all steps are known.
static bool cut_all(const struct step_value *values, size_t start, size_t end,
                    struct steps *steps) {
    struct cut cut = best_cut(values + start, end - start);
    if (!cut.at) return true;
    if (!cut_all(values, start, start + cut.at, steps)) return false;
    struct step *step = array_push(&steps->list);
    if (!step) return false;
    *step = (struct step){.first = start + cut.at};
    return cut_all(values, start + cut.at, end, steps);
}

static void fill_levels(const struct step_value *values, size_t count, struct steps *steps) {
    for (size_t i = 0; i < steps->list.count; i++) {
        struct step *step = &steps->list.items[i];
        size_t start = i ? steps->list.items[i - 1].first : 0;
        size_t end = i + 1 < steps->list.count ? steps->list.items[i + 1].first : count;
        step->before = llround(mean(values + start, step->first - start));
        step->after = llround(mean(values + step->first, end - step->first));
    }
}

// Two runs of one commit that differ say that all may.
static bool differs_at_one_commit(const struct step_value *values, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (values[i].commit == values[i - 1].commit && values[i].value != values[i - 1].value)
            return true;
    return false;
}

static bool find_counted(const struct step_value *values, size_t count, struct steps *steps) {
    for (size_t i = 1; i < count; i++) {
        if (values[i].value == values[i - 1].value) continue;
        struct step *step = array_push(&steps->list);
        if (!step) return false;
        *step = (struct step){i, values[i - 1].value, values[i].value};
    }
    return true;
}

static bool find_noisy(const struct step_value *values, size_t count, bool can_vary,
                       struct steps *steps) {
    struct step_value *noisy = calloc(count + 1, sizeof *noisy);
    if (!noisy) return false;
    for (size_t i = 0; i < count; i++) {
        noisy[i] = values[i];
        noisy[i].can_vary = noisy[i].can_vary || can_vary;
    }
    bool is_ok = cut_all(noisy, 0, count, steps);
    if (is_ok) fill_levels(noisy, count, steps);
    free(noisy);
    return is_ok;
}

// How far the values scatter about their levels.
static double deviation_of(const struct step_value *values, size_t count,
                           const struct steps *steps) {
    size_t differences = 0, start = 0;
    double sum = 0;
    for (size_t i = 0; i <= steps->list.count; i++) {
        size_t end = i < steps->list.count ? steps->list.items[i].first : count;
        sum += scatter_of(values + start, end - start);
        differences += end > start ? end - start - 1 : 0;
        start = end;
    }
    return differences ? sqrt(sum / (double)differences) : 0;
}

bool steps_find(const struct step_value *values, size_t count, struct steps *steps) {
    bool can_vary = differs_at_one_commit(values, count), is_counted = !can_vary;
    *steps = (struct steps){0};
    for (size_t i = 0; i < count; i++)
        if (values[i].can_vary || values[i].deviation > 0 || values[i].bound) is_counted = false;
    if (is_counted) return find_counted(values, count, steps);
    if (!find_noisy(values, count, can_vary, steps)) return false;
    steps->deviation = deviation_of(values, count, steps);
    steps->is_noisy = steps->deviation > 0;
    return true;
}

void steps_free(struct steps *steps) {
    array_free(&steps->list);
}
