// SPDX-License-Identifier: Apache-2.0
// The newest commit's figures as services that draw benchmarks over time take them: the
// "customSmallerIsBetter" list of github-action-benchmark, and Bencher's metric format (BMF).
#include <stdlib.h>

#include "tool/base/json.h"
#include "tool/history/screen.h"

// A figure over the runs of one commit.
struct spread {
    int64_t median, least, most;
    int64_t interval;  // the widest of a run; 0: it was counted
    size_t run_count;  // that know the figure
};

static int by_value(const void *a, const void *b) {
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

// False without memory.
static bool spread_find(const struct history *history, const struct history_series *series,
                        int measure, struct spread *spread) {
    size_t newest = history->commits.count - 1;
    int64_t *values = calloc(series->points.count + 1, sizeof *values);
    *spread = (struct spread){0};
    if (!values) return false;
    for (size_t i = 0; i < series->points.count; i++) {
        const struct history_point *point = &series->points.items[i];
        const struct history_figure *figure = &point->figures[measure];
        if (point->commit != newest || !figure->is_known) continue;
        if (figure->interval > spread->interval) spread->interval = figure->interval;
        values[spread->run_count++] = figure->value;
    }
    qsort(values, spread->run_count, sizeof *values, by_value);
    if (spread->run_count) {
        spread->median = values[spread->run_count / 2];
        spread->least = values[0];
        spread->most = values[spread->run_count - 1];
    }
    free(values);
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
        if (!spread_find(history, series, measure, &spread)) return false;
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
