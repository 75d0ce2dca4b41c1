// SPDX-License-Identifier: Apache-2.0
#include "tool/model/moment_estimates.h"

#include <stdlib.h>

// Samples that came and that went, and the variance of both.
struct behind {
    int64_t came, went;
    double bytes_came, bytes_went, blocks_came, blocks_went;
};

// Of one stack's cells of one generation.
struct group {
    uint32_t stack, generation;
    struct behind from, to;
};

static struct behind behind_of(const struct cairn_sample_value *sums) {
    return (struct behind){.came = (int64_t)sums->calls,
                           .went = (int64_t)sums->frees,
                           .bytes_came = sums->allocated_variance,
                           .bytes_went = sums->freed_variance,
                           .blocks_came = sums->calls_variance,
                           .blocks_went = sums->frees_variance};
}

// Of the peak only the difference of both is known.
static struct behind behind_peak(const struct profile *profile, size_t cell) {
    struct cell_values values;
    if (!profile_cell(profile, cell, &values)) return (struct behind){0};
    const struct estimate *estimate = &values.estimates[ESTIMATED_PEAK];
    return (struct behind){.came = estimate->samples,
                           .bytes_came = estimate->bytes_variance,
                           .blocks_came = estimate->blocks_variance};
}

static struct behind behind_at(const struct moments *moments, const struct instant *instant,
                               size_t cell) {
    struct cairn_sample_value sums;
    if (instant->kind == INSTANT_PEAK) return behind_peak(moments->profile, cell);
    if (instant->kind == INSTANT_EXIT)
        moments_cell_samples_now(moments, cell, &sums);
    else
        moments_cell_samples(moments, instant->moment, cell, &sums);
    return behind_of(&sums);
}

static void add(struct behind *sum, struct behind added) {
    sum->came = (int64_t)((uint64_t)sum->came + (uint64_t)added.came);
    sum->went = (int64_t)((uint64_t)sum->went + (uint64_t)added.went);
    sum->bytes_came += added.bytes_came;
    sum->bytes_went += added.bytes_went;
    sum->blocks_came += added.blocks_came;
    sum->blocks_went += added.blocks_went;
}

static double positive(double value) {
    return value > 0 ? value : 0;
}

static struct estimate live_of(const struct behind *behind) {
    return (struct estimate){.samples = behind->came - behind->went,
                             .bytes_variance = positive(behind->bytes_came - behind->bytes_went),
                             .blocks_variance =
                                 positive(behind->blocks_came - behind->blocks_went)};
}

// What came or went in between.
static struct estimate moved_of(const struct group *group) {
    const struct behind *from = &group->from, *to = &group->to;
    return (struct estimate){.samples = to->came - from->came + to->went - from->went,
                             .bytes_variance = positive(to->bytes_came - from->bytes_came +
                                                        to->bytes_went - from->bytes_went),
                             .blocks_variance = positive(to->blocks_came - from->blocks_came +
                                                         to->blocks_went - from->blocks_went)};
}

static struct estimate change_of(const struct group *group, bool is_moved_known) {
    struct estimate change = live_of(&group->from), later = live_of(&group->to);
    estimate_add(&change, &later);
    struct estimate moved = moved_of(group);
    bool is_less = is_moved_known && moved.bytes_variance <= change.bytes_variance;
    if (is_less) change.samples = moved.samples;
    if (is_less) change.bytes_variance = moved.bytes_variance;
    if (is_moved_known && moved.blocks_variance < change.blocks_variance)
        change.blocks_variance = moved.blocks_variance;
    return change;
}

static int compare(const void *a, const void *b) {
    const struct group *first = a, *second = b;
    if (first->stack != second->stack) return first->stack < second->stack ? -1 : 1;
    return (first->generation > second->generation) - (first->generation < second->generation);
}

// One for each cell; then cells of the same stack and generation become one.
static struct group *groups_of(const struct moments *moments, const struct instant *from,
                               const struct instant *to, size_t *count) {
    const struct profile *profile = moments->profile;
    struct group *groups = calloc(profile->cell_count + 1, sizeof *groups);
    size_t cells = 0;
    *count = 0;
    if (!groups) return NULL;
    for (size_t id = 0; id < profile->cell_count; id++) {
        struct group *group = &groups[cells];
        if (!moments_cell_origin(moments, id, &group->stack, &group->generation)) continue;
        if (from) group->from = behind_at(moments, from, id);
        group->to = behind_at(moments, to, id);
        cells++;
    }
    qsort(groups, cells, sizeof *groups, compare);
    for (size_t i = 0; i < cells; i++) {
        if (!*count || compare(&groups[*count - 1], &groups[i])) {
            groups[(*count)++] = groups[i];
            continue;
        }
        add(&groups[*count - 1].from, groups[i].from);
        add(&groups[*count - 1].to, groups[i].to);
    }
    return groups;
}

static struct estimate *by_stack(const struct moments *moments) {
    return calloc(moments->profile->built_stack_count + 1, sizeof(struct estimate));
}

struct estimate *moment_estimates_between(const struct moments *moments, const struct instant *from,
                                          const struct instant *to) {
    bool has_peak = (from && from->kind == INSTANT_PEAK) || to->kind == INSTANT_PEAK;
    bool is_moved_known = !has_peak && !moments->profile->sampling.thinned_count;
    size_t count;
    struct group *groups = groups_of(moments, from, to, &count);
    struct estimate *estimates = groups ? by_stack(moments) : NULL;
    for (size_t i = 0; estimates && i < count; i++) {
        struct estimate change = change_of(&groups[i], is_moved_known && from);
        estimate_add(&estimates[groups[i].stack], &change);
    }
    free(groups);
    return estimates;
}

// The difference from nothing.
struct estimate *moment_estimates_at(const struct moments *moments, const struct instant *instant) {
    return moment_estimates_between(moments, NULL, instant);
}

struct estimate *moment_estimates_since(const struct moments *moments, uint32_t generation) {
    struct estimate *estimates = by_stack(moments);
    for (size_t id = 0; estimates && id < moments->profile->cell_count; id++) {
        struct cell_values values;
        uint32_t stack, own_generation;
        if (moments_cell_origin(moments, id, &stack, &own_generation) &&
            own_generation >= generation && profile_cell(moments->profile, id, &values))
            estimate_add(&estimates[stack], &values.estimates[ESTIMATED_EXIT]);
    }
    return estimates;
}
