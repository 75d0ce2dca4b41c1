// SPDX-License-Identifier: Apache-2.0
// Parquet: a row for each stack and moment (the peak, the end, snapshots where they are wanted), of
// one recording after the other, with labels that tell them apart, for engines that answer
// questions over many (docs/reference/exports.md has the columns, docs/howto/fleet-queries.md
// queries).
//
// What was counted since the start (calls, bytes allocated) stands in the rows of the end alone, so
// that it may be added up over all rows. Numbers of samples are those of the row's moment.
#include <stdlib.h>
#include <string.h>

#include "tool/base/fnv.h"
#include "tool/base/text.h"
#include "tool/export/frame_table.h"
#include "tool/export/moments.h"
#include "tool/export/parquet_file.h"
#include "tool/model/stack_fields.h"

// The columns that every file has, in this order: the first three are labels.
// clang-format off
#define COLUMNS(row) \
    row(HOST, "host", TEXT) \
    row(SERVICE, "service", TEXT) \
    row(VERSION, "version", TEXT) \
    row(BUILD_ID, "build_id", TEXT) \
    row(PROGRAM, "program", TEXT) \
    row(PID, "pid", NUMBER) \
    row(START, "start", TIME) \
    row(MOMENT, "moment", TEXT) \
    row(SNAPSHOT, "snapshot", TEXT) \
    row(AT, "time", TIME) \
    row(STACK, "stack", NUMBER) \
    row(FUNCTION, "function", TEXT) \
    row(MODULE, "module", TEXT) \
    row(FILE, "file", TEXT) \
    row(LINE, "line", NUMBER) \
    row(FRAMES, "frames", TEXTS) \
    row(INCOMPLETE, "incomplete", TEXT) \
    row(LIVE_BYTES, "live_bytes", NUMBER) \
    row(LIVE_BLOCKS, "live_blocks", NUMBER) \
    row(LIVE_BYTES_INTERVAL, "live_interval_bytes", NUMBER) \
    row(LIVE_BLOCKS_INTERVAL, "live_interval_blocks", NUMBER) \
    row(LIVE_SAMPLES, "live_samples", NUMBER) \
    row(ALLOCATED_INTERVAL, "allocated_interval_bytes", NUMBER) \
    row(TRUST, "trust", TEXT)
// clang-format on

enum { COLUMNS(PARQUET_COLUMN_NUMBER) COLUMN_COUNT };
static const struct parquet_column columns[] = {COLUMNS(PARQUET_COLUMN_ABOUT)};

struct table {
    struct parquet *parquet;
    size_t label_count;
    size_t *label_columns;  // of the export's labels
    size_t first_field;     // column of the first of the stack's fields
    char *creator;
};

// What is told of one recording: texts have numbers that hold for a row group.
struct teller {
    struct table *table;
    const struct export *export;
    struct frame_table frames;
    uint64_t *hashes;              // of titles, by number of the frame
    uint32_t *titles;              // their texts, plus 1; 0: not in this group yet
    uint32_t facts[COLUMN_COUNT];  // texts that are the same in all rows, plus 1
    uint32_t *labels;
    size_t group;
};

// --- the columns

// Of the stack's fields those that are of no moment: peak_... and at_exit_... are rows.
static bool is_since_start(const struct stack_field *field) {
    return strncmp(field->key, "peak_", strlen("peak_")) != 0 &&
           strncmp(field->key, "at_exit_", strlen("at_exit_")) != 0;
}

static size_t column_named(const char *name) {
    size_t column = 0;
    while (column < COLUMN_COUNT && strcmp(columns[column].name, name) != 0) column++;
    return column;
}

static bool is_label_allowed(const char *key) {
    size_t column = column_named(key);
    for (const struct stack_field *field = stack_fields; field->key; field++)
        if (is_since_start(field) && !strcmp(field->key, key)) return false;
    return column == COLUMN_COUNT || column <= COLUMN_VERSION;
}

static bool add_labels(struct table *table, const struct export_labels *labels,
                       struct error *error) {
    table->label_count = labels->count;
    table->label_columns = calloc(labels->count + 1, sizeof *table->label_columns);
    if (!table->label_columns) return error_set(error, "no memory for a table");
    for (size_t i = 0; i < labels->count; i++) {
        const char *key = labels->keys[i];
        if (!is_label_allowed(key))
            return error_set(error, "label \"%s\": the table has a column of that name", key);
        size_t column = column_named(key);
        table->label_columns[i] =
            column < COLUMN_COUNT ? column : parquet_add_column(table->parquet, key, PARQUET_TEXT);
    }
    return true;
}

static void free_table(struct table *table) {
    free(table->label_columns);
    free(table->creator);
    free(table);
}

static void *open_table(FILE *out, const struct export_labels *labels, const char *tool_version,
                        struct error *error) {
    struct table *table = calloc(1, sizeof *table);
    bool is_ok = table && asprintf(&table->creator, "cairn version %s", tool_version) >= 0;
    if (!is_ok) error_set(error, "no memory for a table");
    if (is_ok) table->parquet = parquet_open(out, table->creator, error);
    is_ok = is_ok && table->parquet;
    for (size_t i = 0; is_ok && i < COLUMN_COUNT; i++)
        parquet_add_column(table->parquet, columns[i].name, columns[i].kind);
    if (is_ok && add_labels(table, labels, error)) {
        table->first_field = COLUMN_COUNT;
        for (size_t i = 0; i < labels->count; i++)
            if (table->label_columns[i] >= COLUMN_COUNT) table->first_field++;
        for (const struct stack_field *field = stack_fields; field->key; field++)
            if (is_since_start(field))
                parquet_add_column(table->parquet, field->key, PARQUET_NUMBER);
        return table;
    }
    if (table) {
        parquet_abandon(table->parquet);
        free_table(table);
    }
    return NULL;
}

static bool close_table(void *context, bool is_complete, struct error *error) {
    struct table *table = context;
    bool is_ok = !is_complete || parquet_close(table->parquet, error);
    if (!is_complete) parquet_abandon(table->parquet);
    free_table(table);
    return is_ok;
}

// --- a recording

static void set_fact(struct teller *teller, size_t column, const char *text) {
    if (text && *text) teller->facts[column] = parquet_text(teller->table->parquet, text) + 1;
}

// Texts of the recording have new numbers in each row group.
static void begin_group(struct teller *teller) {
    const struct export *export = teller->export;
    char build_id[MODULE_BUILD_ID_TEXT] = "";
    const struct module_map *modules = &export->profile->modules;
    uint32_t program = module_of_program(modules, export->profile->recording->header.executable);
    if (program != MODULE_NONE) module_build_id_text(&modules->modules[program], build_id);
    teller->group = parquet_group(teller->table->parquet);
    for (size_t i = 0; i < teller->frames.frames.count; i++) teller->titles[i] = 0;
    set_fact(teller, COLUMN_SERVICE, export->program);
    set_fact(teller, COLUMN_PROGRAM, export->program);
    set_fact(teller, COLUMN_BUILD_ID, build_id);
    set_fact(teller, COLUMN_TRUST, export->trust);
    for (size_t i = 0; i < teller->table->label_count; i++) {
        const char *value = export->series_labels->values[i];
        teller->labels[i] = value ? parquet_text(teller->table->parquet, value) + 1 : 0;
    }
}

static uint32_t title_of(struct teller *teller, uint32_t frame) {
    char title[FRAME_TITLE_BYTES];
    uint32_t *number = &teller->titles[frame];
    if (*number) return *number - 1;
    frame_title(teller->frames.frames.items[frame], title, sizeof title);
    if (!teller->hashes[frame]) teller->hashes[frame] = fnv_add(FNV_START, title, strlen(title));
    *number = parquet_text(teller->table->parquet, title) + 1;
    return *number - 1;
}

static void put_text(struct teller *teller, size_t column, const char *text) {
    struct parquet *parquet = teller->table->parquet;
    if (text) parquet_put_text(parquet, column, parquet_text(parquet, text));
}

static void put_facts(struct teller *teller) {
    const struct recording *recording = teller->export->profile->recording;
    struct parquet *parquet = teller->table->parquet;
    const struct table *table = teller->table;
    for (size_t i = 0; i < table->label_count; i++)
        if (teller->labels[i] && table->label_columns[i] < COLUMN_COUNT)
            teller->facts[table->label_columns[i]] = teller->labels[i];
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (teller->facts[i]) parquet_put_text(parquet, i, teller->facts[i] - 1);
    for (size_t i = 0; i < table->label_count; i++)
        if (teller->labels[i] && table->label_columns[i] >= COLUMN_COUNT)
            parquet_put_text(parquet, table->label_columns[i], teller->labels[i] - 1);
    parquet_put_number(parquet, COLUMN_PID, recording->header.pid);
}

static int64_t microseconds(uint64_t unix_ns) {
    enum { NS_PER_US = 1000 };
    return (int64_t)(unix_ns / NS_PER_US);
}

// Frames from the outermost on, the function that allocated, and what stands for their names.
static bool put_stack(struct teller *teller, const struct stack *stack) {
    struct parquet *parquet = teller->table->parquet;
    if (!frame_table_stack(&teller->frames, stack->node)) return false;
    const uint32_t *numbers = teller->frames.stack.items;
    size_t count = teller->frames.stack.count;
    uint64_t hash = FNV_START;
    for (size_t i = count; i-- > 0;) {
        parquet_put_in_list(parquet, COLUMN_FRAMES, title_of(teller, numbers[i]));
        hash = fnv_add(hash, &teller->hashes[numbers[i]], sizeof *teller->hashes);
    }
    parquet_put_number(parquet, COLUMN_STACK, (int64_t)hash);
    const struct frame *inner = teller->frames.frames.items[numbers[0]];
    parquet_put_text(parquet, COLUMN_FUNCTION, title_of(teller, numbers[0]));
    if (inner->module) put_text(teller, COLUMN_MODULE, text_base_name(inner->module));
    put_text(teller, COLUMN_FILE, inner->file);
    if (inner->line) parquet_put_number(parquet, COLUMN_LINE, inner->line);
    if (stack->cut) put_text(teller, COLUMN_INCOMPLETE, cut_key(stack->cut));
    return true;
}

static void put_live(struct teller *teller, struct live_at live, const struct estimate *estimate) {
    struct parquet *parquet = teller->table->parquet;
    parquet_put_number(parquet, COLUMN_LIVE_BYTES, live.bytes);
    parquet_put_number(parquet, COLUMN_LIVE_BLOCKS, live.blocks);
    if (!estimate) return;
    parquet_put_number(parquet, COLUMN_LIVE_BYTES_INTERVAL, estimate_bytes_interval(estimate));
    parquet_put_number(parquet, COLUMN_LIVE_BLOCKS_INTERVAL, estimate_blocks_interval(estimate));
    parquet_put_number(parquet, COLUMN_LIVE_SAMPLES, estimate_samples(estimate));
}

static void put_since_start(struct teller *teller, const struct stack *stack) {
    size_t column = teller->table->first_field;
    for (const struct stack_field *field = stack_fields; field->key; field++)
        if (is_since_start(field))
            parquet_put_number(teller->table->parquet, column++, stack_field_value(field, stack));
    if (teller->export->profile->sampling.is_on)
        parquet_put_number(
            teller->table->parquet, COLUMN_ALLOCATED_INTERVAL,
            estimate_bytes_interval(&stack_more(stack)->estimates[ESTIMATED_ALLOCATED]));
}

static bool put_row(struct teller *teller, const struct stack *stack, const struct moment *moment,
                    struct live_at live, const struct estimate *estimate, struct error *error) {
    struct parquet *parquet = teller->table->parquet;
    uint64_t start_ns = teller->export->profile->recording->header.start_unix_ns;
    if (parquet_group(parquet) != teller->group) begin_group(teller);
    put_facts(teller);
    parquet_put_number(parquet, COLUMN_START, microseconds(start_ns));
    put_text(teller, COLUMN_MOMENT, moment->name);
    put_text(teller, COLUMN_SNAPSHOT, moment->label);
    parquet_put_number(parquet, COLUMN_AT, microseconds(start_ns + moment->at_ns));
    if (!put_stack(teller, stack)) return error_set(error, "no memory for a stack");
    put_live(teller, live, estimate);
    if (moment->choice.kind == CHOICE_EXIT) put_since_start(teller, stack);
    return parquet_end_row(parquet, error);
}

// Of the end every stack has a row: it says what was allocated too.
static bool put_moment(struct teller *teller, const struct moments *moments,
                       const struct moment *moment, struct error *error) {
    const struct profile *profile = teller->export->profile;
    struct live_at *live;
    struct estimate *estimates;
    if (!moments_live(moments, moment, &live, &estimates, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < profile->stack_count; i++)
        if (live[i].bytes || live[i].blocks || moment->choice.kind == CHOICE_EXIT)
            is_ok = put_row(teller, &profile->stacks[i], moment, live[i],
                            estimates ? &estimates[i] : NULL, error);
    free(live);
    free(estimates);
    return is_ok;
}

static bool put_moments(struct teller *teller, struct error *error) {
    struct moments moments;
    if (!moments_find(&moments, teller->export, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < moments.list.count; i++)
        is_ok = put_moment(teller, &moments, &moments.list.items[i], error);
    moments_free(&moments);
    return is_ok;
}

static bool add_recording(void *context, const struct export *export, struct error *error) {
    struct teller teller = {.table = context, .export = export};
    if (!frame_table_build(&teller.frames, export, FRAMES_PICTURE, error)) return false;
    size_t frame_count = teller.frames.frames.count;
    teller.hashes = calloc(frame_count + 1, sizeof *teller.hashes);
    teller.titles = calloc(frame_count + 1, sizeof *teller.titles);
    teller.labels = calloc(teller.table->label_count + 1, sizeof *teller.labels);
    bool is_ok = teller.hashes && teller.titles && teller.labels;
    if (is_ok) {
        begin_group(&teller);
        is_ok = put_moments(&teller, error);
    } else {
        error_set(error, "no memory for a table");
    }
    free(teller.hashes);
    free(teller.titles);
    free(teller.labels);
    frame_table_free(&teller.frames);
    return is_ok;
}

const struct export_series export_parquet = {open_table, add_recording, close_table};
