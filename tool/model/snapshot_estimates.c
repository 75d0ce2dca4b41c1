// SPDX-License-Identifier: Apache-2.0
#include "tool/model/snapshot_estimates.h"

#include <stdlib.h>

// Samples that came and that went, and the variance of both.
struct behind {
    int64_t came, went;
    double bytes_came, bytes_went, blocks_came, blocks_went;
    double extra;  // blocks that those which live stand for beyond themselves
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
                           .blocks_went = sums->frees_variance,
                           .extra = (double)(int64_t)sums->extra / CAIRN_SAMPLE_ONE};
}

// Of the peak only the difference of both is known.
static struct behind behind_peak(const struct profile *profile, size_t cell) {
    struct cell_values values;
    if (!profile_cell(profile, cell, &values)) return (struct behind){0};
    const struct estimate *estimate = &values.estimates[ESTIMATED_PEAK];
    return (struct behind){.came = estimate->samples,
                           .bytes_came = estimate->bytes_variance,
                           .blocks_came = estimate->blocks_variance,
                           .extra = estimate->extra_blocks};
}

static struct behind behind_at(const struct snapshots *snapshots,
                               const struct snapshot_choice *choice, size_t cell) {
    struct cairn_sample_value sums;
    if (choice->kind == CHOICE_PEAK) return behind_peak(snapshots->profile, cell);
    if (choice->kind == CHOICE_EXIT)
        snapshots_cell_samples_now(snapshots, cell, &sums);
    else
        snapshots_cell_samples(snapshots, choice->snapshot, cell, &sums);
    return behind_of(&sums);
}

static void add(struct behind *sum, struct behind added) {
    sum->came = (int64_t)((uint64_t)sum->came + (uint64_t)added.came);
    sum->went = (int64_t)((uint64_t)sum->went + (uint64_t)added.went);
    sum->bytes_came += added.bytes_came;
    sum->bytes_went += added.bytes_went;
    sum->blocks_came += added.blocks_came;
    sum->blocks_went += added.blocks_went;
    sum->extra += added.extra;
}

static double positive(double value) {
    return value > 0 ? value : 0;
}

static struct estimate live_of(const struct sampled_scale *scale, const struct behind *behind) {
    return sampled_estimate(scale, behind->came - behind->went, behind->extra,
                            positive(behind->bytes_came - behind->bytes_went),
                            positive(behind->blocks_came - behind->blocks_went));
}

// What came or went in between; how many blocks that stands for is not known of each.
static struct estimate moved_of(const struct sampled_scale *scale, const struct group *group) {
    const struct behind *from = &group->from, *to = &group->to;
    return sampled_estimate(
        scale, to->came - from->came + to->went - from->went, 0,
        positive(to->bytes_came - from->bytes_came + to->bytes_went - from->bytes_went),
        positive(to->blocks_came - from->blocks_came + to->blocks_went - from->blocks_went));
}

static struct estimate change_of(const struct sampled_scale *scale, const struct group *group,
                                 bool is_moved_known) {
    struct estimate change = live_of(scale, &group->from), later = live_of(scale, &group->to);
    estimate_add(&change, &later);
    struct estimate moved = moved_of(scale, group);
    bool is_less = is_moved_known && moved.bytes_variance <= change.bytes_variance;
    if (is_less) change.samples = moved.samples;
    if (is_less) change.uncertain = moved.uncertain;
    if (is_less) change.bytes_variance = moved.bytes_variance;
    if (is_moved_known && moved.blocks_variance < change.blocks_variance) {
        change.blocks_variance = moved.blocks_variance;
        change.extra_blocks = 0;
    }
    estimate_forget_limits(&change);
    return change;
}

static int compare(const void *a, const void *b) {
    const struct group *first = a, *second = b;
    if (first->stack != second->stack) return first->stack < second->stack ? -1 : 1;
    return (first->generation > second->generation) - (first->generation < second->generation);
}

// One for each cell; then cells of the same stack and generation become one.
static struct group *groups_of(const struct snapshots *snapshots,
                               const struct snapshot_choice *from, const struct snapshot_choice *to,
                               size_t *count) {
    const struct profile *profile = snapshots->profile;
    struct group *groups = calloc(profile->cell_count + 1, sizeof *groups);
    size_t cells = 0;
    *count = 0;
    if (!groups) return NULL;
    for (size_t id = 0; id < profile->cell_count; id++) {
        struct group *group = &groups[cells];
        if (!snapshots_cell_origin(snapshots, id, &group->stack, &group->generation)) continue;
        if (from) group->from = behind_at(snapshots, from, id);
        group->to = behind_at(snapshots, to, id);
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

static struct estimate *by_stack(const struct snapshots *snapshots) {
    return calloc(snapshots->profile->built_stack_count + 1, sizeof(struct estimate));
}

struct estimate *snapshot_estimates_between(const struct snapshots *snapshots,
                                            const struct snapshot_choice *from,
                                            const struct snapshot_choice *to) {
    bool has_peak = (from && from->kind == CHOICE_PEAK) || to->kind == CHOICE_PEAK;
    bool is_moved_known = !has_peak && !snapshots->profile->sampling.thinned_count;
    size_t count;
    struct group *groups = groups_of(snapshots, from, to, &count);
    struct estimate *estimates = groups ? by_stack(snapshots) : NULL;
    const struct sampled_scale *scale = &snapshots->profile->figures.scale;
    for (size_t i = 0; estimates && i < count; i++) {
        struct estimate change =
            from ? change_of(scale, &groups[i], is_moved_known) : live_of(scale, &groups[i].to);
        estimate_add(&estimates[groups[i].stack], &change);
    }
    free(groups);
    return estimates;
}

struct estimate *snapshot_estimates_at(const struct snapshots *snapshots,
                                       const struct snapshot_choice *choice) {
    return snapshot_estimates_between(snapshots, NULL, choice);
}

struct estimate *snapshot_estimates_since(const struct snapshots *snapshots, uint32_t generation) {
    struct estimate *estimates = by_stack(snapshots);
    for (size_t id = 0; estimates && id < snapshots->profile->cell_count; id++) {
        struct cell_values values;
        uint32_t stack, own_generation;
        if (snapshots_cell_origin(snapshots, id, &stack, &own_generation) &&
            own_generation >= generation && profile_cell(snapshots->profile, id, &values))
            estimate_add(&estimates[stack], &values.estimates[ESTIMATED_EXIT]);
    }
    return estimates;
}
