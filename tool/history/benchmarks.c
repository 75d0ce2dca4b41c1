// SPDX-License-Identifier: Apache-2.0
// The newest commit's figures as services that draw benchmarks over time take them: the
// "customSmallerIsBetter" list of github-action-benchmark, and Bencher's metric format (BMF).
#include "tool/base/json.h"
#include "tool/history/screen.h"

// A figure over the runs of one commit.
struct spread {
    int64_t median, least, most;
    int64_t interval;  // the widest of a run; 0: it was counted
    size_t run_count;  // that know the figure
};

// The median is that of the screen. False without memory.
static bool spread_find(const struct history *history, const struct history_series *series,
                        enum history_measure measure, struct spread *spread) {
    size_t newest = history->commits.count - 1;
    struct history_line line;
    *spread = (struct spread){.least = INT64_MAX, .most = INT64_MIN};
    if (!history_line_of(series, measure, &line)) return false;
    for (size_t i = 0; i < series->points.count; i++) {
        const struct history_point *point = &series->points.items[i];
        const struct history_figure *figure = &point->figures[measure];
        if (point->commit != newest || !figure->is_known) continue;
        if (figure->interval > spread->interval) spread->interval = figure->interval;
        if (figure->value < spread->least) spread->least = figure->value;
        if (figure->value > spread->most) spread->most = figure->value;
        spread->run_count++;
    }
    if (spread->run_count) spread->median = line.values[line.count - 1];
    history_line_free(&line);
    return true;
}

typedef void put_one(struct json *json, const char *name, int measure, const struct spread *spread);

// In github-action-benchmark's list each figure stands for itself.
static void put_listed(struct json *json, const char *name, int measure,
                       const struct spread *spread) {
    char text[HISTORY_NAME_BYTES + 32];
    int64_t below = spread->median - spread->least, above = spread->most - spread->median;
    int64_t half = below > above ? below : above;
    if (spread->interval > half) half = spread->interval;
    json_open_object(json, NULL);
    snprintf(text, sizeof text, "%s: %s", name, history_measures[measure].name);
    json_put_string(json, "name", text);
    json_put_string(json, "unit",
                    history_measures[measure].is_bytes ? "bytes"
                                                       : history_measures[measure].noun[1]);
    json_put_int(json, "value", spread->median);
    if (half) {
        snprintf(text, sizeof text, "\u00b1 %lld", (long long)half);
        json_put_string(json, "range", text);
    }
    snprintf(text, sizeof text, "%zu %s%s", spread->run_count,
             units_noun((int64_t)spread->run_count, "run", "runs"), half ? "" : ", counted");
    json_put_string(json, "extra", text);
    json_close(json);
}

// Within the object of a test.
static void put_metric(struct json *json, const char *name, int measure,
                       const struct spread *spread) {
    (void)name;
    json_open_object(json, history_measures[measure].name);
    json_put_int(json, "value", spread->median);
    json_put_int(json, "lower_value", spread->least - spread->interval);
    json_put_int(json, "upper_value", spread->most + spread->interval);
    json_close(json);
}

static bool put_series(struct json *json, const struct history *history,
                       const struct history_view *view, const struct history_series *series,
                       put_one *put) {
    char name[HISTORY_NAME_BYTES];
    struct spread spread;
    history_series_name(series, name);
    if (put == put_metric) json_open_object(json, name);
    for (int measure = 0; measure < HISTORY_MEASURES; measure++) {
        if (view->measure >= 0 && view->measure != measure) continue;
        if (!spread_find(history, series, (enum history_measure)measure, &spread)) return false;
        if (spread.run_count) put(json, name, measure, &spread);
    }
    if (put == put_metric) json_close(json);
    return true;
}

static bool put_all(struct json *json, const struct history *history,
                    const struct history_view *view, put_one *put) {
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < history->series.count; i++) {
        const struct history_series *series = &history->series.items[i];
        if (!history_is_shown(view, series) || !history_is_at_end(history, series)) continue;
        is_ok = put_series(json, history, view, series, put);
    }
    return is_ok;
}

bool history_write_benchmark(struct history *history, const struct history_view *view, FILE *out,
                             struct error *error) {
    struct json json;
    json_start(&json, out);
    json_open_array(&json, NULL);
    bool is_ok = put_all(&json, history, view, put_listed);
    json_close(&json);
    return is_ok || error_set(error, "no memory for the figures of the newest commit");
}

bool history_write_bencher(struct history *history, const struct history_view *view, FILE *out,
                           struct error *error) {
    struct json json;
    json_start(&json, out);
    json_open_object(&json, NULL);
    bool is_ok = put_all(&json, history, view, put_metric);
    json_close(&json);
    return is_ok || error_set(error, "no memory for the figures of the newest commit");
}
