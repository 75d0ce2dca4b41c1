// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/moment_estimates.h"

static const double second_ns = 1e9;

// What a line is fitted over.
enum axis { AXIS_TIME, AXIS_WORK, AXES };

// Sums of the least squares, by number of a stack.
struct sums {
    double y, yy, xy[AXES];
    int64_t first, last, most;
};

// Places on the axes: seconds and bytes since the first moment.
struct fitting {
    const struct moments *moments;
    struct sums *sums;
    double n, x[AXES], xx[AXES];
    double origin[AXES], last[AXES];
    size_t asked_count;  // moments that came by the clock or by hand, not by the work done
    struct instant begin;
    struct estimate *estimates;  // of what a stack holds more at the end; NULL: exact
};

static void add_values(struct fitting *fitting, const struct held *held, const double at[AXES]) {
    size_t count = fitting->moments->profile->built_stack_count;
    bool is_first = fitting->n == 0;
    fitting->n++;
    for (int axis = 0; axis < AXES; axis++) {
        if (is_first) fitting->origin[axis] = at[axis];
        double x = fitting->last[axis] = at[axis] - fitting->origin[axis];
        fitting->x[axis] += x;
        fitting->xx[axis] += x * x;
    }
    for (size_t i = 0; i < count; i++) {
        struct sums *sums = &fitting->sums[i];
        double y = (double)held[i].bytes;
        sums->y += y;
        sums->yy += y * y;
        for (int axis = 0; axis < AXES; axis++) sums->xy[axis] += fitting->last[axis] * y;
        if (is_first) sums->first = held[i].bytes;
        if (held[i].bytes > sums->most) sums->most = held[i].bytes;
        sums->last = held[i].bytes;
    }
}

static struct instant end_of(const struct moments *moments) {
    struct instant end = {.kind = INSTANT_EXIT};
    (void)instant_find(moments, "exit", &end, NULL);
    return end;
}

static bool is_looked_at(const struct growth *growth, const struct moments *moments, size_t index) {
    const struct moment *moment = &moments->list[index];
    return moment->has_values && moment->reason != CAIRN_MOMENT_EXIT &&
           (index - growth->first) % growth->step == 0;
}

static bool is_asked(const struct moment *moment) {
    return moment->reason == CAIRN_MOMENT_MARK || moment->reason == CAIRN_MOMENT_ASKED;
}

// What was held at the i-th moment from the first on that has values, and at the end; for free().
static bool add_all(struct growth *growth, struct fitting *fitting) {
    const struct moments *moments = fitting->moments;
    for (size_t i = growth->first; i <= moments->count; i++) {
        bool is_end = i == moments->count;
        if (!is_end && !is_looked_at(growth, moments, i)) continue;
        struct instant instant = end_of(moments);
        if (!is_end)
            instant = (struct instant){INSTANT_MOMENT, i, moments->list[i].at_ns, false, 0};
        struct held *held = instant_held(moments, &instant);
        if (!held) return false;
        if (!growth->moment_count++) {
            growth->from_ns = instant.at_ns;
            fitting->begin = instant;
        }
        growth->to_ns = instant.at_ns;
        if (!is_end) fitting->asked_count += is_asked(&moments->list[i]);
        uint64_t work =
            is_end ? moments->profile->totals.allocated_bytes : moments->list[i].allocated_bytes;
        add_values(fitting, held, (double[AXES]){(double)instant.at_ns / second_ns, (double)work});
        free(held);
    }
    return true;
}

// Of samples.
static bool estimate_changes(struct fitting *fitting) {
    struct instant end = end_of(fitting->moments);
    if (!fitting->moments->profile->sampling.is_on) return true;
    fitting->estimates = moment_estimates_between(fitting->moments, &fitting->begin, &end);
    return fitting->estimates != NULL;
}

static double suspicion(const struct growth_stack *stack) {
    return stack->bytes_per_s * stack->fit;
}

static int compare(const void *a, const void *b) {
    const struct growth_stack *first = a, *second = b;
    double x = suspicion(first), y = suspicion(second);
    if (x != y) return x < y ? 1 : -1;
    return (first->stack > second->stack) - (first->stack < second->stack);
}

// The fit over an axis, and the slope by it; 0: the line does not rise, or there is none.
static double fit_over(const struct fitting *fitting, const struct sums *sums, enum axis axis,
                       double *slope) {
    double n = fitting->n, x = fitting->x[axis];
    double x_spread = n * fitting->xx[axis] - x * x, y_spread = n * sums->yy - sums->y * sums->y;
    double common = n * sums->xy[axis] - x * sums->y;
    *slope = 0;
    if (!(x_spread > 0) || !(y_spread > 0) || !(common > 0)) return 0;
    *slope = common / x_spread;
    double fit = common * common / (x_spread * y_spread);
    return fit < 1 ? fit : 1;
}

static void fit_stack(struct growth *growth, const struct fitting *fitting, uint32_t index) {
    const struct stack *stack = &fitting->moments->profile->stacks[index];
    const struct sums *sums = &fitting->sums[stack->number];
    double seconds = fitting->last[AXIS_TIME], by_time, by_work;
    double time_fit = fit_over(fitting, sums, AXIS_TIME, &by_time);
    double work_fit = fit_over(fitting, sums, AXIS_WORK, &by_work);
    // moments that came by work lie on the clock as the machine was busy: that line says nothing
    bool is_timed = 2 * fitting->asked_count + 1 >= growth->moment_count;
    if (!is_timed && work_fit > 0) time_fit = 0;
    bool is_work = work_fit > time_fit;
    int64_t interval = 0;
    if (fitting->estimates)
        interval = estimate_interval(fitting->estimates[stack->number].bytes_variance);
    // chance alone makes every second stack of samples rise
    if (sums->last - sums->first <= interval || !(seconds > 0) || !(time_fit > 0 || work_fit > 0))
        return;
    growth->list[growth->count++] = (struct growth_stack){
        .stack = index,
        .bytes_per_s = is_work ? by_work * fitting->last[AXIS_WORK] / seconds : by_time,
        .fit = is_work ? work_fit : time_fit,
        .first_bytes = sums->first,
        .last_bytes = sums->last,
        .most_bytes = sums->most,
        .interval_bytes = interval};
}

bool growth_build(struct growth *growth, const struct moments *moments, size_t first, size_t most,
                  struct error *error) {
    const struct profile *profile = moments->profile;
    struct fitting fitting = {.moments = moments,
                              .sums = calloc(profile->built_stack_count + 1, sizeof(struct sums))};
    *growth = (struct growth){.first = first,
                              .step = (moments->count - first) / most + 1,
                              .list = calloc(profile->stack_count + 1, sizeof *growth->list)};
    bool is_ok =
        fitting.sums && growth->list && add_all(growth, &fitting) && estimate_changes(&fitting);
    for (size_t i = 0; is_ok && growth->moment_count >= GROWTH_MOMENTS_MIN; i++) {
        if (i == profile->stack_count) break;
        fit_stack(growth, &fitting, (uint32_t)i);
    }
    free(fitting.sums);
    free(fitting.estimates);
    if (is_ok && growth->count) qsort(growth->list, growth->count, sizeof *growth->list, compare);
    if (is_ok) return true;
    growth_free(growth);
    return error_set(error, "no memory for the growth of this recording");
}

void growth_free(struct growth *growth) {
    free(growth->list);
    *growth = (struct growth){0};
}

size_t growth_first(const struct moments *moments) {
    for (size_t i = 0; i < moments->count; i++)
        if (moments->list[i].reason == CAIRN_MOMENT_MARK && moments->list[i].has_values) return i;
    return 0;
}

int64_t *growth_values(const struct growth *growth, const struct moments *moments, size_t stacks) {
    const struct profile *profile = moments->profile;
    int64_t *values = calloc(stacks * growth->moment_count + 1, sizeof *values);
    size_t column = 0;
    for (size_t i = growth->first; values && i <= moments->count; i++) {
        bool is_end = i == moments->count;
        if (!is_end && !is_looked_at(growth, moments, i)) continue;
        struct instant instant = end_of(moments);
        if (!is_end) instant = (struct instant){.kind = INSTANT_MOMENT, .moment = i};
        struct held *held = instant_held(moments, &instant);
        for (size_t row = 0; held && row < stacks; row++)
            values[row * growth->moment_count + column] =
                held[profile->stacks[growth->list[row].stack].number].bytes;
        free(held);
        column++;
    }
    return values;
}
