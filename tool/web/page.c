// SPDX-License-Identifier: Apache-2.0
// The chunk "heap": the picture of a heap by address, and the stacks that keep most of it.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/model/measure.h"
#include "tool/render/heap_screen.h"
#include "tool/web/history.h"
#include "tool/web/template.h"
#include "tool/web/web.h"

enum { CELLS = 8192, OWNERS = 8 };

// Rows of stack, bytes kept, bytes live; the stacks are those of the profile, by number.
static bool put_owners(struct json *json, const struct heap_state *state) {
    size_t count;
    uint32_t *ranking = residency_rank(&state->residency, &count);
    json_open_array(json, "owners");
    for (size_t i = 0; ranking && i < count && i < OWNERS; i++) {
        const struct residency_owner *owner = &state->residency.owners[ranking[i]];
        json_open_array(json, NULL);
        json_put_int(json, NULL, ranking[i] < state->stack_count ? (int64_t)ranking[i] : -1);
        json_put_uint(json, NULL, owner->kept_bytes);
        json_put_uint(json, NULL, owner->live_bytes);
        json_close(json);
    }
    json_close(json);
    free(ranking);
    return ranking != NULL;
}

static bool put_state(struct json *json, const struct heap_state *state) {
    json_open_object(json, NULL);
    json_put_bool(json, "is_core", state->is_core);
    json_put_uint(json, "resident", state->residency.resident_bytes);
    json_put_uint(json, "live", state->residency.live_bytes);
    bool is_ok = put_owners(json, state) && heap_map_json_put(json, state, CELLS);
    json_close(json);
    return is_ok;
}

bool web_put_heap(struct web *web, const struct heap_state *state, struct error *error) {
    struct json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool is_ok = out != NULL;
    if (is_ok) {
        json_start(&json, out);
        is_ok = put_state(&json, state);
        is_ok = !fclose(out) && is_ok;
    }
    if (is_ok) sink_put_chunk(&web->sink, "heap", CHUNK_JSON, text, size);
    free(text);
    return is_ok || error_set(error, "no memory for the picture of the heap");
}

static const char policy_mark[] = "{{policy}}", title_mark[] = "{{title}}",
                  live_mark[] = "{{live}}", data_mark[] = "{{data}}";

// The template from `from` up to a mark; what follows the mark.
static const char *put_until(FILE *out, const char *from, const char *mark) {
    const char *found = from ? strstr(from, mark) : NULL;
    if (!found) return NULL;
    fwrite(from, 1, (size_t)(found - from), out);
    return found + strlen(mark);
}

// A page that follows a process asks its server, and nobody else.
bool web_open(struct web *web, FILE *out, const char *title, bool is_live, struct error *error) {
    *web = (struct web){.out = out};
    if (!sink_open(&web->sink, out, error)) return false;
    const char *rest = put_until(out, web_template, policy_mark);
    if (is_live) fputs("; connect-src 'self'", out);
    rest = put_until(out, rest, title_mark);
    if (rest) text_put_markup(out, title);
    rest = put_until(out, rest, live_mark);
    if (is_live) fputs(" data-live=\"1\"", out);
    if (put_until(out, rest, data_mark)) return true;
    return error_set(error, "the page in this program is damaged");
}

bool web_put_template(FILE *out) {
    const char *rest = put_until(out, web_template, policy_mark);
    rest = put_until(out, rest, title_mark);
    rest = put_until(out, rest, live_mark);
    rest = put_until(out, rest, data_mark);
    return rest && fputs(rest, out) >= 0;
}

bool web_open_data(struct web *web, FILE *out, struct error *error) {
    *web = (struct web){.out = out, .is_data = true};
    return sink_open(&web->sink, out, error);
}

bool web_close(struct web *web, struct error *error) {
    bool is_whole = sink_close(&web->sink, error);
    const char *rest = web->is_data ? NULL : strstr(web_template, data_mark);
    if (rest) fputs(rest + strlen(data_mark), web->out);
    return is_whole;
}

// What was live over the time of a process, if its recording can be read.
static void put_life(struct json *json, const struct run *run, const struct run_row *row) {
    uint64_t live[LIFE_STEPS];
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", run->directory, row->file);
    struct recording recording;
    bool has_path = *row->file && length < (int)sizeof path;
    if (!has_path || !recording_open(path, &recording, NULL)) return;
    if (life_read(&recording, live)) {
        json_open_array(json, "live");
        for (size_t i = 0; i < LIFE_STEPS; i++) json_put_uint(json, NULL, live[i]);
        json_close(json);
    }
    recording_close(&recording);
}

static void put_estimate(struct json *json, const char *key, const struct estimate *estimate) {
    json_open_object(json, key);
    json_put_int(json, "interval_bytes", estimate_bytes_interval(estimate));
    json_put_int(json, "samples", estimate_samples(estimate));
    json_close(json);
}

static void put_row(struct json *json, const struct run *run, const struct run_row *row) {
    json_open_object(json, NULL);
    json_put_string(json, "file", row->file);
    json_put_string(json, "parent", *row->parent ? row->parent : NULL);
    json_put_string(json, "name", row->name);
    json_put_uint(json, "pid", row->pid);
    json_put_uint(json, "ppid", row->ppid);
    json_put_uint(json, "start_ns", row->start_clock_ns);
    json_put_uint(json, "duration_ns", row->duration_ns);
    if (row->has_exit) json_put_int(json, "status", row->exit_status);
    if (row->has_exit) json_put_int(json, "signal", row->exit_signal);
    json_put_int(json, "peak", measured_shown(measure_figures(MEASURE_PEAK, &row->figures)));
    json_put_uint(json, "allocated", row->figures.allocated_bytes);
    json_put_uint(json, "calls", row->figures.allocations);
    json_put_int(json, "exit", measured_shown(measure_figures(MEASURE_EXIT, &row->figures)));
    json_put_uint(json, "rss_peak", row->rss_peak_bytes);
    if (row->figures.is_sampled) {
        put_estimate(json, "peak_estimate", &row->figures.peak_estimate);
        put_estimate(json, "exit_estimate", &row->figures.exit_estimate);
    }
    put_life(json, run, row);
    json_close(json);
}

void web_put_run(struct web *web, const struct web_run *run) {
    struct json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        web->sink.is_bad = true;
        return;
    }
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_string(&json, "facts", run->facts);
    json_put_uint(&json, "combined_low", run->combined_low_bytes);
    json_put_uint(&json, "combined_high", run->combined_high_bytes);
    json_open_array(&json, "rows");
    for (size_t i = 0; i < run->run->rows.count; i++)
        put_row(&json, run->run, &run->run->rows.items[i]);
    json_close(&json);
    json_close(&json);
    if (!fclose(out)) sink_put_chunk(&web->sink, "run", CHUNK_JSON, text, size);
    free(text);
}

void web_put_matching(struct web *web, const uint32_t *rows, size_t count) {
    struct column column = {0};
    for (size_t i = 0; i < count; i++) column_put_number(&column, rows[i]);
    sink_put_column(&web->sink, "matching", CHUNK_NUMBERS, &column);
}
