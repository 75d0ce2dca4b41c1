// SPDX-License-Identifier: Apache-2.0
#include "tool/model/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS                                                                                     \
    { "block", "blocks" }
#define CALLS                                                                                      \
    { "call", "calls" }

// clang-format off
static const struct measure_row rows[MEASURE_COUNT] = {
    [MEASURE_PEAK] = {"peak", "at the peak", "what they held at the peak", BLOCKS, true,
                      MEASURE_PEAK_BLOCKS},
    [MEASURE_EXIT] = {"exit", "at the end", "what they hold at the end", BLOCKS, true,
                      MEASURE_EXIT_BLOCKS},
    [MEASURE_ALLOCATED] = {"allocated", "allocated", "the bytes they allocated", CALLS, true,
                           MEASURE_CALLS},
    [MEASURE_CALLS] = {"calls", "allocation calls", "their calls", CALLS, false, MEASURE_CALLS},
    [MEASURE_PEAK_BLOCKS] = {"peak blocks", "at the peak", "their blocks at the peak", BLOCKS,
                             false, MEASURE_PEAK_BLOCKS},
    [MEASURE_EXIT_BLOCKS] = {"exit blocks", "at the end", "their blocks at the end", BLOCKS, false,
                             MEASURE_EXIT_BLOCKS},
    [MEASURE_TEMPORARY] = {"temporary", "temporary blocks", "their temporary blocks", BLOCKS, false,
                           MEASURE_TEMPORARY},
    [MEASURE_SHORT] = {"short-lived", "short-lived blocks", "their short-lived blocks", BLOCKS,
                       false, MEASURE_SHORT},
    [MEASURE_SLACK] = {"slack", "of slack", "rounding by the allocator", CALLS, true,
                       MEASURE_CALLS},
    [MEASURE_ALIGNMENT] = {"alignment", "lost to alignment",
                           "what their aligned blocks took beyond plain ones", CALLS, true,
                           MEASURE_CALLS},
    [MEASURE_AT] = {"bytes at snapshot", "at that time", "what they held at the snapshot", BLOCKS, true,
                      MEASURE_AT_BLOCKS},
    [MEASURE_AT_BLOCKS] = {"blocks at snapshot", "at that time", "their blocks at the snapshot", BLOCKS, false,
                             MEASURE_AT_BLOCKS},
    [MEASURE_OVERRUNS] = {"overrun blocks", "overruns", "their overrun blocks", BLOCKS, false,
                         MEASURE_OVERRUNS},
};
// clang-format on

const struct measure_row *measure_about(enum measure measure) {
    return &rows[measure];
}

const char *measure_name(enum measure measure) {
    return rows[measure].name;
}

bool measure_parse(const char *name, enum measure *measure) {
    for (int i = 0; i < MEASURE_COUNT; i++) {
        if (strchr(rows[i].name, ' ') || strcmp(name, rows[i].name) != 0) continue;
        *measure = (enum measure)i;
        return true;
    }
    return false;
}

void measured_add(struct measured *sum, struct measured added) {
    sum->value = (int64_t)((uint64_t)sum->value + (uint64_t)added.value);
    sum->blocks = (int64_t)((uint64_t)sum->blocks + (uint64_t)added.blocks);
    sum->is_in_blocks |= added.is_in_blocks;
    if (!estimate_is_none(&added.estimate)) estimate_add(&sum->estimate, &added.estimate);
}

static int64_t counted_least(struct measured measured) {
    const struct estimate *estimate = &measured.estimate;
    return (int64_t)(measured.is_in_blocks ? estimate->blocks_least : estimate->bytes_least);
}

static int64_t counted_most(struct measured measured) {
    return (measured.is_in_blocks ? estimate_blocks_most : estimate_bytes_most)(&measured.estimate);
}

int64_t measured_interval(struct measured measured) {
    const int64_t most = counted_most(measured);
    if (most && counted_least(measured) >= most) return 0;  // counted
    return (measured.is_in_blocks ? estimate_blocks_interval
                                  : estimate_bytes_interval)(&measured.estimate);
}

int64_t measured_samples(struct measured measured) {
    return (measured.is_in_blocks ? estimate_block_samples : estimate_samples)(&measured.estimate);
}

int64_t measured_least(struct measured measured) {
    double unsure = (measured.is_in_blocks ? estimate_unsure_blocks
                                           : estimate_unsure_bytes)(&measured.estimate);
    int64_t interval = measured_interval(measured), value = measured.value;
    if (measured.estimate.bytes_weight > 0 && unsure < (double)interval)
        interval = (int64_t)ceil(unsure);
    const int64_t least = counted_least(measured);
    const int64_t end = value > 0 && interval > value ? 0 : figures_add(value, -interval);
    return end > least ? end : least;
}

int64_t measured_most(struct measured measured) {
    int64_t most = counted_most(measured);
    int64_t end = figures_add(measured.value, measured_interval(measured));
    if (most && most < end) end = most;
    return end > counted_least(measured) ? end : counted_least(measured);
}

int64_t measured_shown(struct measured measured) {
    int64_t most = measured_most(measured), least = counted_least(measured);
    if (least > measured.value) return least;
    return measured.value > most ? most : measured.value;
}

bool measured_is_unreliable(struct measured measured) {
    int64_t interval = measured_interval(measured), samples = measured_samples(measured);
    // what is certain is there, whatever was missed beside it
    bool is_bound = !samples || interval <= measured.value;
    bool is_mostly_certain = estimate_certain(&measured.estimate) && is_bound;
    return samples < ESTIMATE_FEW_SAMPLES && interval > 0 && !is_mostly_certain;
}

static struct measured in_bytes(int64_t bytes, int64_t blocks, const struct estimate *estimate) {
    return (struct measured){bytes, blocks, false, *estimate};
}

static struct measured in_blocks(int64_t blocks, const struct estimate *estimate) {
    return (struct measured){blocks, blocks, true, *estimate};
}

struct measured measured_bytes(int64_t bytes, const struct estimate *estimate) {
    return in_bytes(bytes, 0, estimate);
}

struct measured measured_blocks(int64_t blocks, const struct estimate *estimate) {
    return in_blocks(blocks, estimate);
}

struct measured measured_of_interval(int64_t bytes, int64_t interval, int64_t samples) {
    const struct estimate estimate = estimate_of_interval(interval, samples);
    return in_bytes(bytes, 0, &estimate);
}

static const struct estimate exact = {0};

// The share of those that were watched, of all calls. Two more of each kind keep the interval from
// vanishing where all or none were short-lived (Agresti and Coull).
static struct measured in_watched(uint64_t calls, const struct watched_blocks *watched) {
    const double added = 2;
    double count = (double)watched->blocks, all = (double)calls;
    if (!watched->blocks) return (struct measured){0};
    double share = (double)watched->short_lived / count;
    double likely = ((double)watched->short_lived + added) / (count + 2 * added);
    double variance = all * all * likely * (1 - likely) / (count + 2 * added);
    double short_lived = share < 1 ? all * share : all;  // a damaged count may be any
    int64_t blocks = short_lived < (double)INT64_MAX ? (int64_t)short_lived : INT64_MAX;
    const struct estimate estimate = {
        .samples = (int64_t)watched->blocks, .uncertain = count, .blocks_variance = variance};
    return in_blocks(blocks, &estimate);
}

bool measure_is_known(enum measure measure, const struct profile *profile) {
    if (measure == MEASURE_SHORT) return profile->totals.watched.blocks != 0;
    bool is_imported = profile->recording && profile->recording->header.imported;
    bool is_of_calls = measure == MEASURE_ALLOCATED || measure == MEASURE_CALLS;
    if (is_of_calls && !profile_has_calls(profile)) return false;
    if (!rows[measure].is_bytes && !is_of_calls && !profile_has_blocks(profile)) return false;
    if (!profile_has_frees(profile)) return is_of_calls;
    return measure != MEASURE_TEMPORARY || profile->totals.temporary || !is_imported;
}

// Inline: who wants the value alone does not copy the estimate.
static inline struct measured of_stack(enum measure measure, const struct stack *stack) {
    int64_t calls = (int64_t)stack->allocations;
    const struct estimate *estimates = stack_more(stack)->estimates;
    switch (measure) {
    case MEASURE_PEAK:
        return in_bytes(stack->peak_bytes, stack->peak_blocks, &estimates[ESTIMATED_PEAK]);
    case MEASURE_EXIT:
        return in_bytes(stack->exit_bytes, stack->exit_blocks, &estimates[ESTIMATED_EXIT]);
    case MEASURE_ALLOCATED:
        return in_bytes((int64_t)stack->allocated_bytes, calls, &estimates[ESTIMATED_ALLOCATED]);
    case MEASURE_PEAK_BLOCKS:
        return in_blocks(stack->peak_blocks, &estimates[ESTIMATED_PEAK]);
    case MEASURE_EXIT_BLOCKS:
        return in_blocks(stack->exit_blocks, &estimates[ESTIMATED_EXIT]);
    case MEASURE_AT:
        return in_bytes(stack->at_bytes, stack->at_blocks, &estimates[ESTIMATED_AT]);
    case MEASURE_AT_BLOCKS:
        return in_blocks(stack->at_blocks, &estimates[ESTIMATED_AT]);
    case MEASURE_TEMPORARY:
        return in_blocks((int64_t)stack->temporary, &exact);
    case MEASURE_SHORT:
        return in_watched(stack->allocations, &stack->watched);
    case MEASURE_SLACK:
        return in_bytes((int64_t)stack->slack_bytes, calls, &exact);
    case MEASURE_ALIGNMENT:
        return in_bytes((int64_t)stack->waste_bytes, calls, &exact);
    case MEASURE_OVERRUNS:
        return in_blocks(0, &exact);
    default:
        return in_blocks(calls, &estimates[ESTIMATED_ALLOCATED]);
    }
}

struct measured measure_stack(enum measure measure, const struct stack *stack) {
    return of_stack(measure, stack);
}

int64_t measure_value(enum measure measure, const struct stack *stack) {
    return of_stack(measure, stack).value;
}

// Calls and allocated bytes of a whole process are never estimates.
struct measured measure_total(enum measure measure, const struct profile *profile) {
    int64_t calls = (int64_t)profile->totals.allocations;
    const struct estimate *estimates = profile->estimates;
    const struct profile_peak *peak = &profile->peak;
    switch (measure) {
    case MEASURE_PEAK:
        return in_bytes(peak->bytes, peak->blocks, &estimates[ESTIMATED_PEAK]);
    case MEASURE_EXIT:
        return in_bytes(profile->exit_bytes, profile->exit_blocks, &estimates[ESTIMATED_EXIT]);
    case MEASURE_ALLOCATED:
        return in_bytes((int64_t)profile->totals.allocated_bytes, calls, &exact);
    case MEASURE_PEAK_BLOCKS:
        return in_blocks(peak->blocks, &estimates[ESTIMATED_PEAK]);
    case MEASURE_EXIT_BLOCKS:
        return in_blocks(profile->exit_blocks, &estimates[ESTIMATED_EXIT]);
    case MEASURE_AT:
        return in_bytes(profile->at_bytes, profile->at_blocks, &estimates[ESTIMATED_AT]);
    case MEASURE_AT_BLOCKS:
        return in_blocks(profile->at_blocks, &estimates[ESTIMATED_AT]);
    case MEASURE_TEMPORARY:
        return in_blocks((int64_t)profile->totals.temporary, &exact);
    case MEASURE_SHORT:
        return in_watched(profile->totals.allocations, &profile->totals.watched);
    case MEASURE_SLACK:
        return in_bytes((int64_t)profile->totals.slack_bytes, calls, &exact);
    case MEASURE_ALIGNMENT:
        return in_bytes((int64_t)profile->totals.waste_bytes, calls, &exact);
    case MEASURE_OVERRUNS:
        return in_blocks((int64_t)profile->overruns.guard.overrun_blocks, &exact);
    default:
        return in_blocks(calls, &exact);
    }
}

struct measured measure_figures(enum measure measure, const struct figures *figures) {
    int64_t calls = (int64_t)figures->allocations;
    switch (measure) {
    case MEASURE_PEAK:
        return in_bytes((int64_t)figures->peak_bytes, 0, &figures->peak_estimate);
    case MEASURE_EXIT:
        return in_bytes(figures->exit_bytes, figures->exit_blocks, &figures->exit_estimate);
    case MEASURE_EXIT_BLOCKS:
        return in_blocks(figures->exit_blocks, &figures->exit_estimate);
    case MEASURE_ALLOCATED:
        return in_bytes((int64_t)figures->allocated_bytes, calls, &exact);
    default:
        return in_blocks(calls, &exact);
    }
}

enum { DIGIT_BITS = 8, DIGITS = 256, KEY_BITS = 64 };

static inline unsigned digit_of(const struct measure_key *key, bool is_second, int shift) {
    return (unsigned)((is_second ? key->second : key->first) >> shift) % DIGITS;
}

// Counting sort by one digit: stable, and no work if all have the same.
static bool sort_by_digit(const struct measure_key *from, struct measure_key *to, size_t count,
                          bool is_second, int shift) {
    size_t starts[DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++) starts[digit_of(&from[i], is_second, shift) + 1]++;
    for (int digit = 0; digit < DIGITS; digit++)
        if (starts[digit + 1] == count) return false;
    for (int digit = 0; digit < DIGITS; digit++) starts[digit + 1] += starts[digit];
    for (size_t i = 0; i < count; i++) to[starts[digit_of(&from[i], is_second, shift)]++] = from[i];
    return true;
}

static void sort_by(struct measure_key **keys, struct measure_key **spare, size_t count,
                    bool is_second) {
    for (int shift = 0; count && shift < KEY_BITS; shift += DIGIT_BITS) {
        if (!sort_by_digit(*keys, *spare, count, is_second, shift)) continue;
        struct measure_key *sorted = *spare;
        *spare = *keys;
        *keys = sorted;
    }
}

// By the digits of the second key and then, which keeps that order, of the first: a tenth of the
// time of comparing.
struct measure_key *measure_keys_sort(struct measure_key *keys, struct measure_key *spare,
                                      size_t count) {
    sort_by(&keys, &spare, count, true);
    sort_by(&keys, &spare, count, false);
    return keys;
}

// A ranking of which only the first are wanted sorts and cuts what it has whenever its room is used
// up; what ranks behind the last of them is not kept from then on.
struct ranking {
    struct measure_key *keys, *spare;
    size_t count, room, most;
    struct measure_key last;
    bool is_cut;
};

static bool ranking_start(struct ranking *ranking, size_t stack_count, size_t most) {
    enum { ROOM_LEAST = 1024 };
    if (!most || most > stack_count) most = stack_count;
    size_t room = 2 * most < ROOM_LEAST ? ROOM_LEAST : 2 * most;
    if (room > stack_count) room = stack_count;
    *ranking = (struct ranking){.keys = calloc(room + 1, sizeof *ranking->keys),
                                .spare = calloc(room + 1, sizeof *ranking->spare),
                                .room = room,
                                .most = most};
    return ranking->keys && ranking->spare;
}

static void ranking_sort(struct ranking *ranking) {
    struct measure_key *sorted = measure_keys_sort(ranking->keys, ranking->spare, ranking->count);
    if (sorted == ranking->spare) ranking->spare = ranking->keys;
    ranking->keys = sorted;
    if (ranking->count <= ranking->most) return;
    ranking->count = ranking->most;
    ranking->is_cut = ranking->most != 0;
    if (ranking->is_cut) ranking->last = sorted[ranking->most - 1];
}

static void ranking_add(struct ranking *ranking, struct measure_key key) {
    const struct measure_key *last = &ranking->last;
    bool is_behind = ranking->is_cut && (key.first > last->first ||
                                         (key.first == last->first && key.second >= last->second));
    if (is_behind) return;
    if (ranking->count == ranking->room) ranking_sort(ranking);
    ranking->keys[ranking->count++] = key;
}

// Highest value first, and equal ones by id.
static uint32_t *rank(enum measure measure, const struct profile *profile, int64_t above,
                      size_t most, size_t *count) {
    struct ranking ranking;
    uint32_t *indexes = NULL;
    bool is_ok = ranking_start(&ranking, profile->stack_count, most);
    *count = 0;
    for (size_t i = 0; is_ok && i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        int64_t value = measure_value(measure, stack);
        struct measure_key key = {measure_key_of(value), stack->id, (uint32_t)i};
        if (value > above) ranking_add(&ranking, key);
    }
    if (is_ok) ranking_sort(&ranking);
    if (is_ok) indexes = calloc(ranking.count + 1, sizeof *indexes);
    if (indexes) *count = ranking.count;
    for (size_t i = 0; i < *count; i++) indexes[i] = ranking.keys[i].index;
    free(ranking.keys);
    free(ranking.spare);
    return indexes;
}

uint32_t *measure_rank(enum measure measure, const struct profile *profile, size_t *count) {
    return rank(measure, profile, 0, 0, count);
}

uint32_t *measure_rank_most(enum measure measure, const struct profile *profile, size_t most,
                            size_t *count) {
    return rank(measure, profile, 0, most, count);
}

uint32_t *measure_rank_all(enum measure measure, const struct profile *profile, size_t *count) {
    return rank(measure, profile, INT64_MIN, 0, count);
}

uint32_t *measure_rank_all_most(enum measure measure, const struct profile *profile, size_t most,
                                size_t *count) {
    return rank(measure, profile, INT64_MIN, most, count);
}
