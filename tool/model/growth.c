// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/model/curve.h"
#include "tool/model/heaps.h"
#include "tool/model/reached.h"
#include "tool/model/timeline.h"

enum { CELLS = GROWTH_CELLS, THIRDS = 3, RISE_SHARE = 100, KNOWN_SHARE = 2 };

// A stack that has this share of its rise is there, and one that keeps this share of a level stays;
// so much of the rise is no rise yet; what is given back at shutdown, and when that is.
static const double there_share = 0.98, stays_share = 0.9, foot_share = 0.02,
                    given_back_share = 0.5, shutdown_share = 0.9;
// A stack that has this share of its own rise in the last third goes on, though it is little of the
// peak; one that has more than the other there is not flat.
static const double steady_share = 1.0 / 6, flat_share = 1.0 / 20;

struct fitting {
    const struct snapshots *snapshots;
    ARRAY(uint32_t) candidates;  // indexes into the profile's stacks: those that rose at all
    int64_t *curves;             // a row of CELLS bytes a candidate
    int64_t *at_start, *at_end;  // what each held at the first and the last moment
    // Bounds of what the whole heap held in the middle of each cell; INT64_MAX and 0: unknown.
    int64_t high[CELLS], low[CELLS];
    uint32_t cells;     // up to where the program shuts down
    int64_t last_most;  // the most that any stack can have risen in the last third of them
    // Of samples: of what a stack holds more at the end, and at the peak; NULL: exact.
    struct estimate *more_at_end, *more_at_peak;
};

static struct snapshot_choice end_of(const struct snapshots *snapshots) {
    struct snapshot_choice end = {.kind = CHOICE_EXIT};
    (void)snapshot_choose(snapshots, "exit", &end, NULL);
    return end;
}

static bool has_values(const struct snapshot *snapshot) {
    return snapshot->has_values && snapshot->reason != CAIRN_SNAPSHOT_EXIT;
}

// Takes the first snapshot, and the last one of each of `most` equal parts of the time.
static bool is_looked_at(const struct growth *growth, const struct snapshots *snapshots,
                         size_t index, size_t most, uint64_t end_ns) {
    const struct snapshot *snapshot = &snapshots->list[index];
    const uint64_t start_ns = snapshots->list[growth->first].at_ns;
    const double part_ns = end_ns > start_ns ? (double)(end_ns - start_ns) / (double)most : 1;
    size_t next = index + 1;
    if (!has_values(snapshot) || index == growth->first) return has_values(snapshot);
    while (next < snapshots->count && !has_values(&snapshots->list[next])) next++;
    if (next == snapshots->count) return true;
    return (uint64_t)((double)(snapshot->at_ns - start_ns) / part_ns) !=
           (uint64_t)((double)(snapshots->list[next].at_ns - start_ns) / part_ns);
}

static void add_point(struct growth *growth, struct snapshot_choice choice) {
    growth->points[growth->point_count++] = (struct growth_point){choice};
}

// Adds the peak, if it lies between the last point and `until_ns`.
static void add_peak(struct growth *growth, const struct profile *profile, uint64_t until_ns) {
    uint64_t at_ns = profile->peak.at_ns;
    if (!growth->point_count || profile->peak.is_at_end) return;
    const struct growth_point *before = &growth->points[growth->point_count - 1];
    if (before->choice.kind == CHOICE_PEAK) return;
    if (at_ns < before->choice.at_ns || at_ns >= until_ns) return;
    add_point(growth, (struct snapshot_choice){.kind = CHOICE_PEAK, .at_ns = at_ns});
}

static bool choose_points(struct growth *growth, const struct snapshots *snapshots, size_t most) {
    const struct profile *profile = snapshots->profile;
    struct snapshot_choice end = end_of(snapshots);
    growth->points = calloc(snapshots->count - growth->first + 2, sizeof *growth->points);
    if (!growth->points) return false;
    growth->moment_count = 1 + !profile->peak.is_at_end;
    for (size_t i = growth->first; i < snapshots->count; i++) {
        const struct snapshot *snapshot = &snapshots->list[i];
        growth->moment_count += has_values(snapshot);
        if (!is_looked_at(growth, snapshots, i, most, end.at_ns)) continue;
        add_peak(growth, profile, snapshot->at_ns);
        add_point(growth, (struct snapshot_choice){
                              .kind = CHOICE_SNAPSHOT, .snapshot = i, .at_ns = snapshot->at_ns});
    }
    add_peak(growth, profile, end.at_ns);
    add_point(growth, end);
    growth->start_ns = growth->points[0].choice.at_ns;
    growth->end_ns = end.at_ns > growth->start_ns ? end.at_ns : growth->start_ns;
    return true;
}

static uint64_t middle_of(const struct growth *growth, uint32_t cell) {
    double part = ((double)cell + 0.5) / CELLS;
    return growth->start_ns + (uint64_t)((double)(growth->end_ns - growth->start_ns) * part);
}

static uint64_t start_of(const struct growth *growth, uint32_t cell) {
    return growth->start_ns +
           (uint64_t)((double)(growth->end_ns - growth->start_ns) * (double)cell / CELLS);
}

// The first cell whose middle does not lie before the time.
static uint32_t cell_from(const struct growth *growth, uint64_t at_ns) {
    uint32_t cell = 0;
    while (cell < CELLS && middle_of(growth, cell) < at_ns) cell++;
    return cell;
}

static bool start_timeline(struct timeline *timeline, const struct profile *profile,
                           struct cairn_heap_points *heap) {
    if (profile->heap) {
        if (!heap_points_find(profile->recording, profile->heap_scope, heap)) return false;
        timeline_start_heap(timeline, profile->recording, heap, profile->peak.bytes,
                            profile->peak.at_ns);
        return true;
    }
    if (!recording_count(profile->recording, CAIRN_SECTION_POINTS)) return false;
    timeline_start(timeline, profile->recording);
    return true;
}

static void read_timeline(const struct growth *growth, struct fitting *fitting) {
    struct cairn_heap_points heap;
    struct timeline timeline;
    struct timeline_span span;
    for (uint32_t i = 0; i < CELLS; i++) fitting->high[i] = INT64_MAX;
    if (!start_timeline(&timeline, fitting->snapshots->profile, &heap)) return;
    uint32_t cell = 0;
    while (cell < CELLS && timeline_next(&timeline, &span)) {
        for (; cell < CELLS && middle_of(growth, cell) < span.end_ns; cell++) {
            // the last interval has the frees at the end in it
            bool is_last = cell && span.end_ns >= growth->end_ns;
            fitting->high[cell] = (int64_t)span.high_bytes;
            fitting->low[cell] = (int64_t)span.low_bytes;
            if (is_last && fitting->low[cell] < fitting->low[cell - 1])
                fitting->low[cell] = fitting->low[cell - 1];
        }
    }
}

// Allocated until then, as a point of the timeline has it; 0 of an allocator by name: it has none.
static uint64_t allocated_until(const struct profile *profile, uint64_t at_ns) {
    const struct recording *recording = profile->recording;
    struct cairn_point point;
    if (profile->heap || profile->is_of_mappings) return 0;
    uint64_t interval_ns = recording->header.totals.point_ns;
    uint64_t index = interval_ns ? at_ns / interval_ns + 1 : 0;
    size_t count = recording_count(recording, CAIRN_SECTION_POINTS);
    if (index > count) index = count;
    while (index && (!recording_point(recording, (size_t)index - 1, &point) || !point.is_used))
        index--;
    return index ? point.allocated_bytes : 0;
}

// The cells before the program shuts down; all of them, if it does not so as to be seen.
static uint32_t cells_before_shutdown(const struct growth *growth, const struct fitting *fitting) {
    const struct profile *profile = fitting->snapshots->profile;
    const double all_bytes = (double)profile->totals.allocated_bytes;
    const uint32_t from = (uint32_t)(shutdown_share * CELLS);
    if (!profile_has_ended(profile) || fitting->high[from] == INT64_MAX) return CELLS;
    const double least = given_back_share * (double)fitting->high[from];
    uint32_t cell = from;
    while (cell < CELLS && (double)fitting->high[cell] >= least) cell++;
    if (cell == CELLS) return CELLS;
    double until = (double)allocated_until(profile, start_of(growth, cell));
    return until >= shutdown_share * all_bytes ? cell : CELLS;
}

// The most that any stack can have risen from the cell on: what was allocated since then, and what
// threads may not have noted yet. INT64_MAX: not known.
static int64_t rise_most(const struct growth *growth, const struct fitting *fitting,
                         uint32_t cell) {
    const struct profile *profile = fitting->snapshots->profile;
    const struct recording *recording = profile->recording;
    const uint64_t interval_ns = recording->header.totals.point_ns;
    const uint64_t at_ns = start_of(growth, cell);
    if (fitting->high[CELLS - 1] == INT64_MAX || at_ns < interval_ns) return INT64_MAX;
    uint64_t all = allocated_until(profile, growth->end_ns);
    uint64_t before = allocated_until(profile, at_ns - interval_ns);
    const struct cairn_totals *totals = &recording->header.totals;
    uint64_t most = all - before + (uint64_t)recording_margin_bytes(recording, totals->peak_bytes);
    return all && all >= before && most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

static int64_t rise_least(const struct profile *profile) {
    int64_t share = (int64_t)(profile->peak.bytes / RISE_SHARE);
    return share > GROWTH_RISE_BYTES ? GROWTH_RISE_BYTES : share > 0 ? share : 1;
}

// Finds the stacks that ever held so much more than at the first moment.
static bool find_candidates(const struct growth *growth, struct fitting *fitting) {
    const struct profile *profile = fitting->snapshots->profile;
    const int64_t least = rise_least(profile);
    int64_t *first = NULL;
    bool *is_rising = calloc(profile->built_stack_count + 1, sizeof *is_rising);
    bool is_ok = is_rising != NULL;
    for (size_t i = 0; is_ok && i < growth->point_count; i++) {
        struct live_at *held = snapshot_choice_live(fitting->snapshots, &growth->points[i].choice);
        if (!first) first = calloc(profile->built_stack_count + 1, sizeof *first);
        is_ok = held && first;
        for (size_t j = 0; is_ok && j < profile->built_stack_count; j++) {
            if (!i) first[j] = held[j].bytes;
            is_rising[j] |= growth_rise(first[j], held[j].bytes) >= least;
        }
        free(held);
    }
    for (uint32_t i = 0; is_ok && i < profile->stack_count; i++) {
        uint32_t *candidate =
            is_rising[profile->stacks[i].number] ? array_push(&fitting->candidates) : NULL;
        is_ok = candidate || !is_rising[profile->stacks[i].number];
        if (candidate) *candidate = i;
    }
    free(first);
    free(is_rising);
    return is_ok;
}

static int64_t least_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// The first cell from which on nothing was allocated that was noted, and the heap held what it does
// at the end: nothing was freed either. CELLS: it was never so, or that is not known.
static uint32_t settled_from(const struct growth *growth, const struct fitting *fitting) {
    const struct profile *profile = fitting->snapshots->profile;
    const struct recording *recording = profile->recording;
    const uint64_t interval_ns = recording->header.totals.point_ns;
    const uint64_t all = allocated_until(profile, growth->end_ns);
    const int64_t margin = recording_margin_bytes(recording, recording->header.totals.peak_bytes);
    uint32_t cell = CELLS;
    while (cell && all) {
        uint64_t at_ns = start_of(growth, cell - 1);
        bool is_quiet = at_ns >= interval_ns && fitting->high[cell - 1] != INT64_MAX &&
                        allocated_until(profile, at_ns - interval_ns) + (uint64_t)margin >= all;
        if (!is_quiet || growth_rise(profile->exit_bytes, fitting->high[cell - 1]) > margin) break;
        cell--;
    }
    return cell;
}

// Draws what the stacks held at the point into their curves, up to the next point.
static void draw_point(const struct growth *growth, const struct fitting *fitting, size_t index,
                       const struct live_at *held) {
    const struct profile *profile = fitting->snapshots->profile;
    bool is_last = index + 1 == growth->point_count;
    uint32_t from = index ? cell_from(growth, growth->points[index].choice.at_ns) : 0;
    uint32_t to = is_last ? CELLS : cell_from(growth, growth->points[index + 1].choice.at_ns);
    // the end itself is no time
    if (is_last && growth->point_count > 1) from = settled_from(growth, fitting);
    for (size_t i = 0; i < fitting->candidates.count; i++) {
        int64_t bytes = held[profile->stacks[fitting->candidates.items[i]].number].bytes;
        for (uint32_t cell = from; cell < to; cell++)
            fitting->curves[i * CELLS + cell] = least_of(bytes, fitting->high[cell]);
        if (!index) fitting->at_start[i] = bytes;
        if (is_last) fitting->at_end[i] = bytes;
    }
}

static bool draw_curves(const struct growth *growth, struct fitting *fitting) {
    const size_t count = fitting->candidates.count;
    fitting->curves = calloc(count * CELLS + 1, sizeof *fitting->curves);
    fitting->at_start = calloc(count + 1, sizeof *fitting->at_start);
    fitting->at_end = calloc(count + 1, sizeof *fitting->at_end);
    if (!fitting->curves || !fitting->at_start || !fitting->at_end) return false;
    for (size_t i = 0; count && i < growth->point_count; i++) {
        struct live_at *held = snapshot_choice_live(fitting->snapshots, &growth->points[i].choice);
        if (!held) return false;
        draw_point(growth, fitting, i, held);
        free(held);
    }
    return true;
}

static bool estimate_changes(const struct growth *growth, struct fitting *fitting) {
    struct snapshot_choice peak = {.kind = CHOICE_PEAK};
    const struct growth_point *points = growth->points;
    if (!fitting->snapshots->profile->sampling.is_on) return true;
    fitting->more_at_end = snapshot_estimates_between(fitting->snapshots, &points[0].choice,
                                                      &points[growth->point_count - 1].choice);
    fitting->more_at_peak =
        snapshot_estimates_between(fitting->snapshots, &points[0].choice, &peak);
    return fitting->more_at_end && fitting->more_at_peak;
}

// Returns the time of the moment whose values the cell has.
static uint64_t moment_of(const struct growth *growth, uint32_t cell) {
    size_t point = growth->point_count - 1;
    while (point && growth->points[point].choice.at_ns > middle_of(growth, cell)) point--;
    return growth->points[point].choice.at_ns;
}

static uint32_t cells_of_interval(const struct growth *growth, const struct fitting *fitting) {
    const uint64_t cell_ns = (growth->end_ns - growth->start_ns) / CELLS + 1;
    return (uint32_t)(fitting->snapshots->profile->recording->header.totals.point_ns / cell_ns) + 1;
}

// The most that the heap gave back from the cell on, up to the other one. Within an interval of the
// timeline the lowest may have been before the highest.
static int64_t given_back_since(const struct growth *growth, const struct fitting *fitting,
                                uint32_t from, uint32_t to) {
    const uint32_t interval = cells_of_interval(growth, fitting);
    int64_t highest = 0, most = 0;
    for (uint32_t cell = from; cell < to; cell++) {
        if (cell < from + interval) continue;
        if (fitting->high[cell - interval] > highest) highest = fitting->high[cell - interval];
        int64_t fall = growth_rise(fitting->low[cell], highest);
        if (fall > most) most = fall;
    }
    return most;
}

// Fills in when a curve rose that rises no more. False: it did not stay there as far as is known,
// since neither did the stack hold it at the end, nor the whole heap all the time.
static bool find_rise(const struct growth *growth, const struct fitting *fitting, size_t index,
                      struct growth_stack *stack) {
    const uint32_t cells = fitting->cells;
    const int64_t *curve = fitting->curves + index * CELLS;
    const double first = (double)stack->first_bytes, last = (double)stack->last_bytes;
    int64_t lowest = INT64_MAX, highest = 0;
    uint32_t from, until = 0;
    while (until < cells && (double)curve[until] < first + there_share * (last - first)) until++;
    if (until == cells) return false;
    from = until;
    while (from && (double)curve[from] > first + foot_share * (last - first)) from--;
    for (uint32_t cell = until; cell < cells; cell++) {
        lowest = least_of(lowest, curve[cell]);
        if (curve[cell] > highest) highest = curve[cell];
    }
    stack->from_ns = from ? moment_of(growth, from) : growth->start_ns;
    stack->until_ns = moment_of(growth, until);
    // which stacks gave back what the heap gives back is not known
    bool is_held =
        (double)fitting->at_end[index] >= stays_share * last ||
        (double)given_back_since(growth, fitting, until, cells) <= (1 - stays_share) * last;
    return is_held && (double)lowest >= stays_share * last && stays_share * (double)highest <= last;
}

// Returns whether a stack that was freed by the end held on from the last moment before that to the
// last tenth of the time, as far as is known: the whole heap gave back little meanwhile.
static bool is_held_to_shutdown(const struct growth *growth, const struct fitting *fitting,
                                int64_t last) {
    uint32_t to = (uint32_t)(shutdown_share * CELLS), from = CELLS;
    for (size_t i = growth->point_count - 1; i-- > 0 && from >= fitting->cells;)
        from = cell_from(growth, growth->points[i].choice.at_ns);
    return (double)given_back_since(growth, fitting, from, to) <= (1 - stays_share) * (double)last;
}

static int64_t interval_of(const struct fitting *fitting, const struct stack *stack,
                           bool is_freed) {
    const struct estimate *more = is_freed ? fitting->more_at_peak : fitting->more_at_end;
    return more ? estimate_bytes_interval(&more[stack->number]) : 0;
}

// Returns whether a rise beyond what the curve had been is more than its ups and downs make.
static bool is_beyond_chance(const struct growth *growth, uint32_t cells, int64_t rise,
                             int64_t fall, double fit) {
    const double moments = growth->point_count < cells ? (double)growth->point_count : cells;
    return rise > fall || curve_is_sure(fit, moments);
}

// Says if the curve goes on to rise in its last third, beyond all of the one before, and not by
// chance. False: it rises there by so little that it neither grows nor is flat.
static bool judge_last_third(const struct growth *growth, const struct fitting *fitting,
                             size_t index, struct growth_stack *stack) {
    const uint32_t third = fitting->cells - fitting->cells / THIRDS;
    const int64_t *curve = fitting->curves + index * CELLS, last = stack->last_bytes;
    int64_t before = 0;
    for (uint32_t cell = third / 2; cell <= third; cell++)
        if (curve[cell] > before) before = curve[cell];
    const int64_t rise = least_of(growth_rise(before, last), fitting->last_most);
    const double own = (double)growth_rise(stack->first_bytes, last);
    bool is_rising =
        rise >= rise_least(fitting->snapshots->profile) || (double)rise >= steady_share * own;
    stack->has_stalled = !is_rising || stack->bytes_per_s <= 0;
    const int64_t fall = curve_fall(curve, third / 2, fitting->cells);
    if (!stack->has_stalled && !is_beyond_chance(growth, fitting->cells, rise, fall, stack->fit))
        return false;
    return is_rising || (double)rise <= flat_share * own;
}

static void judge(struct growth *growth, const struct fitting *fitting, size_t index) {
    const struct profile *profile = fitting->snapshots->profile;
    const int64_t *curve = fitting->curves + index * CELLS, at_end = fitting->at_end[index];
    const uint32_t cells = fitting->cells;
    const int64_t first = fitting->at_start[index], least = rise_least(profile);
    int64_t last = curve[cells - 1];
    const double cell_s = (double)(growth->end_ns - growth->start_ns) / 1e9 / CELLS;
    struct growth_stack stack = {
        .stack = fitting->candidates.items[index], .first_bytes = first, .last_bytes = last};
    bool is_freed = profile_has_ended(profile) &&
                    (double)growth_rise(at_end, last) >= given_back_share * (double)last;
    if (!is_freed) last = at_end;
    stack.last_bytes = last;
    stack.freed_bytes = is_freed ? growth_rise(at_end, last) : 0;
    stack.interval_bytes = interval_of(fitting, &profile->stacks[stack.stack], is_freed);
    double slope = curve_fit(curve, cells, &stack.fit);
    const int64_t rise = growth_rise(first, last);  // chance makes every second one of samples rise
    if (rise < least || rise <= stack.interval_bytes) return;
    stack.bytes_per_s = cell_s > 0 ? slope / cell_s : 0;
    if (!judge_last_third(growth, fitting, index, &stack)) return;
    if (stack.has_stalled && !find_rise(growth, fitting, index, &stack)) return;
    if (is_freed && !stack.has_stalled && !is_held_to_shutdown(growth, fitting, last)) return;
    growth->stalled_count += stack.has_stalled;
    growth->list[growth->count++] = stack;
}

static double suspicion(const struct growth_stack *stack) {
    return stack->has_stalled ? (double)growth_rise(stack->first_bytes, stack->last_bytes)
                              : stack->bytes_per_s * stack->fit;
}

static int compare(const void *a, const void *b) {
    const struct growth_stack *first = a, *second = b;
    if (first->has_stalled != second->has_stalled) return first->has_stalled ? 1 : -1;
    const double x = suspicion(first), y = suspicion(second);
    if (x != y) return x < y ? 1 : -1;
    return (first->stack > second->stack) - (first->stack < second->stack);
}

// Time that the moments span: from a mark on, or at least half of what was recorded.
static bool has_enough(const struct growth *growth, const struct snapshots *snapshots) {
    uint64_t span = growth->end_ns - growth->start_ns;
    bool is_from_mark = growth->first < snapshots->count &&
                        snapshots->list[growth->first].reason == CAIRN_SNAPSHOT_MARK;
    return growth->moment_count >= GROWTH_MOMENTS_MIN && span >= GROWTH_NS_MIN &&
           (is_from_mark || span >= growth->end_ns / KNOWN_SHARE);
}

static bool build(struct growth *growth, struct fitting *fitting, size_t most) {
    const struct snapshots *snapshots = fitting->snapshots;
    if (!choose_points(growth, snapshots, most)) return false;
    growth->is_known = has_enough(growth, snapshots);
    if (!growth->is_known) return true;
    read_timeline(growth, fitting);
    fitting->cells = cells_before_shutdown(growth, fitting);
    fitting->last_most = rise_most(growth, fitting, fitting->cells - fitting->cells / THIRDS);
    if (!find_candidates(growth, fitting) || !draw_curves(growth, fitting) ||
        !estimate_changes(growth, fitting))
        return false;
    growth->list = calloc(fitting->candidates.count + 1, sizeof *growth->list);
    for (size_t i = 0; growth->list && i < fitting->candidates.count; i++)
        judge(growth, fitting, i);
    if (growth->count) qsort(growth->list, growth->count, sizeof *growth->list, compare);
    return growth->list != NULL;
}

static void fitting_free(struct fitting *fitting) {
    array_free(&fitting->candidates);
    free(fitting->curves);
    free(fitting->at_start);
    free(fitting->at_end);
    free(fitting->more_at_end);
    free(fitting->more_at_peak);
}

bool growth_build(struct growth *growth, const struct snapshots *snapshots, size_t first,
                  size_t most, struct error *error) {
    struct fitting fitting = {.snapshots = snapshots};
    *growth = (struct growth){.first = first};
    bool is_ok = build(growth, &fitting, most);
    fitting_free(&fitting);
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

int64_t *growth_curves(const struct growth *growth, const struct snapshots *snapshots,
                       size_t stacks) {
    struct fitting fitting = {.snapshots = snapshots};
    int64_t *curves = NULL;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < stacks; i++) {
        uint32_t *candidate = array_push(&fitting.candidates);
        is_ok = candidate != NULL;
        if (candidate) *candidate = growth->list[i].stack;
    }
    read_timeline(growth, &fitting);
    if (is_ok && draw_curves(growth, &fitting)) {
        curves = fitting.curves;
        fitting.curves = NULL;
    }
    fitting_free(&fitting);
    return curves;
}
