// SPDX-License-Identifier: Apache-2.0
// Claims of a history: that a commit moved a figure, that it may have, that it moved nothing.
#include "tool/history/screen.h"

enum { LEVELS_BYTES = 512 };

bool history_is_at_end(const struct history *history, const struct history_series *series) {
    return series->points.count &&
           series->points.items[series->points.count - 1].commit + 1 == history->commits.count;
}

int64_t history_earlier_commit(const struct history *history, const struct history_series *series) {
    int64_t found = -1;
    for (size_t i = 0; i < series->points.count; i++) {
        const int64_t commit = series->points.items[i].commit;
        if (commit + 1 < (int64_t)history->commits.count && commit > found) found = commit;
    }
    return found;
}

// Counts the shown tests of the newest commit that an earlier one has, in `compared`, and those
// that none has. Returns whether all of the former were run for the commit before.
static bool count_tests(const struct history *history, const struct history_view *view,
                        size_t *compared, size_t *added) {
    bool is_before = true;
    *compared = *added = 0;
    for (size_t i = 0; i < history->series.count; i++) {
        const struct history_series *series = &history->series.items[i];
        if (!history_is_shown(view, series) || !history_is_at_end(history, series)) continue;
        const int64_t earlier = history_earlier_commit(history, series);
        if (earlier < 0)
            ++*added;
        else
            ++*compared;
        if (earlier >= 0 && earlier + 2 != (int64_t)history->commits.count) is_before = false;
    }
    return is_before;
}

const char *history_since(const struct history *history, const struct history_view *view) {
    size_t compared, added;
    bool is_before = count_tests(history, view, &compared, &added);
    if (!compared) return NULL;
    return is_before ? "the commit before" : "the last commit that has the test";
}

static void set_step(const struct history *history, const struct history_step *step,
                     struct claim *claim) {
    char name[HISTORY_NAME_BYTES];
    history_series_name(&history->series.items[step->series], name);
    claim_set_text(claim, "what", history_measures[step->measure].name);
    claim_set_text(claim, "to", history_after(history, step)->hash);
    claim_set(claim, "before", step->old_level);
    claim_set(claim, "after", step->new_level);
    claim_set_text(claim, "where", name);
}

void history_claim_of_step(const struct history *history, const struct history_step *step,
                           struct claim *claim) {
    char levels[LEVELS_BYTES];
    *claim = (struct claim){.key = CLAIM_MOVED};
    history_step_text(step, levels, sizeof levels);
    claim_set_text(claim, "levels", levels);
    claim_set_text(claim, "from", history_before(history, step)->hash);
    claim_set(claim, "commits", (int64_t)history_commits_between(history, step));
    claim_set(claim, "is_noisy", step->is_noisy);
    set_step(history, step, claim);
}

void history_claim_of_open(const struct history *history, const struct history_step *step,
                           struct claim *claim) {
    char levels[LEVELS_BYTES];
    *claim = (struct claim){.key = CLAIM_MAY_HAVE_MOVED};
    history_open_text(step, levels, sizeof levels);
    claim_set_text(claim, "levels", levels);
    claim_set(claim, "runs_before", (int64_t)step->runs_before);
    claim_set(claim, "runs_missing", (int64_t)step->missing);
    set_step(history, step, claim);
}

bool history_claim_of_rest(const struct history *history, const struct history_view *view,
                           struct claim *claim) {
    size_t compared, added;
    *claim = (struct claim){.key = CLAIM_NOT_MOVED};
    count_tests(history, view, &compared, &added);
    for (size_t i = 0; i < history->open.count; i++)
        if (history_step_is_shown(history, view, &history->open.items[i])) return false;
    for (size_t i = 0; i < history->steps.count; i++) {
        const struct history_step *step = &history->steps.items[i];
        const struct history_commit *newest = &history->commits.items[history->commits.count - 1];
        if (history_step_is_shown(history, view, step) && history_after(history, step) == newest)
            return false;
    }
    if (!compared) return false;
    claim_set(claim, "tests", (int64_t)compared);
    claim_set(claim, "new_tests", (int64_t)added);
    claim_set_text(claim, "to", history->commits.items[history->commits.count - 1].hash);
    claim_set_text(claim, "since", history_since(history, view));
    return true;
}
