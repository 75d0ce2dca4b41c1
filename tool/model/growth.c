// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/model/snapshot_choice.h"

static const double second_ns = 1e9;
static const uint64_t timed_least_ns = 500000000;  // of a life that is looked at over time

// What a stack held last in so large a part of the life, and has given back at the end by this
// share at least, went as the program shut down.
static const double shutdown_share = 0.1, given_back_share = 0.5;

// What a line is fitted over.
enum axis { AXIS_TIME, AXIS_WORK, AXES };

// Sums of the least squares, of one stack.
struct sums {
    double y[AXES], yy[AXES], xy[AXES];
};
struct fitted {
    struct sums sums, until_most;
    size_t most_at;  // the last point at which it held the most
    int64_t first, last, most;
};

// Places on the axes: seconds and bytes since the first point. A point weighs as much as it stands
// for of an axis, half the way to the one before it and half the way to the next (`after`), since
// half of them may lie in a moment. Sums up to this one: of weights, places and their squares.
struct axis_place {
    double at[AXES], after[AXES], weight[AXES], x[AXES], xx[AXES];
};

struct fitting {
    const struct snapshots *snapshots;
    // Most stacks of a large recording hold nothing at any point, and cannot rise: only the others
    // are kept.
    ARRAY(struct fitted) stacks;
    uint32_t *fitted_of;        // by number of a stack: index + 1; 0: it held nothing so far
    struct axis_place *places;  // by point
    // In less, time goes where pages are touched first, and the clock says nothing of its own.
    bool is_timed;
    // Of samples: of what a stack holds more at the end, and at the peak; NULL: exact.
    struct estimate *at_end, *at_peak;
};

static struct snapshot_choice end_of(const struct snapshots *snapshots) {
    struct snapshot_choice end = {.kind = CHOICE_EXIT};
    (void)snapshot_choose(snapshots, "exit", &end, NULL);
    return end;
}

static bool is_looked_at(const struct growth *growth, const struct snapshots *snapshots,
                         size_t index, size_t step) {
    const struct snapshot *snapshot = &snapshots->list[index];
    return snapshot->has_values && snapshot->reason != CAIRN_SNAPSHOT_EXIT &&
           (index - growth->first) % step == 0;
}

static void add_point(struct growth *growth, struct snapshot_choice choice,
                      uint64_t allocated_bytes) {
    growth->points[growth->point_count++] = (struct growth_point){choice, allocated_bytes};
}

// Allocated when the interval of the peak began; not known of it alone.
static uint64_t allocated_at_peak(const struct profile *profile) {
    struct cairn_point point;
    uint64_t interval_ns = profile->recording->header.totals.point_ns;
    size_t index = interval_ns ? profile->peak.at_ns / interval_ns : 0;
    size_t count = recording_count(profile->recording, CAIRN_SECTION_POINTS);
    if (index > count) index = count;  // the time may be damaged
    while (index && (!recording_point(profile->recording, index, &point) || !point.is_used))
        index--;
    return index ? point.allocated_bytes : 0;
}

// The peak lies between two points, so its bytes do too. Without any moment it says too little.
static void add_peak(struct growth *growth, const struct profile *profile, uint64_t until_ns,
                     uint64_t until_bytes) {
    if (!growth->point_count || profile->peak.is_at_end) return;
    const struct growth_point *before = &growth->points[growth->point_count - 1];
    uint64_t at_ns = profile->peak.at_ns, bytes = allocated_at_peak(profile);
    if (before->choice.kind == CHOICE_PEAK) return;
    // where its coarse clock was behind, a peak has the time of the snapshot that it followed
    if (at_ns < before->choice.at_ns || at_ns >= until_ns) return;
    if (bytes < before->allocated_bytes) bytes = before->allocated_bytes;
    if (bytes > until_bytes) bytes = until_bytes;
    add_point(growth, (struct snapshot_choice){.kind = CHOICE_PEAK, .at_ns = at_ns}, bytes);
}

static bool choose_points(struct growth *growth, struct fitting *fitting, size_t most) {
    const struct snapshots *snapshots = fitting->snapshots;
    const struct profile *profile = snapshots->profile;
    size_t step = (snapshots->count - growth->first) / most + 1;
    growth->points = calloc(snapshots->count - growth->first + 2, sizeof *growth->points);
    if (!growth->points) return false;
    for (size_t i = growth->first; i < snapshots->count; i++) {
        const struct snapshot *snapshot = &snapshots->list[i];
        if (!is_looked_at(growth, snapshots, i, step)) continue;
        add_peak(growth, profile, snapshot->at_ns, snapshot->allocated_bytes);
        add_point(growth,
                  (struct snapshot_choice){
                      .kind = CHOICE_SNAPSHOT, .snapshot = i, .at_ns = snapshot->at_ns},
                  snapshot->allocated_bytes);
    }
    struct snapshot_choice end = end_of(snapshots);
    add_peak(growth, profile, end.at_ns, profile->totals.allocated_bytes);
    add_point(growth, end, profile->totals.allocated_bytes);
    fitting->is_timed = end.at_ns - growth->points->choice.at_ns >= timed_least_ns;
    fitting->places = calloc(growth->point_count, sizeof *fitting->places);
    return fitting->places != NULL;
}

static double place_at(const struct growth *growth, size_t index, enum axis axis) {
    const struct growth_point *first = growth->points, *point = &growth->points[index];
    if (axis == AXIS_WORK) return (double)point->allocated_bytes - (double)first->allocated_bytes;
    return ((double)point->choice.at_ns - (double)first->choice.at_ns) / second_ns;
}

static double weight_of(const struct axis_place *place, size_t index, enum axis axis) {
    double before = index ? place[-1].after[axis] : 0;
    return before + place->after[axis];
}

static void add_place(const struct growth *growth, struct fitting *fitting, size_t index) {
    struct axis_place *place = &fitting->places[index];
    if (index) *place = place[-1];
    for (enum axis axis = 0; axis < AXES; axis++) {
        const double at = place_at(growth, index, axis);
        bool is_last = index + 1 == growth->point_count;
        place->at[axis] = at;
        place->after[axis] = is_last ? 0 : (place_at(growth, index + 1, axis) - at) / 2;
        const double weight = weight_of(place, index, axis);
        place->weight[axis] += weight;
        place->x[axis] += weight * at;
        place->xx[axis] += weight * at * at;
    }
}

// NULL: no memory. A stack that is met at a later point held 0, which was the most, until then.
static struct fitted *fitted_of(struct fitting *fitting, size_t number, size_t index) {
    uint32_t *index_plus_1 = &fitting->fitted_of[number];
    if (*index_plus_1) return &fitting->stacks.items[*index_plus_1 - 1];
    struct fitted *stack = array_push(&fitting->stacks);
    if (!stack) return NULL;
    *stack = (struct fitted){.most_at = index ? index - 1 : 0};
    *index_plus_1 = (uint32_t)fitting->stacks.count;
    return stack;
}

static void add_value(struct fitted *stack, const struct axis_place *place, size_t index,
                      int64_t bytes) {
    const double y = (double)bytes;
    for (enum axis axis = 0; axis < AXES; axis++) {
        const double weight = weight_of(place, index, axis);
        stack->sums.y[axis] += weight * y;
        stack->sums.yy[axis] += weight * y * y;
        stack->sums.xy[axis] += weight * place->at[axis] * y;
    }
    if (!index) stack->first = bytes;
    stack->last = bytes;
    if (index && bytes < stack->most) return;
    stack->most = bytes;
    stack->most_at = index;
    stack->until_most = stack->sums;
}

static bool add_values(struct fitting *fitting, const struct live_at *held, size_t index) {
    size_t count = fitting->snapshots->profile->built_stack_count;
    for (size_t i = 0; i < count; i++) {
        if (!held[i].bytes && !fitting->fitted_of[i]) continue;
        struct fitted *stack = fitted_of(fitting, i, index);
        if (!stack) return false;
        add_value(stack, &fitting->places[index], index, held[i].bytes);
    }
    return true;
}

static bool add_all(struct growth *growth, struct fitting *fitting) {
    for (size_t i = 0; i < growth->point_count; i++) {
        struct live_at *held = snapshot_choice_live(fitting->snapshots, &growth->points[i].choice);
        if (!held) return false;
        add_place(growth, fitting, i);
        bool is_ok = add_values(fitting, held, i);
        free(held);
        if (!is_ok) return false;
    }
    return true;
}

static bool estimate_changes(const struct growth *growth, struct fitting *fitting) {
    struct snapshot_choice peak = {.kind = CHOICE_PEAK};
    const struct growth_point *points = growth->points;
    if (!fitting->snapshots->profile->sampling.is_on) return true;
    fitting->at_end = snapshot_estimates_between(fitting->snapshots, &points[0].choice,
                                                 &points[growth->point_count - 1].choice);
    fitting->at_peak = snapshot_estimates_between(fitting->snapshots, &points[0].choice, &peak);
    return fitting->at_end && fitting->at_peak;
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

// The fit over an axis of a line that ends at the place with `last` bytes, and the slope by it; 0:
// the line does not rise, or there is none.
static double fit_over(const struct axis_place *place, const struct sums *sums, int64_t last,
                       enum axis axis, double *slope) {
    const double after = place->after[axis], at = place->at[axis], end = (double)last;
    double n = place->weight[axis] - after, x = place->x[axis] - after * at;
    double y = sums->y[axis] - after * end, xx = place->xx[axis] - after * at * at;
    double yy = sums->yy[axis] - after * end * end, xy = sums->xy[axis] - after * at * end;
    double x_spread = n * xx - x * x, y_spread = n * yy - y * y, common = n * xy - x * y;
    *slope = 0;
    if (!(x_spread > 0) || !(y_spread > 0) || !(common > 0)) return 0;
    *slope = common / x_spread;
    double fit = common * common / (x_spread * y_spread);
    return fit < 1 ? fit : 1;
}

// The stack held the most until the program shut down.
static bool is_freed_at_shutdown(const struct growth *growth, const struct fitting *fitting,
                                 const struct fitted *stack) {
    const struct axis_place *last = &fitting->places[growth->point_count - 1];
    const struct axis_place *most = &fitting->places[stack->most_at];
    if (stack->most_at + 1 < GROWTH_SNAPSHOTS_MIN ||
        !profile_has_ended(fitting->snapshots->profile) ||
        (double)(stack->most - stack->last) < given_back_share * (double)stack->most)
        return false;
    for (int axis = 0; axis < AXES; axis++)
        if (last->at[axis] > 0 && most->at[axis] >= (1 - shutdown_share) * last->at[axis])
            return true;
    return false;
}

static void fit_stack(struct growth *growth, const struct fitting *fitting, uint32_t index) {
    const struct stack *stack = &fitting->snapshots->profile->stacks[index];
    if (!fitting->fitted_of[stack->number]) return;
    const struct fitted *fitted = &fitting->stacks.items[fitting->fitted_of[stack->number] - 1];
    bool is_freed = is_freed_at_shutdown(growth, fitting, fitted);
    const struct axis_place *place =
        &fitting->places[is_freed ? fitted->most_at : growth->point_count - 1];
    const struct sums *sums = is_freed ? &fitted->until_most : &fitted->sums;
    int64_t last = is_freed ? fitted->most : fitted->last;
    double seconds = place->at[AXIS_TIME], by_time, by_work;
    double time_fit = fit_over(place, sums, last, AXIS_TIME, &by_time);
    double work_fit = fit_over(place, sums, last, AXIS_WORK, &by_work);
    if (!fitting->is_timed && work_fit > 0) time_fit = 0;
    bool is_work = work_fit > time_fit;
    const struct estimate *estimates = is_freed ? fitting->at_peak : fitting->at_end;
    int64_t interval = estimates ? estimate_bytes_interval(&estimates[stack->number]) : 0;
    // chance alone makes every second stack of samples rise
    if (last - fitted->first <= interval || !(seconds > 0) || !(time_fit > 0 || work_fit > 0))
        return;
    growth->list[growth->count++] = (struct growth_stack){
        .stack = index,
        .bytes_per_s = is_work ? by_work * place->at[AXIS_WORK] / seconds : by_time,
        .fit = is_work ? work_fit : time_fit,
        .first_bytes = fitted->first,
        .last_bytes = last,
        .freed_bytes = is_freed ? fitted->most - fitted->last : 0,
        .interval_bytes = interval};
}

bool growth_build(struct growth *growth, const struct snapshots *snapshots, size_t first,
                  size_t most, struct error *error) {
    const struct profile *profile = snapshots->profile;
    struct fitting fitting = {
        .snapshots = snapshots,
        .fitted_of = calloc(profile->built_stack_count + 1, sizeof *fitting.fitted_of)};
    *growth = (struct growth){.first = first,
                              .list = calloc(profile->stack_count + 1, sizeof *growth->list)};
    bool is_ok = fitting.fitted_of && growth->list && choose_points(growth, &fitting, most) &&
                 add_all(growth, &fitting) && estimate_changes(growth, &fitting);
    bool has_enough = is_ok && growth->point_count >= GROWTH_SNAPSHOTS_MIN;
    for (size_t i = 0; has_enough && i < profile->stack_count; i++)
        fit_stack(growth, &fitting, (uint32_t)i);
    array_free(&fitting.stacks);
    free(fitting.fitted_of);
    free(fitting.places);
    free(fitting.at_end);
    free(fitting.at_peak);
    if (is_ok && growth->count) qsort(growth->list, growth->count, sizeof *growth->list, compare);
    if (is_ok) return true;
    growth_free(growth);
    return error_set(error, "no memory for the growth of this recording");
}

void growth_free(struct growth *growth) {
    free(growth->list);
    free(growth->points);
    *growth = (struct growth){0};
}

size_t growth_first(const struct snapshots *snapshots) {
    for (size_t i = 0; i < snapshots->count; i++)
        if (snapshots->list[i].reason == CAIRN_SNAPSHOT_MARK && snapshots->list[i].has_values)
            return i;
    return 0;
}

int64_t *growth_values(const struct growth *growth, const struct snapshots *snapshots,
                       size_t stacks) {
    const struct profile *profile = snapshots->profile;
    int64_t *values = calloc(stacks * growth->point_count + 1, sizeof *values);
    for (size_t i = 0; values && i < growth->point_count; i++) {
        struct live_at *held = snapshot_choice_live(snapshots, &growth->points[i].choice);
        for (size_t row = 0; held && row < stacks; row++)
            values[row * growth->point_count + i] =
                held[profile->stacks[growth->list[row].stack].number].bytes;
        free(held);
    }
    return values;
}
