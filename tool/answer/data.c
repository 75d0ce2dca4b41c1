// SPDX-License-Identifier: Apache-2.0
// Forms for programs: JSON, a JSON object a row, and CSV.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "tool/answer/forms.h"
#include "tool/answer/frame_texts.h"
#include "tool/base/json.h"
#include "tool/render/json_values.h"
#include "tool/render/trust.h"

enum { KEY_BYTES = 64, THOUSAND = 1000 };

static const char *unit_name(enum answer_unit unit) {
    static const char *const names[] = {
        [ANSWER_TEXT] = "text",    [ANSWER_BYTES] = "bytes", [ANSWER_COUNT] = "count",
        [ANSWER_NUMBER] = "id",    [ANSWER_TIME] = "ns",     [ANSWER_SHARE] = "share",
        [ANSWER_RATE] = "bytes/s", [ANSWER_REAL] = "number", [ANSWER_BOOL] = "bool",
        [ANSWER_RATIO] = "ratio"};
    return names[unit];
}

// A column that programs get; `index` moves on to the one behind it. NULL: there is none.
static const struct answer_column *next_column(const struct answer *answer, size_t *index) {
    while (*index < answer->column_count) {
        const struct answer_column *column = &answer->columns[(*index)++];
        if (column->key && !column->is_left_out) return column;
    }
    return NULL;
}

static bool has_intervals(const struct answer *answer, const struct answer_column *column) {
    return column->is_estimate && answer_is_sampled(answer);
}

static bool is_real(enum answer_unit unit) {
    return unit == ANSWER_SHARE || unit == ANSWER_REAL || unit == ANSWER_RATIO;
}

// The share of a whole, or another real number, in thousandths; -1: not known.
static int64_t thousandths_of(const struct answer *answer, const struct answer_column *column,
                              const struct answer_cell *cell) {
    double value = cell->real;
    int64_t whole = column->unit == ANSWER_RATIO ? cell->measured.blocks : answer->whole;
    if (column->unit != ANSWER_REAL)
        value = whole > 0 ? (double)cell->measured.value / (double)whole : -1;
    bool is_sane = value >= 0 && value < UINT32_MAX / THOUSAND;
    return is_sane ? (int64_t)(value * THOUSAND + 0.5) : -1;
}

static int64_t rate_of(const struct answer_cell *cell) {
    const double most = 0x1p62;
    return fabs(cell->real) < most ? (int64_t)cell->real : 0;
}

static void put_value(struct json *json, const struct answer *answer,
                      const struct answer_column *column, const struct answer_cell *cell) {
    int64_t thousandths = is_real(column->unit) ? thousandths_of(answer, column, cell) : 0;
    if (cell->state != ANSWER_KNOWN || thousandths < 0)
        json_put_null(json, column->key);
    else if (column->unit == ANSWER_TEXT)
        json_put_string(json, column->key, cell->text);
    else if (column->unit == ANSWER_BOOL)
        json_put_bool(json, column->key, cell->measured.value != 0);
    else if (is_real(column->unit))
        json_put_thousandths(json, column->key, (unsigned)thousandths);
    else
        json_put_int(json, column->key,
                     column->unit == ANSWER_RATE ? rate_of(cell) : cell->measured.value);
}

static void put_interval(struct json *json, const struct answer_column *column,
                         const struct answer_cell *cell) {
    char key[KEY_BYTES];
    if (cell->state != ANSWER_KNOWN) return;
    snprintf(key, sizeof key, "%s_interval", column->key);
    json_put_int(json, key, measured_interval(cell->measured));
    snprintf(key, sizeof key, "%s_samples", column->key);
    json_put_int(json, key, measured_samples(cell->measured));
}

static void put_frames(struct json *json, struct frame_texts *texts, const char *key,
                       const struct frame_list *frames, size_t depth) {
    size_t index = 0, count = 0;
    const struct frame *frame;
    json_open_array(json, key);
    while (frames && (!depth || count < depth) && (frame = frame_list_next(frames, &index))) {
        if (frame_is_bucket(frame)) continue;
        frame_texts_put_json(texts, json, frame);
        count++;
    }
    json_close(json);
}

static void put_row(struct json *json, const struct answer *answer, struct frame_texts *texts,
                    const struct answer_row *row) {
    const struct answer_column *column;
    json_open_object(json, NULL);
    if (answer->has_levels) json_put_uint(json, "level", row->level);
    for (size_t index = 0; (column = next_column(answer, &index));) {
        const struct answer_cell *cell = &row->cells[index - 1];
        if (cell->state == ANSWER_ABSENT) continue;
        put_value(json, answer, column, cell);
        if (has_intervals(answer, column)) put_interval(json, column, cell);
    }
    if (row->frames) {
        json_put_string(json, "incomplete", row->incomplete);
        put_frames(json, texts, "frames", row->frames, answer->options->depth);
    }
    if (row->freed_by) put_frames(json, texts, "freed_by", row->freed_by, answer->options->depth);
    json_close(json);
}

static void put_trust(struct json *json, const struct profile *profile) {
    if (!profile) return;
    json_open_object(json, "trust");
    json_put_bool(json, "exact", profile_is_exact(profile));
    json_put_bool(json, "sampled", profile->sampling.is_on);
    json_open_object(json, "lost");
    for (size_t kind = 0; kind < CAIRN_LOSS_MAX; kind++) {
        uint64_t count = recording_lost(profile->recording, kind);
        if (count) json_put_uint(json, loss_key(kind) ? loss_key(kind) : "unknown", count);
    }
    json_close(json);
    json_close(json);
}

// The process that rows are of; null where they are of several.
static void put_process(struct json *json, const struct answer *answer) {
    const struct profile *profile = answer->profile;
    char program[NAME_MAX] = "";
    bool is_of_one = profile && !profile_is_sum(profile);
    if (!answer->pid && !is_of_one) {
        json_put_null(json, "process");
        return;
    }
    if (is_of_one) recording_program(&profile->recording->header, program);
    json_open_object(json, "process");
    json_put_uint(json, "pid", answer->pid ? answer->pid : profile->recording->header.pid);
    json_put_string(json, "program", is_of_one ? program : answer->program);
    json_close(json);
}

static void put_columns(struct json *json, const struct answer *answer) {
    const struct answer_column *column;
    json_open_array(json, "columns");
    for (size_t index = 0; (column = next_column(answer, &index));) {
        json_open_object(json, NULL);
        json_put_string(json, "key", column->key);
        json_put_string(json, "unit", unit_name(column->unit));
        json_put_string(json, "head", column->head && *column->head ? column->head : NULL);
        json_put_bool(json, "estimated", has_intervals(answer, column));
        json_close(json);
    }
    json_close(json);
}

// Values and sentences of all of it, and lines that are neither.
static void put_beside(struct json *json, const struct answer *answer) {
    json_open_object(json, "facts");
    for (size_t i = 0; i < answer->fact_count; i++) {
        const struct answer_fact *fact = &answer->facts[i];
        put_value(json, answer, &(struct answer_column){.key = fact->key, .unit = fact->unit},
                  &fact->cell);
    }
    json_close(json);
    json_open_array(json, "claims");
    for (size_t i = 0; i < answer->claim_count; i++) {
        json_open_object(json, NULL);
        claim_put_json(json, &answer->claims[i]);
        json_close(json);
    }
    json_close(json);
    json_open_array(json, "notes");
    if (!answer->count && *answer->none) json_put_string(json, NULL, answer->none);
    for (size_t i = 0; i < answer->note_count; i++)
        if (!answer->notes[i].is_for_people) json_put_string(json, NULL, answer->notes[i].text);
    json_close(json);
}

bool answer_print_json(FILE *out, struct answer *answer, struct error *error) {
    struct frame_texts texts = {0};
    struct answer_row row;
    struct json json;
    char title[2 * ANSWER_TEXT_BYTES];
    snprintf(title, sizeof title, "%s%s", answer->title, answer->title_rest);
    json_start(&json, out);
    json_open_object(&json, NULL);
    json_put_uint(&json, "schema", ANSWER_SCHEMA);
    json_put_string(&json, "view", answer->view);
    json_put_string(&json, "title", title);
    json_put_string(&json, "measure", answer->measure);
    put_process(&json, answer);
    put_trust(&json, answer->profile);
    put_columns(&json, answer);
    json_put_uint(&json, "count", answer->count);
    json_put_uint(&json, "shown", answer->shown);
    json_open_array(&json, "rows");
    while (answer_next(answer, ANSWER_FOR_PROGRAMS, &row)) put_row(&json, answer, &texts, &row);
    json_close(&json);
    put_beside(&json, answer);
    json_close(&json);
    frame_texts_free(&texts);
    return answer_check(answer, error);
}

bool answer_print_ndjson(FILE *out, struct answer *answer, struct error *error) {
    struct frame_texts texts = {0};
    struct answer_row row;
    while (answer_next(answer, ANSWER_FOR_PROGRAMS, &row)) {
        struct json json;
        json_start_members(&json, out);
        put_row(&json, answer, &texts, &row);
        fputc('\n', out);
    }
    frame_texts_free(&texts);
    return answer_check(answer, error);
}

// Puts an apostrophe in front of a text that a spreadsheet would take for a formula; quotes are
// doubled, as RFC 4180 has it.
static void put_text(FILE *out, const char *text) {
    if (*text && strchr("=+-@", *text)) fputc('\'', out);
    for (const char *quote; (quote = strchr(text, '"')); text = quote + 1)
        fprintf(out, "%.*s\"\"", (int)(quote - text), text);
    fputs(text, out);
}

static void put_quoted(FILE *out, const char *text) {
    char *safe = NULL;
    size_t size;
    FILE *memory = open_memstream(&safe, &size);
    if (memory) {
        answer_put_safe(memory, text, "", "", 0);
        fclose(memory);
    }
    fputc('"', out);
    if (safe) put_text(out, safe);
    fputc('"', out);
    free(safe);
}

// Puts frames as "outer;inner".
static void put_stack(FILE *out, struct frame_texts *texts, const struct frame_list *frames) {
    if (!frames || !frames->frames.count) return;
    const struct frame *outermost = frames->frames.items[frames->frames.count - 1];
    bool is_formula = outermost->function && strchr("=+-@", *outermost->function);
    fputs(is_formula ? "\"'" : "\"", out);
    for (size_t i = frames->frames.count; i-- > 0;) {
        frame_texts_put_name(texts, out, frames->frames.items[i]);
        if (i) fputc(';', out);
    }
    fputc('"', out);
}

static void put_cell(FILE *out, const struct answer *answer, const struct answer_column *column,
                     const struct answer_cell *cell) {
    const bool has_thousandths = is_real(column->unit);
    if (cell->state != ANSWER_KNOWN) return;
    int64_t thousandths = has_thousandths ? thousandths_of(answer, column, cell) : 0;
    if (column->unit == ANSWER_TEXT)
        put_quoted(out, cell->text);
    else if (has_thousandths && thousandths >= 0)
        fprintf(out, "%" PRId64 ".%03" PRId64, thousandths / THOUSAND, thousandths % THOUSAND);
    else if (!has_thousandths)
        fprintf(out, "%" PRId64,
                column->unit == ANSWER_RATE ? rate_of(cell) : cell->measured.value);
}

static void put_line(FILE *out, const struct answer *answer, struct frame_texts *texts,
                     const struct answer_row *row) {
    const struct answer_column *column;
    const char *comma = answer->has_levels ? "," : "";
    if (answer->has_levels) fprintf(out, "%zu", row->level);
    for (size_t index = 0; (column = next_column(answer, &index)); comma = ",") {
        const struct answer_cell *cell = &row->cells[index - 1];
        fputs(comma, out);
        put_cell(out, answer, column, cell);
        if (!has_intervals(answer, column)) continue;
        if (cell->state == ANSWER_KNOWN)
            fprintf(out, ",%" PRId64 ",%" PRId64, measured_interval(cell->measured),
                    measured_samples(cell->measured));
        else
            fputs(",,", out);
    }
    if (answer->has_frames) {
        fprintf(out, ",%s,", row->incomplete ? row->incomplete : "");
        put_stack(out, texts, row->frames);
    }
    if (answer->has_freed_by) {
        fputc(',', out);
        put_stack(out, texts, row->freed_by);
    }
    fputc('\n', out);
}

bool answer_print_csv(FILE *out, struct answer *answer, struct error *error) {
    const struct answer_column *column;
    struct frame_texts texts = {0};
    struct answer_row row;
    const char *comma = answer->has_levels ? "," : "";
    if (answer->has_levels) fputs("level", out);
    for (size_t index = 0; (column = next_column(answer, &index)); comma = ",") {
        fprintf(out, "%s%s", comma, column->key);
        if (has_intervals(answer, column))
            fprintf(out, ",%s_interval,%s_samples", column->key, column->key);
    }
    fputs(answer->has_frames ? ",incomplete,frames" : "", out);
    fputs(answer->has_freed_by ? ",freed_by\n" : "\n", out);
    while (answer_next(answer, ANSWER_FOR_PROGRAMS, &row)) put_line(out, answer, &texts, &row);
    frame_texts_free(&texts);
    return answer_check(answer, error);
}
