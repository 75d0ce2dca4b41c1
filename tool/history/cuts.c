// SPDX-License-Identifier: Apache-2.0
#include "tool/history/cuts.h"

#include <stdlib.h>

// A cut has to stand out by so many deviations, if they are well known. Among a hundred commits the
// largest cut of pure noise reaches 4 once in some hundred series. There are more pieces than cuts.
static const double stands_out = 5, piece_stands_out = 5.5;
// Of pairs of values across a cut, so many have to differ the same way. A piece of few has to lie
// far beyond.
static const double beyond_least = 0.75, beyond_least_of_piece = 0.95;
enum { FEW = 8 };
// Noise that is only seen in the values themselves needs so many on each side. Fewer are a step if
// they lie beyond all others, by a multiple of how far these lie apart.
// A single one needs so many others.
enum { SEEN_SIDE = 3, SEEN_PIECE = 4, SPREADS_OF_ONE = 4, OTHERS_OF_ONE = 11 };
// Returns the deviations that a difference needs if so many values tell the noise: what is as rare
// as `deviations` where it is known.
static double threshold(double deviations, double freedom) {
    return sqrt(freedom * expm1(deviations * deviations / freedom));
}

// Takes a difference of means of so many values for noise of this variance, known from so many.
static double stand_out(double distance, double variance, double freedom, double left_count,
                        double right_count, double deviations) {
    if (variance <= 0) return INFINITY;
    return distance / sqrt(variance * (1 / left_count + 1 / right_count)) /
           threshold(deviations, freedom);
}

static bool are_alike(const struct step_value *values, size_t count) {
    for (size_t i = 1; i < count; i++) {
        double distance = fabs((double)values[i].value - (double)values[0].value);
        if (distance > (double)values[i].bound + (double)values[0].bound) return false;
    }
    return true;
}

// Says whether one or two values are far enough beyond all on the other side of their cut.
static bool are_far_beyond(const struct step_value *few, size_t count,
                           const struct step_value *others, size_t other_count) {
    struct range near = range_of(few, count), rest = range_of(others, other_count);
    double gap = near.low > rest.high ? near.low - rest.high : rest.low - near.high;
    double spread = rest.high - rest.low;
    if (count == 1 && (other_count < OTHERS_OF_ONE || spread <= 0)) return false;
    return gap > 0 && gap >= spread * (count == 1 ? SPREADS_OF_ONE : 1);
}

// Values that agree on both sides of a cut.
static bool is_quiet_step(const struct part *part, size_t at) {
    const struct step_value *values = part->line->values + part->start;
    size_t count = part->end - part->start, after = count - at;
    bool has_enough = (at >= QUIET_BEFORE && after >= QUIET_AFTER) ||
                      (at >= QUIET_AFTER && after >= QUIET_BEFORE);
    return has_enough && are_alike(values, at) && are_alike(values + at, after);
}

// Returns by how much the means of `inner` values and of all others of a part stand out. `across`:
// the scatter of the neighbours at the ends.
static double score_of(const struct part *part, size_t inner, double inner_sum, double across,
                       size_t ends, double deviations) {
    const struct line *line = part->line;
    size_t count = part->end - part->start;
    double inner_count = (double)inner, outer_count = (double)(count - inner);
    double sum = line->sums[part->end] - line->sums[part->start];
    double distance = fabs((sum - inner_sum) / outer_count - inner_sum / inner_count);
    const double freedom_of_neighbor = 2.0 / 3;  // each value has a part in two of them
    if (distance < 1) return 0;
    if (!part->is_seen && part->floor <= 0) return INFINITY;
    if (!part->is_seen)
        return distance / sqrt(part->floor * (1 / inner_count + 1 / outer_count)) / deviations;
    double seen = line->scatters[part->end - 1] - line->scatters[part->start] - across;
    double pairs = (double)count - 1 - (double)ends, score = 0;
    if (pairs > 0)
        score =
            stand_out(distance, fmax(part->floor, fmin(fmax(seen, 0) / pairs, part->most_variance)),
                      pairs * freedom_of_neighbor, inner_count, outer_count, deviations);
    if (line->repeats >= REPEATS_LEAST && line->repeat_variance > 0)
        score = fmax(score, stand_out(distance, fmax(part->floor, line->repeat_variance),
                                      (double)line->repeats, inner_count, outer_count, deviations));
    return score;
}

// Returns of how many pairs the one of `right` is beyond the one of `left`, in the direction in
// which the means lie; equal ones count half. A few outliers move a mean, not this.
static double share_beyond(const struct step_value *left, size_t left_count,
                           const struct step_value *right, size_t right_count, bool is_up) {
    double beyond = 0;
    for (size_t i = 0; i < left_count; i++)
        for (size_t j = 0; j < right_count; j++) {
            int64_t one = left[i].value, other = right[j].value;
            beyond += one == other ? 0.5 : (other > one) == is_up;
        }
    return beyond / ((double)left_count * (double)right_count);
}

static bool are_beyond(const struct step_value *left, size_t left_count,
                       const struct step_value *right, size_t right_count, double least) {
    bool is_up = mean(right, right_count) > mean(left, left_count);
    return share_beyond(left, left_count, right, right_count, is_up) >= least;
}

static bool is_between_commits(const struct part *part, size_t at) {
    const struct step_value *value = part->line->values + part->start + at;
    return value[0].commit != value[-1].commit;
}

static double score_of_cut(const struct part *part, size_t at) {
    const struct line *line = part->line;
    const struct step_value *values = line->values + part->start;
    size_t count = part->end - part->start, after = count - at;
    size_t fewer = at < after ? at : after;
    double score = score_of(part, at, line->sums[part->start + at] - line->sums[part->start],
                            scatter_of_pair(&values[at - 1]), 1, stands_out);
    if (!part->is_seen || score < 1) return score;
    if (isinf(score)) return is_quiet_step(part, at) ? score : 0;
    if (fewer >= SEEN_SIDE) return score;
    bool is_far = at < after ? are_far_beyond(values, at, values + at, after)
                             : are_far_beyond(values + at, after, values, at);
    return is_far ? score : 0;
}

static struct cut best_cut(const struct part *part) {
    size_t count = part->end - part->start;
    const struct step_value *values = part->line->values + part->start;
    struct cut best = {0};
    for (size_t at = 1; at < count; at++) {
        if (!is_between_commits(part, at)) continue;
        double score = score_of_cut(part, at);
        if (score > best.score) best = (struct cut){.at = at, .score = score};
    }
    bool is_step = best.score >= 1 &&
                   (!part->is_seen ||
                    are_beyond(values, best.at, values + best.at, count - best.at, beyond_least));
    return is_step ? best : (struct cut){0};
}

// --- levels that came and went

static double score_of_piece(const struct part *part, size_t at, size_t end) {
    const struct line *line = part->line;
    const struct step_value *values = line->values + part->start;
    size_t count = part->end - part->start, least = part->is_seen ? SEEN_PIECE : 1;
    if (at < least || end < at + least || count < end + least) return 0;
    if (!is_between_commits(part, at) || !is_between_commits(part, end)) return 0;
    double sum = line->sums[part->start + end] - line->sums[part->start + at];
    return score_of(part, end - at, sum,
                    scatter_of_pair(&values[at - 1]) + scatter_of_pair(&values[end - 1]), 2,
                    piece_stands_out);
}

static void take_better(const struct part *part, size_t at, size_t end, struct cut *best) {
    double score = score_of_piece(part, at, end);
    if (score > best->score) *best = (struct cut){at, end, score};
}

static int compare_scatters(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

// Fills in the variance by three quarters of the neighbours, without those that differ most: steps
// are among these. The others have 0.368 of normal noise.
static bool find_most_variance(struct part *part) {
    const double share = 0.75, share_of_scatter = 0.368;
    size_t pairs = part->end - part->start - 1, used = (size_t)((double)pairs * share);
    double *scatters = calloc(pairs + 1, sizeof *scatters), sum = 0;
    if (!scatters) return false;
    for (size_t i = 0; i < pairs; i++)
        scatters[i] = scatter_of_pair(&part->line->values[part->start + i]);
    qsort(scatters, pairs, sizeof *scatters, compare_scatters);
    for (size_t i = 0; i < used; i++) sum += scatters[i];
    if (used) part->most_variance = sum / (double)used / share_of_scatter;
    free(scatters);
    return true;
}

// Says whether a piece differs from values before and behind it, half as many on each side.
static bool is_step_on_both_sides(const struct part *part, const struct cut *piece) {
    const struct step_value *values = part->line->values + part->start;
    size_t count = part->end - part->start, length = piece->end - piece->at;
    size_t around = length < FEW ? SEEN_PIECE : length / 2, after = count - piece->end;
    size_t before = piece->at < around ? piece->at : around,
           behind = after < around ? after : around;
    const struct step_value *first = values + piece->at, *end = values + piece->end;
    if (!part->is_seen) return true;
    if (length < FEW)
        return are_far_beyond(first, length, first - before, before) &&
               are_far_beyond(first, length, end, behind);
    return are_beyond(first - before, before, first, length, beyond_least_of_piece) &&
           are_beyond(first, length, end, behind, beyond_least_of_piece);
}

// Moves the ends of a piece where that makes it stand out more.
static struct cut refine(const struct part *part, struct cut piece) {
    enum { REFINEMENTS = 4 };
    for (int i = 0; i < REFINEMENTS; i++) {
        struct cut best = piece;
        size_t room = (piece.end - piece.at + 1) / 2, at = piece.at > room ? piece.at - room : 1;
        for (size_t end = piece.end - room + 1; end <= piece.end + room; end++)
            take_better(part, piece.at, end, &best);
        for (size_t end = best.end; at <= piece.at + room; at++) take_better(part, at, end, &best);
        if (best.at == piece.at && best.end == piece.end) break;
        piece = best;
    }
    return piece;
}

// Returns the shortest piece that stands out, among lengths that grow by an eighth: a longer one
// may be several levels.
static struct cut best_piece(const struct part *part) {
    enum { GROWTH = 8 };
    size_t count = part->end - part->start;
    for (size_t length = 1; length < count; length += length / GROWTH + 1) {
        struct cut best = {0};
        for (size_t at = 1; at + length < count; at++) take_better(part, at, at + length, &best);
        if (best.score >= 1 && is_step_on_both_sides(part, &best)) return refine(part, best);
    }
    return (struct cut){0};
}

bool cuts_find(struct part *part, struct cut *cut) {
    part->most_variance = INFINITY;
    *cut = best_cut(part);
    if (cut->at) return true;
    if (!find_most_variance(part)) return false;
    *cut = best_piece(part);
    return true;
}
