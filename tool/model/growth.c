// SPDX-License-Identifier: Apache-2.0
#include "tool/model/growth.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/model/curve.h"
#include "tool/model/growth_heap.h"

enum { CELLS = GROWTH_CELLS, THIRDS = 3, RISE_SHARE = 100, KNOWN_SHARE = 2 };

// A stack that has this share of its rise is there, and one that keeps this share of a level stays;
// so much of the rise is no rise yet; who has that share of what the heap rose by rose as it did.
static const double there_share = 0.98, stays_share = 0.9, foot_share = 0.02, climb_share = 0.8;
// A rise of so many times what the curve fell is no chance.
static const int64_t sure_rise = 4;
// A stack that has this share of its own rise in the last third goes on, though it is little of the
// peak; one that has more than the other there is not flat.
static const double steady_share = 1.0 / 6, flat_share = 1.0 / 20;

struct fitting {
    const struct snapshots *snapshots;
    ARRAY(uint32_t) candidates;  // indexes into the profile's stacks: those that rose at all
    int64_t *curves;             // a row of CELLS bytes a candidate
    int64_t *at_start, *at_end;  // what each held at the first and the last moment
    struct growth_heap heap;     // its cells end where the program shuts down
    int64_t last_most;           // the most that any stack can have risen in their last third
    // Of samples: of what a stack holds more at the end, and at the peak; NULL: exact.
    struct estimate *more_at_end, *more_at_peak;
};

// Returns the time of the moment whose values the cell has.
static uint64_t moment_of(const struct growth *growth, const struct fitting *fitting,
                          uint32_t cell) {
    size_t point = growth->point_count - 1;
    while (point && growth->points[point].choice.at_ns > growth_heap_middle(&fitting->heap, cell))
        point--;
    return growth->points[point].choice.at_ns;
}

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

static int64_t heap_at(const struct growth_heap *heap, uint32_t cell) {
    return heap->low[cell] + (heap->high[cell] - heap->low[cell]) / 2;
}

// Returns by how much the whole heap rose over the cells beyond what all stacks held before, if it
// did so nearly without a fall and the timeline shows how, else 0: of samples that is not sure.
static int64_t climb_of(const struct fitting *fitting, uint32_t from, uint32_t to, int64_t before) {
    enum { FALL_SHARE = 8, VAGUE_SHARE = 2 };
    const struct growth_heap *heap = &fitting->heap;
    int64_t highest = before, fall = 0, vague = 0;
    if (fitting->snapshots->profile->sampling.is_on || to <= from + 1) return 0;
    for (uint32_t cell = from; cell < to; cell++) {
        // leaves out what the first cell has from before the moment
        const bool is_cut = cell == from && heap->low[cell] < before;
        const int64_t low = is_cut ? before : heap->low[cell],
                      width = growth_rise(low, heap->high[cell]), now = low + width / 2;
        if (heap->high[cell] == INT64_MAX) return 0;
        if (now > highest) highest = now;
        if (highest - now > fall) fall = highest - now;
        if (width > vague) vague = width;
    }
    const int64_t climb = growth_rise(before, heap_at(heap, to - 1));
    return fall <= climb / FALL_SHARE && vague <= climb / VAGUE_SHARE ? climb : 0;
}

// Draws a stack that has most of what the whole heap rose by between two moments, beyond what it
// held `before`: it rose as the heap did.
static void draw_climb(const struct fitting *fitting, int64_t *curve, uint32_t from, uint32_t to,
                       int64_t bytes, int64_t rise, int64_t before, int64_t climb) {
    for (uint32_t cell = from; cell < to; cell++) {
        const double share = (double)(heap_at(&fitting->heap, cell) - before) / (double)climb;
        curve[cell] = bytes + (int64_t)(share > 0 ? share * (double)rise : 0);
    }
}

static int64_t sum_of(const struct profile *profile, const struct live_at *held) {
    int64_t sum = 0;
    for (size_t i = 0; i < profile->built_stack_count; i++) sum = figures_add(sum, held[i].bytes);
    return sum;
}

// Draws what the stacks held at the point into their curves, up to the next point, at which they
// held `next`; NULL: it is the last.
static void draw_point(const struct growth *growth, const struct fitting *fitting, size_t index,
                       const struct live_at *held, const struct live_at *next) {
    const struct profile *profile = fitting->snapshots->profile;
    bool is_last = index + 1 == growth->point_count;
    uint32_t from =
        index ? growth_heap_cell(&fitting->heap, growth->points[index].choice.at_ns) : 0;
    uint32_t to =
        is_last ? CELLS : growth_heap_cell(&fitting->heap, growth->points[index + 1].choice.at_ns);
    // the end itself is no time
    if (is_last && growth->point_count > 1) from = growth_heap_settled(&fitting->heap);
    const int64_t before = sum_of(profile, held),
                  climb = next ? climb_of(fitting, from, to, before) : 0;
    for (size_t i = 0; i < fitting->candidates.count; i++) {
        const uint32_t number = profile->stacks[fitting->candidates.items[i]].number;
        const int64_t bytes = held[number].bytes,
                      rise = next ? growth_rise(bytes, next[number].bytes) : 0;
        int64_t *curve = fitting->curves + i * CELLS;
        for (uint32_t cell = from; cell < to; cell++)
            curve[cell] = least_of(bytes, fitting->heap.high[cell]);
        if (climb > 0 && (double)rise >= climb_share * (double)climb)
            draw_climb(fitting, curve, from, to, bytes, least_of(rise, climb), before, climb);
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
    struct live_at *held = NULL, *next = NULL;
    bool is_ok = true;
    for (size_t i = 0; is_ok && count && i <= growth->point_count; i++) {
        next = i < growth->point_count
                   ? snapshot_choice_live(fitting->snapshots, &growth->points[i].choice)
                   : NULL;
        is_ok = next || i == growth->point_count;
        if (is_ok && i) draw_point(growth, fitting, i - 1, held, next);
        free(held);
        held = next;
    }
    free(held);
    return is_ok;
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

// Fills in when a curve rose that rises no more. False: it did not stay there as far as is known,
// since neither did the stack hold it at the end, nor the whole heap all the time.
static bool find_rise(const struct growth *growth, const struct fitting *fitting, size_t index,
                      struct growth_stack *stack) {
    const uint32_t cells = fitting->heap.cells;
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
    stack->from_ns = from ? moment_of(growth, fitting, from) : growth->start_ns;
    stack->until_ns = moment_of(growth, fitting, until);
    // which stacks gave back what the heap gives back is not known
    bool is_held =
        (double)fitting->at_end[index] >= stays_share * last ||
        (double)growth_heap_given_back(&fitting->heap, until, cells) <= (1 - stays_share) * last;
    return is_held && (double)lowest >= stays_share * last && stays_share * (double)highest <= last;
}

// Returns whether a stack that was freed by the end held on from the last moment before that to the
// last tenth of the time, as far as is known: the whole heap gave back little meanwhile.
static bool is_held_to_shutdown(const struct growth *growth, const struct fitting *fitting,
                                int64_t last) {
    uint32_t to = (uint32_t)(GROWTH_SHUTDOWN_SHARE * CELLS), from = CELLS;
    for (size_t i = growth->point_count - 1; i-- > 0 && from >= fitting->heap.cells;)
        from = growth_heap_cell(&fitting->heap, growth->points[i].choice.at_ns);
    return (double)growth_heap_given_back(&fitting->heap, from, to) <=
           (1 - stays_share) * (double)last;
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
    return rise > sure_rise * fall || curve_is_sure(fit, moments);
}

// Says if the rest at the end is no longer than others between the curve's steps were: stairs go
// on.
static bool is_between_steps(const int64_t *curve, uint32_t cells, double rise) {
    const double step = rise * (1 - there_share), rest_share = 1.5;
    uint32_t longest = 0, last = 0;
    int64_t highest = curve[0];
    for (uint32_t i = 1; i < cells; i++) {
        if ((double)(curve[i] - highest) < step) continue;
        highest = curve[i];
        if (last && i - last > longest) longest = i - last;
        last = i;
    }
    return (double)(cells - last) <= rest_share * (double)longest;
}

// Says if the curve has all of its rise before the last two ninths: it ended just within the last
// third.
static bool is_flat_since(const struct fitting *fitting, const int64_t *curve,
                          const struct growth_stack *stack) {
    const uint32_t cells = fitting->heap.cells, third = cells / THIRDS;
    const double first = (double)stack->first_bytes, last = (double)stack->last_bytes;
    const uint32_t from = cells - third + third / THIRDS;
    return (double)curve[from] >= first + there_share * (last - first) &&
           !is_between_steps(curve, cells, last - first);
}

// Says if the curve goes on to rise in its last third, beyond all of the one before, and not by
// chance. False: it rises there by so little that it neither grows nor is flat.
static bool judge_last_third(const struct growth *growth, const struct fitting *fitting,
                             size_t index, struct growth_stack *stack) {
    const uint32_t third = fitting->heap.cells - fitting->heap.cells / THIRDS;
    const int64_t *curve = fitting->curves + index * CELLS, last = stack->last_bytes;
    int64_t before = 0;
    for (uint32_t cell = third / 2; cell <= third; cell++)
        if (curve[cell] > before) before = curve[cell];
    const int64_t rise = least_of(growth_rise(before, last), fitting->last_most);
    const double own = (double)growth_rise(stack->first_bytes, last);
    bool is_rising =
        rise >= rise_least(fitting->snapshots->profile) || (double)rise >= steady_share * own;
    const bool is_flat = is_flat_since(fitting, curve, stack);
    stack->has_stalled = !is_rising || is_flat || stack->bytes_per_s <= 0;
    const int64_t fall = curve_fall(curve, third / 2, fitting->heap.cells);
    if (!stack->has_stalled &&
        !is_beyond_chance(growth, fitting->heap.cells, rise, fall, stack->fit))
        return false;
    return is_rising || is_flat || (double)rise <= flat_share * own;
}

// Says if most of a rise after an attach can be blocks that took the place of older ones, which
// were freed meanwhile: their stacks are not known, and the whole heap rose by less.
static bool is_replacing(const struct growth *growth, const struct fitting *fitting,
                         const struct stack *stack, int64_t rise) {
    enum { MOST = 2 };
    const struct profile *profile = fitting->snapshots->profile;
    const struct growth_heap *heap = &fitting->heap;
    const struct recording *recording = profile->recording;
    if (!recording->header.is_attached || growth->first || heap->high[0] == INT64_MAX) return false;
    if (!recording->header.has_census)
        return recording_earlier_frees(recording) * MOST >= (uint64_t)stack->exit_blocks;
    const int64_t gone = (int64_t)profile->inherited.bytes - profile->inherited.exit_bytes;
    return gone >= rise / MOST &&
           growth_rise(heap->low[0], heap->high[heap->cells - 1]) < rise - rise / MOST;
}

// Returns the fit over what was allocated meanwhile, if that is nearer to a line: a program that is
// kept waiting rises by less. Little else than the stack's own blocks would be a line in any case.
static double fit_over_work(const struct fitting *fitting, const int64_t *curve, int64_t rise,
                            double fit) {
    const double least_fit = 0.7, least_rises = 4, *allocated = fitting->heap.allocated;
    const uint32_t cells = fitting->heap.cells;
    const double all = cells ? allocated[cells - 1] - allocated[0] : 0;
    double work_fit;
    if (fit < least_fit || all < least_rises * (double)rise) return fit;
    (void)curve_fit(curve, allocated, cells, &work_fit);
    return work_fit > fit ? work_fit : fit;
}

static void judge(struct growth *growth, const struct fitting *fitting, size_t index) {
    const struct profile *profile = fitting->snapshots->profile;
    const int64_t *curve = fitting->curves + index * CELLS, at_end = fitting->at_end[index];
    const uint32_t cells = fitting->heap.cells;
    const int64_t first = fitting->at_start[index], least = rise_least(profile);
    int64_t last = curve[cells - 1];
    const double cell_s = (double)(growth->end_ns - growth->start_ns) / 1e9 / CELLS;
    struct growth_stack stack = {
        .stack = fitting->candidates.items[index], .first_bytes = first, .last_bytes = last};
    bool is_freed = profile_has_ended(profile) &&
                    (double)growth_rise(at_end, last) >= GROWTH_GIVEN_BACK_SHARE * (double)last;
    if (!is_freed) last = at_end;
    stack.last_bytes = last;
    stack.freed_bytes = is_freed ? growth_rise(at_end, last) : 0;
    stack.interval_bytes = interval_of(fitting, &profile->stacks[stack.stack], is_freed);
    double slope = curve_fit(curve, NULL, cells, &stack.fit);
    const int64_t rise = growth_rise(first, last);  // chance makes every second one of samples rise
    if (rise < least || rise <= stack.interval_bytes) return;
    if (is_replacing(growth, fitting, &profile->stacks[stack.stack], rise)) return;
    stack.fit = fit_over_work(fitting, curve, rise, stack.fit);
    stack.bytes_per_s = cell_s > 0 ? slope / cell_s : 0;
    if (!judge_last_third(growth, fitting, index, &stack)) return;
    if (stack.has_stalled && !find_rise(growth, fitting, index, &stack)) {
        growth->late_count +=
            (double)growth_rise(first, curve[cells - 1]) < steady_share * (double)rise;
        return;
    }
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
    growth_heap_read(snapshots->profile, growth->start_ns, growth->end_ns, &fitting->heap);
    const uint32_t cells = fitting->heap.cells;
    fitting->last_most = growth_heap_rise_most(&fitting->heap, cells - cells / THIRDS);
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
    *growth = (struct growth){.first = first, .rise_least = rise_least(snapshots->profile)};
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
    growth_heap_read(snapshots->profile, growth->start_ns, growth->end_ns, &fitting.heap);
    if (is_ok && draw_curves(growth, &fitting)) {
        curves = fitting.curves;
        fitting.curves = NULL;
    }
    fitting_free(&fitting);
    return curves;
}
