// SPDX-License-Identifier: Apache-2.0
#include "tool/base/json.h"

#include "tool/history/screen.h"

enum { MOVES_SHOWN = 3, KEY_BYTES = 32 };

static void put_commit(struct json *json, const char *key, const struct history_commit *commit) {
    json_open_object(json, key);
    json_put_string(json, "hash", commit->hash);
    json_put_bool(json, "is_changed", commit->is_changed);
    json_put_string(json, "subject", commit->subject);
    json_put_int(json, "time_unix_s", commit->time_s);
    json_put_uint(json, "runs", commit->run_count);
    json_close(json);
}

static void put_figure(struct json *json, const struct history_point *point,
                       enum history_measure measure) {
    const struct history_figure *figure = &point->figures[measure];
    const char *name = history_measures[measure].name;
    if (figure->is_known)
        json_put_int(json, name, figure->value);
    else
        json_put_null(json, name);
    if (!figure->interval) return;
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "%s_interval", name);
    json_put_int(json, key, figure->interval);
}

static void put_series(struct json *json, const struct history_series *series) {
    json_open_object(json, NULL);
    json_put_string(json, "test", series->test);
    json_put_string(json, "program", series->program);
    json_put_string(json, "region", *series->region ? series->region : NULL);
    json_open_array(json, "points");
    for (size_t i = 0; i < series->points.count; i++) {
        const struct history_point *point = &series->points.items[i];
        json_open_object(json, NULL);
        json_put_uint(json, "commit", point->commit);
        json_put_bool(json, "is_exact", !point->flags);
        for (int measure = 0; measure < HISTORY_MEASURES; measure++)
            put_figure(json, point, (enum history_measure)measure);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static bool put_step(struct json *json, struct history *history, const struct history_step *step,
                     struct error *error) {
    const struct history_series *series = &history->series.items[step->series];
    struct history_moves moves;
    if (!history_moves_find(history, step, MOVES_SHOWN, &moves, error)) return false;
    json_open_object(json, NULL);
    json_put_string(json, "test", series->test);
    json_put_string(json, "program", series->program);
    json_put_string(json, "region", *series->region ? series->region : NULL);
    json_put_string(json, "measure", history_measures[step->measure].name);
    json_put_int(json, "before", step->old_level);
    json_put_int(json, "after", step->new_level);
    json_put_bool(json, "is_noisy", step->is_noisy);
    put_commit(json, "good", history_before(history, step));
    put_commit(json, "bad", history_after(history, step));
    json_put_uint(json, "commits", history_commits_between(history, step));
    const char *old_system, *new_system;
    json_put_bool(json, "is_other_system",
                  history_system_changed(history, step, &old_system, &new_system));
    json_open_array(json, "stacks");
    for (size_t i = 0; i < moves.list.count; i++) {
        json_open_object(json, NULL);
        json_put_int(json, "before", moves.list.items[i].before);
        json_put_int(json, "after", moves.list.items[i].after);
        json_put_string(json, "frames", moves.list.items[i].frames);
        json_put_string(json, "place", moves.list.items[i].place);
        json_close(json);
    }
    json_close(json);
    json_close(json);
    history_moves_free(&moves);
    return true;
}

static void put_open(struct json *json, const struct history *history,
                     const struct history_view *view) {
    json_open_array(json, "not_known");
    for (size_t i = 0; i < history->open.count; i++) {
        const struct history_step *step = &history->open.items[i];
        const struct history_series *series = &history->series.items[step->series];
        if (!history_step_is_shown(history, view, step)) continue;
        json_open_object(json, NULL);
        json_put_string(json, "test", series->test);
        json_put_string(json, "program", series->program);
        json_put_string(json, "region", *series->region ? series->region : NULL);
        json_put_string(json, "measure", history_measures[step->measure].name);
        json_put_int(json, "before", step->old_level);
        json_put_int(json, "after", step->new_level);
        put_commit(json, "commit", history_after(history, step));
        json_put_uint(json, "runs_before", step->runs_before);
        json_put_uint(json, "runs_missing", step->missing);
        json_close(json);
    }
    json_close(json);
}

static void put_claim(struct json *json, const struct claim *claim) {
    json_open_object(json, NULL);
    claim_put_json(json, claim);
    json_close(json);
}

static void put_claims(struct json *json, const struct history *history,
                       const struct history_view *view) {
    struct claim claim;
    json_open_array(json, "claims");
    for (size_t i = 0; i < history->steps.count; i++) {
        if (!history_step_is_shown(history, view, &history->steps.items[i])) continue;
        history_claim_of_step(history, &history->steps.items[i], &claim);
        put_claim(json, &claim);
    }
    for (size_t i = 0; i < history->open.count; i++) {
        if (!history_step_is_shown(history, view, &history->open.items[i])) continue;
        history_claim_of_open(history, &history->open.items[i], &claim);
        put_claim(json, &claim);
    }
    if (history_claim_of_rest(history, view, &claim)) put_claim(json, &claim);
    json_close(json);
}

bool history_write_json(struct history *history, const struct history_view *view, FILE *out,
                        struct error *error) {
    struct json json;
    bool is_ok = true;
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", HISTORY_SCHEMA);
    json_put_bool(&json, "is_in_git_order", history->has_git);
    json_put_uint(&json, "commits_left_out", history->left_out);
    json_put_string(&json, "note", *history->note ? history->note : NULL);
    json_open_array(&json, "commits");
    for (size_t i = 0; i < history->commits.count; i++)
        put_commit(&json, NULL, &history->commits.items[i]);
    json_close(&json);
    json_open_array(&json, "series");
    for (size_t i = 0; i < history->series.count; i++)
        if (history_is_shown(view, &history->series.items[i]))
            put_series(&json, &history->series.items[i]);
    json_close(&json);
    json_open_array(&json, "steps");
    for (size_t i = 0; i < history->steps.count && is_ok; i++)
        if (history_step_is_shown(history, view, &history->steps.items[i]))
            is_ok = put_step(&json, history, &history->steps.items[i], error);
    json_close(&json);
    put_open(&json, history, view);
    put_claims(&json, history, view);
    json_close(&json);
    fputc('\n', out);
    return is_ok;
}
