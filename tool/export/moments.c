// SPDX-License-Identifier: Apache-2.0
#include "tool/export/moments.h"

#include <stdlib.h>

static bool add(struct moments *moments, struct moment moment) {
    struct moment *slot = array_push(&moments->list);
    if (slot) *slot = moment;
    return slot != NULL;
}

// A snapshot at the end says the same as the end.
static bool add_snapshots(struct moments *moments) {
    for (size_t i = 0; i < moments->snapshots.count; i++) {
        const struct snapshot *snapshot = &moments->snapshots.list[i];
        if (!snapshot->has_values || snapshot->reason == CAIRN_SNAPSHOT_EXIT) continue;
        const struct moment moment = {
            .choice = {.kind = CHOICE_SNAPSHOT, .snapshot = i, .at_ns = snapshot->at_ns},
            .name = snapshot->reason == CAIRN_SNAPSHOT_MARK ? "mark" : "snapshot",
            .label = *snapshot->label ? snapshot->label : NULL,
            .at_ns = snapshot->at_ns};
        if (!add(moments, moment)) return false;
    }
    return true;
}

static int compare(const void *a, const void *b) {
    const struct moment *first = a, *second = b;
    bool is_end = first->choice.kind == CHOICE_EXIT,
         is_other_end = second->choice.kind == CHOICE_EXIT;
    if (is_end != is_other_end) return is_end ? 1 : -1;
    return (first->at_ns > second->at_ns) - (first->at_ns < second->at_ns);
}

bool moments_find(struct moments *moments, const struct export *export, struct error *error) {
    const struct profile *profile = export->profile;
    uint64_t end_ns = recording_last_ns(profile->recording), peak_ns = profile->peak.at_ns;
    *moments = (struct moments){.profile = profile};
    if (export->has_snapshots && !snapshots_build(&moments->snapshots, profile, error))
        return false;
    bool is_ok = add_snapshots(moments) &&
                 add(moments, (struct moment){.choice = {.kind = CHOICE_PEAK, .at_ns = peak_ns},
                                              .name = "peak",
                                              .at_ns = peak_ns}) &&
                 add(moments, (struct moment){.choice = {.kind = CHOICE_EXIT, .at_ns = end_ns},
                                              .name = "exit",
                                              .at_ns = end_ns});
    if (is_ok) {
        qsort(moments->list.items, moments->list.count, sizeof *moments->list.items, compare);
        return true;
    }
    moments_free(moments);
    return error_set(error, "no memory for snapshots");
}

void moments_free(struct moments *moments) {
    array_free(&moments->list);
    snapshots_free(&moments->snapshots);
}

static void fill_plain(const struct profile *profile, bool is_peak, struct live_at *live,
                       struct estimate *estimates) {
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct stack *stack = &profile->stacks[i];
        live[i] = is_peak ? (struct live_at){stack->peak_bytes, stack->peak_blocks}
                          : (struct live_at){stack->exit_bytes, stack->exit_blocks};
        if (estimates)
            estimates[i] = stack_more(stack)->estimates[is_peak ? ESTIMATED_PEAK : ESTIMATED_EXIT];
    }
}

// From the numbers that stacks have when they are built to their places.
static bool fill_snapshot(const struct moments *moments, const struct moment *moment,
                          struct live_at *live, struct estimate *estimates) {
    struct live_at *held = snapshots_live(&moments->snapshots, moment->choice.snapshot);
    struct estimate *sure =
        held && estimates ? snapshot_estimates_at(&moments->snapshots, &moment->choice) : NULL;
    bool is_ok = held && (sure || !estimates);
    for (size_t i = 0; is_ok && i < moments->profile->stack_count; i++) {
        uint32_t number = moments->profile->stacks[i].number;
        live[i] = held[number];
        if (estimates) estimates[i] = sure[number];
    }
    free(held);
    free(sure);
    return is_ok;
}

bool moments_live(const struct moments *moments, const struct moment *moment, struct live_at **live,
                  struct estimate **estimates, struct error *error) {
    size_t count = moments->profile->stack_count;
    bool is_sampled = moments->profile->sampling.is_on;
    *live = calloc(count + 1, sizeof **live);
    *estimates = is_sampled ? calloc(count + 1, sizeof **estimates) : NULL;
    bool is_ok = *live && (*estimates || !is_sampled);
    if (is_ok && moment->choice.kind == CHOICE_SNAPSHOT)
        is_ok = fill_snapshot(moments, moment, *live, *estimates);
    else if (is_ok)
        fill_plain(moments->profile, moment->choice.kind == CHOICE_PEAK, *live, *estimates);
    if (is_ok) return true;
    free(*live);
    free(*estimates);
    return error_set(error, "no memory for a snapshot");
}
