// SPDX-License-Identifier: Apache-2.0
// What the newest commit moved, in the form of a check's results: one for each figure that moved,
// one for each series that did not.
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/history/screen.h"

enum { MOVES_SHOWN = 3, MOVE_COLUMNS = 14, FRAMES_COLUMNS = 150, FRAMES_BYTES = 4 * 150 + 1 };

// Lines of the stacks that moved, and the place of the first.
static bool describe_moves(struct history *history, const struct history_step *step,
                           struct result *result, struct error *error) {
    struct history_moves moves;
    size_t size;
    if (!history_moves_find(history, step, MOVES_SHOWN, &moves, error)) return false;
    const char *old_system, *new_system;
    bool has_moved = history_system_changed(history, step, &old_system, &new_system);
    FILE *out = moves.list.count || has_moved ? open_memstream(&result->offenders, &size) : NULL;
    if (out && has_moved)
        fprintf(out, "      recorded on %s, before on %s\n", new_system, old_system);
    for (size_t i = 0; out && i < moves.list.count; i++) {
        const struct history_moved *moved = &moves.list.items[i];
        char frames[FRAMES_BYTES];
        snprintf(frames, sizeof frames, "%s", moved->frames);
        text_cut(frames, FRAMES_COLUMNS);
        fprintf(out, "      %*s  %s%s%s\n", MOVE_COLUMNS,
                history_change(step->measure, moved->after - moved->before).text, frames,
                moved->place ? "  " : "", moved->place ? moved->place : "");
    }
    if (out) fclose(out);
    if (moves.list.count && moves.list.items[0].place)
        result->place = strdup(moves.list.items[0].place);
    history_moves_free(&moves);
    return true;
}

static bool add_step(struct history *history, const struct history_step *step, bool rises_fail,
                     struct results *results, struct error *error) {
    const struct history_commit *before = history_before(history, step);
    char name[HISTORY_NAME_BYTES], text[sizeof((struct result *)0)->text];
    bool is_up = step->new_level > step->old_level;
    struct result result = {.budget = history_measures[step->measure].name,
                            .holds = !(is_up && rises_fail),
                            .is_note = !(is_up && rises_fail)};
    history_series_name(&history->series.items[step->series], name);
    snprintf(result.subject, sizeof result.subject, "%.*s", (int)sizeof result.subject - 1, name);
    history_step_text(step, text, sizeof text);
    snprintf(result.text, sizeof result.text, "%.200s since %.*s%s", text, GIT_SHORT, before->hash,
             before->is_changed ? "+" : "");
    return describe_moves(history, step, &result, error) &&
           (results_add(results, &result) || error_set(error, "no memory for results"));
}

static bool add_open(struct history *history, const struct history_step *step,
                     struct results *results, struct error *error) {
    char name[HISTORY_NAME_BYTES], text[sizeof((struct result *)0)->text];
    struct result result = {
        .budget = history_measures[step->measure].name, .holds = true, .is_open = true};
    history_series_name(&history->series.items[step->series], name);
    snprintf(result.subject, sizeof result.subject, "%.*s", (int)sizeof result.subject - 1, name);
    history_open_text(step, text, sizeof text);
    snprintf(result.text, sizeof result.text, "%s", text);
    return results_add(results, &result) || error_set(error, "no memory for results");
}

static bool add_series(struct history *history, const struct history_view *view, uint32_t index,
                       bool rises_fail, struct results *results, struct error *error) {
    const struct history_commit *last = &history->commits.items[history->commits.count - 1];
    const struct history_series *series = &history->series.items[index];
    bool has_moved = false;
    for (size_t i = 0; i < history->steps.count; i++) {
        const struct history_step *step = &history->steps.items[i];
        bool is_wanted = step->series == index && history_after(history, step) == last &&
                         (view->measure < 0 || (int)step->measure == view->measure);
        if (!is_wanted) continue;
        has_moved = true;
        if (!add_step(history, step, rises_fail, results, error)) return false;
    }
    for (size_t i = 0; i < history->open.count; i++) {
        const struct history_step *step = &history->open.items[i];
        bool is_wanted =
            step->series == index && (view->measure < 0 || (int)step->measure == view->measure);
        if (!is_wanted) continue;
        has_moved = true;
        if (!add_open(history, step, results, error)) return false;
    }
    if (has_moved) return true;
    bool is_new = history_earlier_commit(history, series) < 0;
    struct result result = {.budget =
                                view->measure < 0 ? "all" : history_measures[view->measure].name,
                            .holds = true,
                            .is_new = is_new};
    snprintf(result.text, sizeof result.text, "%s",
             is_new ? "no earlier commit has it: nothing to compare with" : "nothing moved");
    char name[HISTORY_NAME_BYTES];
    history_series_name(series, name);
    snprintf(result.subject, sizeof result.subject, "%.*s", (int)sizeof result.subject - 1, name);
    return results_add(results, &result) || error_set(error, "no memory for results");
}

bool history_results(struct history *history, const struct history_view *view, bool rises_fail,
                     struct results *results, struct error *error) {
    results->is_of_changes = true;
    results->is_first = history->commits.count < 2;
    results->since = history_since(history, view);
    for (uint32_t i = 0; i < history->series.count; i++) {
        const struct history_series *series = &history->series.items[i];
        if (!history_is_shown(view, series) || !history_is_at_end(history, series)) continue;
        if (!add_series(history, view, i, rises_fail, results, error)) return false;
    }
    return true;
}
