// SPDX-License-Identifier: Apache-2.0
// When the rule of steady growth holds, by stack, and by call site as soon as names are known.
#include <stdio.h>

#include "tool/render/findings_find.h"
#include "tool/render/growth.h"

enum {
    QUICK_SNAPSHOTS = 12,  // are enough to see that nothing grows where there are very many stacks
    QUICK_STACKS = 20 * 1000,
    MIN_CALLS = 5,
    MIN_BYTES = 256 * 1024,
};
static const double least_fit = 0.9, least_share = 0.05;

// Returns whether the stack belongs to a finding: it grows on a line, not by a few large steps.
static bool is_steady(const struct growth_stack *how, const struct stack *stack) {
    return !how->has_stalled && how->fit >= least_fit && stack->allocations >= MIN_CALLS;
}

static void note_growth(struct finding_growth *out, const struct growth *growth,
                        const struct snapshots *snapshots) {
    const struct profile *profile = snapshots->profile;
    out->is_known = growth->is_known;
    out->moment_count = growth->moment_count;
    out->growing_count = growth->count - growth->stalled_count;
    out->stalled_count = growth->stalled_count;
    out->late_count = growth->late_count;
    out->rise_least = growth->rise_least;
    out->is_sampled = profile->sampling.is_on;
    out->start_ns = growth->start_ns, out->end_ns = growth->end_ns;
    if (growth->first < snapshots->count)
        snprintf(out->label, sizeof out->label, "%s", snapshots->list[growth->first].label);
    for (size_t i = 0; i < growth->count && out->count < GROWTH_STACKS_MAX; i++) {
        const struct growth_stack *how = &growth->list[i];
        const struct stack *stack = &profile->stacks[how->stack];
        if (!how->has_stalled && !is_steady(how, stack)) continue;
        out->list[out->count].stack = stack;
        out->list[out->count++].how = *how;
    }
}

// The view looks at up to GROWTH_SNAPSHOTS_MAX, and is to say the same.
static bool build(struct finding_growth *out, const struct snapshots *snapshots,
                  struct error *error) {
    const size_t first = growth_first(snapshots);
    const bool is_large = snapshots->profile->stack_count > QUICK_STACKS;
    const size_t most = is_large ? QUICK_SNAPSHOTS : GROWTH_SNAPSHOTS_MAX;
    struct growth growth = {0};
    if (!growth_build(&growth, snapshots, first, most, error)) return false;
    bool has_any = growth.count > growth.stalled_count;
    if (is_large && has_any) {
        growth_free(&growth);
        if (!growth_build(&growth, snapshots, first, GROWTH_SNAPSHOTS_MAX, error)) return false;
    }
    note_growth(out, &growth, snapshots);
    growth_free(&growth);
    return true;
}

struct finding finding_of_growth(const struct finding_growth *growth, size_t index) {
    const struct growth_stack *how = &growth->list[index].how;
    return (struct finding){.kind = FINDING_GROWTH,
                            .stack = growth->list[index].stack,
                            .stack_count = 1,
                            .moment_count = growth->moment_count,
                            .fit = how->fit,
                            .bytes_per_s = how->bytes_per_s,
                            .is_freed = how->freed_bytes != 0,
                            .first_bytes = how->first_bytes,
                            .last_bytes = how->last_bytes,
                            .interval_bytes = how->interval_bytes};
}

static void add_bytes(int64_t *sum, int64_t bytes) {
    if (__builtin_add_overflow(*sum, bytes, sum)) *sum = INT64_MAX;
}

void finding_add_growth(struct finding *finding, const struct growth_stack *how) {
    finding->stack_count++;
    finding->bytes_per_s += how->bytes_per_s;
    if (how->fit < finding->fit) finding->fit = how->fit;
    add_bytes(&finding->first_bytes, how->first_bytes);
    add_bytes(&finding->last_bytes, how->last_bytes);
    add_bytes(&finding->interval_bytes, how->interval_bytes);
}

bool finding_growth_is_much(struct finding *finding, const struct profile *profile) {
    int64_t rise = growth_rise(finding->first_bytes, finding->last_bytes);
    if (rise < MIN_BYTES || (double)rise < least_share * (double)profile->peak.bytes) return false;
    finding_saves_bytes(finding, (uint64_t)rise, (uint64_t)profile->peak.bytes);
    // what is given back in the end may well have been needed
    if (finding->is_freed) finding->gain /= 2;
    return true;
}

bool finding_find_growth(struct findings *findings, const struct profile *profile,
                         struct error *error) {
    struct snapshots snapshots;
    struct finding_growth *growth = &findings->growth;
    if (!snapshots_build(&snapshots, profile, error)) return false;
    bool is_ok = build(growth, &snapshots, error);
    snapshots_free(&snapshots);
    for (size_t i = 0; is_ok && i < growth->count; i++) {
        if (growth->list[i].how.has_stalled) break;
        struct finding finding = finding_of_growth(growth, i);
        if (!finding_growth_is_much(&finding, profile)) continue;
        *finding_add(findings, FINDING_GROWTH) = finding;
        break;
    }
    return is_ok;
}
