// SPDX-License-Identifier: Apache-2.0
#include "tool/render/contexts_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/contexts.h"
#include "tool/model/measure.h"
#include "tool/render/frames.h"
#include "tool/render/json_values.h"

enum { SIZE_COLUMNS = 10, PLAIN_COLUMNS = 14, COUNT_COLUMNS = 11 };
enum context_column {
    CONTEXT_SHARE,
    CONTEXT_VALUE,
    CONTEXT_ALLOCATED,
    CONTEXT_CALLS,
    CONTEXT_ENTERED,
    CONTEXT_NAME,
    CONTEXT_FREED,
    CONTEXT_PEAK,
    CONTEXT_EXIT,
    CONTEXT_EXIT_BLOCKS,
    CONTEXT_COLUMNS
};

struct row {
    const struct context *context;
    struct stack values;
    struct measured measured;
};

struct table {
    const struct view_options *view;
    struct contexts contexts;
    struct row *rows;
    struct stack *values;  // of all contexts
    size_t count, at;      // rows, and how many were told
    bool is_by_key;
    char name[FRAME_TEXT_BYTES];  // of the last one
    struct answer_column columns[CONTEXT_COLUMNS];
};

static int compare(const void *a, const void *b) {
    const struct row *first = a, *second = b;
    if (first->measured.value != second->measured.value)
        return first->measured.value < second->measured.value ? 1 : -1;
    return first->context < second->context ? -1 : 1;
}

static bool fill(struct table *table, const struct profile *profile) {
    const struct contexts *contexts = &table->contexts;
    const struct stack *values = table->values = contexts_sum(contexts, profile);
    table->rows = calloc(contexts->count, sizeof *table->rows);
    bool is_ok = values && table->rows;
    for (size_t i = 0; is_ok && i < contexts->count; i++) {
        const struct context *context = &contexts->list[i];
        if (!values[i].allocations && !(i && context->entered)) continue;
        table->rows[table->count++] =
            (struct row){context, values[i], measure_stack(table->view->by, &values[i])};
    }
    if (is_ok) qsort(table->rows, table->count, sizeof *table->rows, compare);
    return is_ok;
}

static void close_table(struct table *table) {
    contexts_free(&table->contexts);
    free(table->values);
    free(table->rows);
}

static bool open_table(struct table *table, const struct profile *profile, const char *key) {
    if (!contexts_read(&table->contexts, profile->recording, key)) return false;
    table->is_by_key = key != NULL;
    // Without any label there is nothing to show, not one row for everything.
    if (table->contexts.count < 2 || fill(table, profile)) return true;
    close_table(table);
    return false;
}

// The value alone where all rows are of one key.
static void name_of(const struct table *table, const struct context *context, char *name) {
    size_t used = 0;
    *name = 0;
    for (size_t i = 0; i < context->label_count && used + 1 < FRAME_TEXT_BYTES; i++) {
        const char *label = context->labels[i];
        if (table->is_by_key) label += strcspn(label, "=") + 1;
        if (used) name[used++] = ' ';
        text_escape(name + used, FRAME_TEXT_BYTES - used, label);
        used += strlen(name + used);
    }
    if (!context->label_count) snprintf(name, FRAME_TEXT_BYTES, "(none)");
}

// What has no number of its own any more.
static bool has_overflow(const struct table *table) {
    for (size_t i = 0; i < table->contexts.count; i++)
        for (size_t at = 0; at < table->contexts.list[i].label_count; at++) {
            const char *label = table->contexts.list[i].labels[at];
            if (!strcmp(label + strcspn(label, "="), "=" CAIRN_LABEL_OTHER)) return true;
        }
    return false;
}

static void say_none(struct answer *answer, const char *key) {
    const struct profile *profile = answer->profile;
    bool is_sum = profile->stack_count && !profile->cell_count;
    char safe[ANSWER_TEXT_BYTES / 2];
    text_escape(safe, sizeof safe, key ? key : "");
    if (is_sum)
        snprintf(answer->none, sizeof answer->none,
                 "they are known of each process: --process PID|NAME");
    else if (key)
        snprintf(answer->none, sizeof answer->none, "no label of the key %s was entered", safe);
    else
        snprintf(answer->none, sizeof answer->none,
                 "the program entered none (docs/reference/api.md)");
}

static void say_title(struct answer *answer, const char *key) {
    char safe[ANSWER_TEXT_BYTES / 2];
    text_escape(safe, sizeof safe, key ? key : "");
    snprintf(answer->title, sizeof answer->title, "%s %s%s",
             units_count((int64_t)answer->count).text,
             key                  ? "values of "
             : answer->count == 1 ? "context"
                                  : "contexts",
             safe);
}

static void close_state(void *state) {
    close_table(state);
    free(state);
}

static bool next_context(struct answer *answer, struct answer_row *out) {
    struct table *table = answer->state;
    if (table->at == answer->shown) return false;
    const struct row *row = &table->rows[table->at++];
    const struct stack *values = &row->values;
    name_of(table, row->context, table->name);
    answer_set_measured(out, CONTEXT_SHARE, row->measured);
    answer_set_measured(out, CONTEXT_VALUE, row->measured);
    answer_set_measured(out, CONTEXT_ALLOCATED, measure_stack(MEASURE_ALLOCATED, values));
    answer_set_measured(out, CONTEXT_CALLS, measure_stack(MEASURE_CALLS, values));
    answer_set(out, CONTEXT_ENTERED, (int64_t)row->context->entered);
    answer_set_text(out, CONTEXT_NAME, table->name);
    answer_set(out, CONTEXT_FREED, (int64_t)values->freed_bytes);
    answer_set_measured(out, CONTEXT_PEAK, measure_stack(MEASURE_PEAK, values));
    answer_set_measured(out, CONTEXT_EXIT, measure_stack(MEASURE_EXIT, values));
    answer_set_measured(out, CONTEXT_EXIT_BLOCKS, measure_stack(MEASURE_EXIT_BLOCKS, values));
    return true;
}

static void set_columns(struct table *table, const struct view_options *view) {
    const size_t size = view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS;
    struct answer_column value = answer_value_column(view->by, size);
    value.is_estimate = true;
    const struct answer_column columns[CONTEXT_COLUMNS] = {
        [CONTEXT_SHARE] = answer_share_column,
        [CONTEXT_VALUE] = value,
        [CONTEXT_ALLOCATED] =
            ANSWER_FIGURES("allocated_bytes", "allocated", ANSWER_BYTES, size, .is_estimate = true),
        [CONTEXT_CALLS] = ANSWER_FIGURES("allocations", "calls", ANSWER_COUNT, COUNT_COLUMNS,
                                         .is_estimate = true),
        [CONTEXT_ENTERED] = ANSWER_FIGURES("entered", "entered", ANSWER_COUNT, COUNT_COLUMNS - 2),
        [CONTEXT_NAME] = ANSWER_NAMES("name", ANSWER_TAIL_CUT),
        [CONTEXT_FREED] = ANSWER_DATA("freed_bytes", ANSWER_BYTES),
        [CONTEXT_PEAK] = ANSWER_DATA("peak_bytes", ANSWER_BYTES, .is_estimate = true),
        [CONTEXT_EXIT] = ANSWER_DATA("at_exit_bytes", ANSWER_BYTES, .is_estimate = true),
        [CONTEXT_EXIT_BLOCKS] = ANSWER_DATA("at_exit_blocks", ANSWER_COUNT, .is_estimate = true)};
    memcpy(table->columns, columns, sizeof columns);
}

bool contexts_answer(struct answer *answer, const struct profile *profile,
                     const struct view_options *view, const char *key, struct error *error) {
    struct table *table = calloc(1, sizeof *table);
    if (table) table->view = view;
    if (!table || !open_table(table, profile, key)) {
        free(table);
        return error_set(error, "no memory for the list of contexts");
    }
    set_columns(table, view);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(view->by),
                              .columns = table->columns,
                              .column_count = CONTEXT_COLUMNS,
                              .gap = 1,
                              .whole = measure_total(view->by, profile).value,
                              .shown = answer_cut(view->top, table->count),
                              .count = table->count,
                              .next_row = next_context,
                              .close = close_state,
                              .state = table};
    say_title(answer, key);
    say_none(answer, key);
    if (has_overflow(table))
        answer_note(answer, CAIRN_LABEL_OTHER ": labels after the first %u of the process",
                    CAIRN_LABEL_LIMIT);
    return true;
}

static void put_row(struct json *json, const struct row *row, bool is_sampled) {
    const struct stack *values = &row->values;
    json_open_object(json, NULL);
    json_open_object(json, "labels");
    for (size_t i = 0; i < row->context->label_count; i++) {
        char key[FRAME_TEXT_BYTES];
        const char *label = row->context->labels[i];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(label, "="), label);
        json_put_string(json, key, label + strcspn(label, "=") + 1);
    }
    json_close(json);
    json_put_uint(json, "entered", row->context->entered);
    json_values_put_part(json, values);
    if (is_sampled) json_values_put_estimates(json, stack_more(values)->estimates, false);
    json_close(json);
}

bool contexts_put_json(struct json *json, const struct profile *profile) {
    const struct view_options view = {.by = MEASURE_PEAK};
    struct table table = {.view = &view};
    if (!open_table(&table, profile, NULL)) return false;
    if (table.count) json_open_array(json, "contexts");
    for (size_t i = 0; i < table.count; i++) put_row(json, &table.rows[i], profile->sampling.is_on);
    if (table.count) json_close(json);
    close_table(&table);
    return true;
}
