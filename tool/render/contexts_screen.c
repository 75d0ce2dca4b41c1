// SPDX-License-Identifier: Apache-2.0
#include "tool/render/contexts_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/contexts.h"
#include "tool/model/measure.h"
#include "tool/render/columns.h"
#include "tool/render/frames.h"
#include "tool/render/json_values.h"

enum { PERCENT_COLUMNS = 6, SIZE_COLUMNS = 10, PLAIN_COLUMNS = 14, COUNT_COLUMNS = 11 };
enum { CONTEXT_COLUMNS = 5 };

struct row {
    const struct context *context;
    struct stack values;
    struct measured measured;
};

struct table {
    const struct terminal *terminal;
    const struct view_options *view;
    struct contexts contexts;
    struct row *rows;
    struct stack *values;  // of all contexts
    size_t count;
    bool is_by_key;
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

static struct unit_text value_text(const struct table *table, int64_t value) {
    bool is_bytes = measure_about(table->view->by)->is_bytes;
    return is_bytes ? units_size_as(value, table->view->is_plain_number) : units_count(value);
}

static struct columns columns_of(const struct table *table, struct column *items) {
    const size_t size = table->view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS;
    const struct column columns[CONTEXT_COLUMNS] = {
        {"", PERCENT_COLUMNS, STYLE_STRONG, false},
        {measure_about(table->view->by)->snapshot, size, STYLE_PLAIN, false},
        {"allocated", size, STYLE_PLAIN, false},
        {"calls", COUNT_COLUMNS, STYLE_PLAIN, false},
        {"entered", COUNT_COLUMNS - 2, STYLE_PLAIN, false}};
    memcpy(items, columns, sizeof columns);
    return (struct columns){items, CONTEXT_COLUMNS, 0, 1};
}

static void print_row(const struct table *table, const struct columns *columns,
                      const struct row *row, int64_t whole) {
    char name[FRAME_TEXT_BYTES];
    size_t used = columns_width(columns) + 2, room = table->terminal->columns;
    const struct unit_text texts[CONTEXT_COLUMNS] = {
        units_percent(row->measured.value, whole), value_text(table, row->measured.value),
        units_size_as((int64_t)row->values.allocated_bytes, table->view->is_plain_number),
        units_count((int64_t)row->values.allocations), units_count((int64_t)row->context->entered)};
    columns_print(table->terminal, columns, texts);
    name_of(table, row->context, name);
    text_cut(name, room > used + 8 ? room - used : 8);
    terminal_print(table->terminal, STYLE_NAME, "  %s\n", name);
}

// What has no number of its own any more.
static void print_overflow(const struct table *table) {
    for (size_t i = 0; i < table->contexts.count; i++)
        for (size_t at = 0; at < table->contexts.list[i].label_count; at++) {
            const char *label = table->contexts.list[i].labels[at];
            if (strcmp(label + strcspn(label, "="), "=" CAIRN_LABEL_OTHER) != 0) continue;
            terminal_print(table->terminal, STYLE_DIM,
                           CAIRN_LABEL_OTHER ": labels after the first %u of the process\n",
                           CAIRN_LABEL_LIMIT);
            return;
        }
}

static void print_none(const struct table *table, const struct profile *profile, const char *key) {
    char safe[FRAME_TEXT_BYTES];
    bool is_sum = profile->stack_count && !profile->cell_count;
    text_escape(safe, sizeof safe, key ? key : "");
    if (is_sum)
        terminal_print(table->terminal, STYLE_DIM,
                       "they are known of each process: --process PID|NAME\n");
    else if (key)
        terminal_print(table->terminal, STYLE_DIM, "no label of the key %s was entered\n", safe);
    else
        terminal_print(table->terminal, STYLE_DIM,
                       "the program entered none (docs/reference/api.md)\n");
}

static void print_heading(const struct table *table, size_t shown, const char *key) {
    char safe[FRAME_TEXT_BYTES];
    text_escape(safe, sizeof safe, key ? key : "");
    terminal_print(table->terminal, STYLE_STRONG, "%s %s%s%s",
                   units_count((int64_t)table->count).text,
                   key                 ? "values of "
                   : table->count == 1 ? "context"
                                       : "contexts",
                   safe, "");
    list_print_cut(table->terminal, table->view, shown, table->count);
    fputc('\n', table->terminal->out);
}

bool contexts_print(const struct terminal *terminal, const struct profile *profile,
                    const struct view_options *view, const char *key, struct error *error) {
    struct table table = {.terminal = terminal, .view = view};
    struct column items[CONTEXT_COLUMNS];
    if (!open_table(&table, profile, key))
        return error_set(error, "no memory for the list of contexts");
    size_t shown = view->top && view->top < table.count ? view->top : table.count;
    const struct columns columns = columns_of(&table, items);
    print_heading(&table, shown, key);
    if (!table.count) print_none(&table, profile, key);
    if (table.count) columns_print_heads(terminal, &columns);
    if (table.count) fputc('\n', terminal->out);
    for (size_t i = 0; i < shown; i++)
        print_row(&table, &columns, &table.rows[i], measure_total(view->by, profile).value);
    print_overflow(&table);
    close_table(&table);
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
