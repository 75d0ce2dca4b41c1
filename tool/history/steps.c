// SPDX-License-Identifier: Apache-2.0
#include "tool/history/steps.h"

#include <stdlib.h>
#include <string.h>

#include "tool/history/cuts.h"

// Further runs of the newest commit after which it is to be known whether it moved.
enum { MISSING_MOST = 8 };

static double scatter_of(const struct step_value *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i + 1 < count; i++) sum += scatter_of_pair(&values[i]);
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

// Says whether only what is seen tells of the noise.
static bool is_seen_only(const struct step_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i].can_vary) return true;
    return false;
}

static bool add_step(size_t first, struct steps *steps) {
    struct step *step = array_push(&steps->list);
    if (step) *step = (struct step){.first = first};
    return step != NULL;
}

// Levels are means between the steps around; filled in when all steps are known.
static bool cut_all(const struct line *line, size_t start, size_t end, struct steps *steps) {
    const struct step_value *values = line->values + start;
    struct part part = {.line = line,
                        .start = start,
                        .end = end,
                        .floor = floor_of(values, end - start),
                        .is_seen = is_seen_only(values, end - start)};
    struct cut cut;
    if (!cuts_find(&part, &cut)) return false;
    if (!cut.at) return true;
    size_t first = start + cut.at, second = start + cut.end;
    return cut_all(line, start, first, steps) && add_step(first, steps) &&
           cut_all(line, first, cut.end ? second : end, steps) &&
           (!cut.end || (add_step(second, steps) && cut_all(line, second, end, steps)));
}

// Takes the variance of runs of one commit, whatever commits changed.
static void read_repeats(const struct step_value *values, size_t count, struct line *line) {
    double squares = 0;
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count && values[end].commit == values[start].commit;) end++;
        double middle = mean(values + start, end - start);
        for (size_t i = start; i < end; i++) {
            double distance = (double)values[i].value - middle;
            squares += distance * distance;
        }
        line->repeats += end - start - 1;
    }
    if (line->repeats) line->repeat_variance = squares / (double)line->repeats;
}

static size_t runs_of_commit(const struct line *line, size_t first, size_t count) {
    size_t end = first;
    while (end < count && line->values[end].commit == line->values[first].commit) end++;
    return end - first;
}

// Cuts where runs of a commit agree, and those of the next one agree on something else: if they
// always do, each difference is a step. The parts between are cut as others.
static bool cut_where_runs_agree(const struct line *line, size_t count, struct steps *steps) {
    bool are_exact = line->repeats >= REPEATS_LEAST && line->repeat_variance <= 0;
    size_t start = 0, runs, next_runs;
    for (size_t at = 0; are_exact && at < count; at += runs) {
        runs = runs_of_commit(line, at, count);
        next_runs = runs_of_commit(line, at + runs, count);
        if (runs < QUIET_AFTER || next_runs < QUIET_AFTER) continue;
        if (line->values[at].value == line->values[at + runs].value) continue;
        if (!cut_all(line, start, at + runs, steps) || !add_step(at + runs, steps)) return false;
        start = at + runs;
    }
    return cut_all(line, start, count, steps);
}

static bool cut_line(const struct step_value *values, size_t count, struct steps *steps) {
    struct line line = {.values = values,
                        .sums = calloc(count + 1, sizeof *line.sums),
                        .scatters = calloc(count + 1, sizeof *line.scatters)};
    bool is_ok = line.sums && line.scatters;
    for (size_t i = 0; i < count && is_ok; i++) {
        line.sums[i + 1] = line.sums[i] + ((double)values[i].value - (double)values[0].value);
        line.scatters[i + 1] = line.scatters[i] + (i + 1 < count ? scatter_of_pair(&values[i]) : 0);
    }
    read_repeats(values, count, &line);
    is_ok = is_ok && (!count || cut_where_runs_agree(&line, count, steps));
    free(line.sums);
    free(line.scatters);
    return is_ok;
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

// Returns how far values scatter about their levels.
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

// --- what is not decided

// Says whether the commit at `first`, the newest one, would be a step if `more` runs of it agreed
// with those that there are.
static bool is_step_with(const struct step_value *values, size_t count, size_t first, size_t more,
                         bool *is_step) {
    struct steps steps = {0};
    struct step_value *longer = calloc(count + more, sizeof *longer);
    if (!longer) return false;
    memcpy(longer, values, count * sizeof *longer);
    for (size_t i = 0; i < more; i++) {
        longer[count + i] = values[count - 1];
        longer[count + i].value = llround(mean(values + first, count - first));
    }
    bool is_ok = cut_line(longer, count + more, &steps);
    size_t found = steps.list.count;
    *is_step = is_ok && found && steps.list.items[found - 1].first == first;
    steps_free(&steps);
    free(longer);
    return is_ok;
}

// The newest commit lies beyond all runs of the level before it, and is no step yet: further runs
// of it may make it one. Differences that no few runs would decide are noise.
static bool find_open(const struct step_value *values, size_t count, struct steps *steps) {
    size_t first = count,
           start = steps->list.count ? steps->list.items[steps->list.count - 1].first : 0;
    while (first && values[first - 1].commit == values[count - 1].commit) first--;
    if (first <= start || !count) return true;
    struct range before = range_of(values + start, first - start);
    double level = mean(values + first, count - first),
           old_level = mean(values + start, first - start);
    const double noise_most = 3;
    struct line line = {0};
    read_repeats(values, count, &line);
    double noise = fmax(deviation_of(values, first, steps), sqrt(line.repeat_variance));
    bool is_within = (level >= before.low && level <= before.high) ||
                     fabs(level - old_level) <= noise_most * noise;
    if (is_within || !is_seen_only(values + start, count - start)) return true;
    struct steps_open *open = &steps->open;
    open->before = llround(old_level);
    open->after = llround(level);
    open->is_there = first - start < QUIET_BEFORE;
    for (size_t more = 1; more <= MISSING_MOST; more++) {
        bool is_step;
        if (!is_step_with(values, count, first, more, &is_step)) return false;
        if (!is_step) continue;
        open->missing = more;
        open->is_there = true;
        break;
    }
    open->first = first;
    open->runs_before = first - start;
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
    bool is_ok = cut_line(noisy, count, steps);
    if (is_ok) fill_levels(noisy, count, steps);
    is_ok = is_ok && find_open(noisy, count, steps);
    free(noisy);
    return is_ok;
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
