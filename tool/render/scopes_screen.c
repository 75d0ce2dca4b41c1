// SPDX-License-Identifier: Apache-2.0
#include "tool/render/scopes_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/measure.h"
#include "tool/model/scopes.h"
#include "tool/render/frames.h"
#include "tool/render/json_values.h"

enum { SIZE_COLUMNS = 10, PLAIN_COLUMNS = 14, COUNT_COLUMNS = 11 };
enum { SCOPE_COLUMNS = 14 };

struct row {
    const struct scope *scope;
    struct stack values;
    struct measured measured;
};

struct table {
    const struct view_options *view;
    struct scopes scopes;
    struct row *rows;
    struct stack *values;  // of all scopes
    size_t count, at;      // rows, and how many were told
    struct answer_column columns[SCOPE_COLUMNS];
    bool is_of_heap;  // by name: how much more malloc's was is nothing of it
    bool is_sampled;  // pools apart, which count for themselves
};

// What a pool did, in the terms of a stack. That the heap was at its peak is not known of pools:
// their own peak stands for it.
static struct stack pool_values(const struct cairn_scope *entry) {
    int64_t live_bytes = (int64_t)(entry->allocated_bytes - entry->freed_bytes);
    int64_t live_blocks = (int64_t)(entry->allocations - entry->frees);
    return (struct stack){.allocations = entry->allocations,
                          .frees = entry->frees,
                          .allocated_bytes = entry->allocated_bytes,
                          .freed_bytes = entry->freed_bytes,
                          .peak_bytes = entry->peak_bytes,
                          .peak_blocks = live_blocks,
                          .exit_bytes = live_bytes,
                          .exit_blocks = live_blocks};
}

static int compare(const void *a, const void *b) {
    const struct row *first = a, *second = b;
    if (first->measured.value != second->measured.value)
        return first->measured.value < second->measured.value ? 1 : -1;
    return strcmp(first->scope->path, second->scope->path);
}

static bool is_row(const struct scope *scope, enum cairn_scope_kind kind,
                   const struct stack *values) {
    return scope->kind == (uint32_t)kind && (scope->entry.entries || values->allocations);
}

static bool fill(struct table *table, const struct profile *profile, enum cairn_scope_kind kind) {
    struct stack *values = table->values = scopes_sum(&table->scopes, profile, true);
    table->rows = calloc(table->scopes.count + 1, sizeof *table->rows);
    if (values && table->rows) {
        for (size_t id = 1; id < table->scopes.count; id++) {
            const struct scope *scope = &table->scopes.list[id];
            if (kind == CAIRN_SCOPE_POOL) values[id] = pool_values(&scope->entry);
            if (!is_row(scope, kind, &values[id])) continue;
            table->rows[table->count++] =
                (struct row){scope, values[id], measure_stack(table->view->by, &values[id])};
        }
        qsort(table->rows, table->count, sizeof *table->rows, compare);
    }
    return values && table->rows;
}

static void close_table(struct table *table) {
    scopes_free(&table->scopes);
    free(table->values);
    free(table->rows);
}

static bool open_table(struct table *table, const struct profile *profile,
                       enum cairn_scope_kind kind, const struct view_options *view,
                       struct error *error) {
    *table = (struct table){.view = view,
                            .is_of_heap = profile->heap != NULL,
                            .is_sampled = profile->sampling.is_on && kind == CAIRN_SCOPE_REGION};
    if (scopes_read(&table->scopes, profile->recording) && fill(table, profile, kind)) return true;
    close_table(table);
    error_set(error, "no memory for the list of regions or pools");
    return false;
}

static void close_state(void *state) {
    close_table(state);
    free(state);
}

// A sum of processes has no cells, which is where regions are known.
static const char *reason_of_none(const struct profile *profile) {
    bool is_sum = profile->stack_count && !profile->cell_count;
    return is_sum ? "they are known of each process: --process PID|NAME"
                  : "the program named none (docs/reference/api.md)";
}

// Opens the table as the state of an answer with these columns.
static bool open_answer(struct answer *answer, const struct profile *profile,
                        enum cairn_scope_kind kind, const struct view_options *view,
                        struct error *error) {
    const char *const one[] = {
        [CAIRN_SCOPE_REGION] = "region", [CAIRN_SCOPE_POOL] = "name of pools"};
    const char *const several[] = {
        [CAIRN_SCOPE_REGION] = "regions", [CAIRN_SCOPE_POOL] = "names of pools"};
    struct table *table = malloc(sizeof *table);
    if (!table) return error_set(error, "no memory for the list of regions or pools");
    if (!open_table(table, profile, kind, view, error)) {
        free(table);
        return false;
    }
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(view->by),
                              .columns = table->columns,
                              .gap = 1,
                              .whole = measure_total(view->by, profile).value,
                              .shown = answer_cut(view->top, table->count),
                              .count = table->count,
                              .close = close_state,
                              .state = table};
    snprintf(answer->title, sizeof answer->title, "%s",
             units_counted((int64_t)table->count, one[kind], several[kind]).text);
    snprintf(answer->none, sizeof answer->none, "%s", reason_of_none(profile));
    return true;
}

// The next of the rows that are shown; NULL: that was the last.
static const struct row *next_of(const struct answer *answer) {
    struct table *table = answer->state;
    return table->at < answer->shown ? &table->rows[table->at++] : NULL;
}

static void set_columns(struct answer *answer, const struct answer_column *columns, size_t count) {
    struct table *table = answer->state;
    memcpy(table->columns, columns, count * sizeof *columns);
    answer->column_count = count;
}

enum region_column {
    REGION_SHARE,
    REGION_VALUE,
    REGION_ALLOCATED,
    REGION_CALLS,
    REGION_BEGUN,
    REGION_RISE,
    REGION_NAME,
    REGION_FREED,
    REGION_PEAK,
    REGION_EXIT,
    REGION_EXIT_BLOCKS,
    REGION_COLUMNS
};

static bool next_region(struct answer *answer, struct answer_row *out) {
    const struct row *row = next_of(answer);
    if (!row) return false;
    const struct stack *values = &row->values;
    answer_set_measured(out, REGION_SHARE, row->measured);
    answer_set_measured(out, REGION_VALUE, row->measured);
    answer_set_measured(out, REGION_ALLOCATED, measure_stack(MEASURE_ALLOCATED, values));
    answer_set_measured(out, REGION_CALLS, measure_stack(MEASURE_CALLS, values));
    answer_set(out, REGION_BEGUN, (int64_t)row->scope->entry.entries);
    answer_set(out, REGION_RISE, row->scope->entry.rise_bytes);
    answer_set_text(out, REGION_NAME, row->scope->path);
    answer_set(out, REGION_FREED, (int64_t)values->freed_bytes);
    answer_set_measured(out, REGION_PEAK, measure_stack(MEASURE_PEAK, values));
    answer_set_measured(out, REGION_EXIT, measure_stack(MEASURE_EXIT, values));
    answer_set_measured(out, REGION_EXIT_BLOCKS, measure_stack(MEASURE_EXIT_BLOCKS, values));
    return true;
}

bool regions_answer(struct answer *answer, const struct profile *profile,
                    const struct view_options *view, struct error *error) {
    const size_t size = view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS;
    bool is_counted = view->by == MEASURE_ALLOCATED || view->by == MEASURE_CALLS;
    struct answer_column value = answer_value_column(view->by, size);
    value.is_estimate = true;
    value.interval_name = is_counted ? NULL : value.head;
    const struct answer_column columns[REGION_COLUMNS] = {
        [REGION_SHARE] = answer_share_column,
        [REGION_VALUE] = value,
        [REGION_ALLOCATED] = ANSWER_FIGURES("allocated_bytes", "allocated", ANSWER_BYTES, size,
                                            .is_estimate = true, .interval_name = "allocated"),
        [REGION_CALLS] = ANSWER_FIGURES("allocations", "calls", ANSWER_COUNT, COUNT_COLUMNS,
                                        .is_estimate = true, .interval_name = "calls"),
        [REGION_BEGUN] = ANSWER_FIGURES("begun", "begun", ANSWER_COUNT, COUNT_COLUMNS - 2),
        [REGION_RISE] = ANSWER_FIGURES("rise_bytes", "most more", ANSWER_BYTES, size,
                                       .is_left_out = profile->heap != NULL),
        [REGION_NAME] = ANSWER_NAMES("name", ANSWER_TAIL_CUT),
        [REGION_FREED] = ANSWER_DATA("freed_bytes", ANSWER_BYTES),
        [REGION_PEAK] = ANSWER_DATA("peak_bytes", ANSWER_BYTES, .is_estimate = true),
        [REGION_EXIT] = ANSWER_DATA("at_exit_bytes", ANSWER_BYTES, .is_estimate = true),
        [REGION_EXIT_BLOCKS] = ANSWER_DATA("at_exit_blocks", ANSWER_COUNT, .is_estimate = true)};
    if (!open_answer(answer, profile, CAIRN_SCOPE_REGION, view, error)) return false;
    set_columns(answer, columns, REGION_COLUMNS);
    answer->next_row = next_region;
    return true;
}

enum pool_column {
    POOL_PEAK,
    POOL_EXIT,
    POOL_ALLOCATED,
    POOL_CALLS,
    POOL_MADE,
    POOL_OPEN,
    POOL_NAME,
    POOL_FREED,
    POOL_EXIT_BLOCKS,
    POOL_COLUMNS
};

static bool next_pool(struct answer *answer, struct answer_row *out) {
    const struct row *row = next_of(answer);
    if (!row) return false;
    const struct stack *values = &row->values;
    const struct cairn_scope *entry = &row->scope->entry;
    answer_set(out, POOL_PEAK, values->peak_bytes);
    answer_set(out, POOL_EXIT, values->exit_bytes);
    answer_set(out, POOL_ALLOCATED, (int64_t)values->allocated_bytes);
    answer_set(out, POOL_CALLS, (int64_t)values->allocations);
    answer_set(out, POOL_MADE, (int64_t)entry->entries);
    answer_set(out, POOL_OPEN, (int64_t)(entry->entries - entry->ended));
    answer_set_text(out, POOL_NAME, row->scope->path);
    answer_set(out, POOL_FREED, (int64_t)values->freed_bytes);
    answer_set(out, POOL_EXIT_BLOCKS, values->exit_blocks);
    return true;
}

bool pools_answer(struct answer *answer, const struct profile *profile,
                  const struct view_options *view, struct error *error) {
    const size_t size = view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS;
    const size_t few = COUNT_COLUMNS - 4;
    const struct answer_column columns[POOL_COLUMNS] = {
        [POOL_PEAK] =
            ANSWER_FIGURES("peak_bytes", "own peak", ANSWER_BYTES, size, .style = STYLE_STRONG),
        [POOL_EXIT] = ANSWER_FIGURES("at_exit_bytes", profile_has_ended(profile) ? "left" : "now",
                                     ANSWER_BYTES, size),
        [POOL_ALLOCATED] = ANSWER_FIGURES("allocated_bytes", "allocated", ANSWER_BYTES, size),
        [POOL_CALLS] = ANSWER_FIGURES("allocations", "calls", ANSWER_COUNT, COUNT_COLUMNS),
        [POOL_MADE] = ANSWER_FIGURES("made", "made", ANSWER_COUNT, few),
        [POOL_OPEN] = ANSWER_FIGURES("open", "open", ANSWER_COUNT, few),
        [POOL_NAME] = ANSWER_NAMES("name", ANSWER_TAIL_CUT),
        [POOL_FREED] = ANSWER_DATA("freed_bytes", ANSWER_BYTES),
        [POOL_EXIT_BLOCKS] = ANSWER_DATA("at_exit_blocks", ANSWER_COUNT)};
    if (!open_answer(answer, profile, CAIRN_SCOPE_POOL, view, error)) return false;
    set_columns(answer, columns, POOL_COLUMNS);
    answer->next_row = next_pool;
    return true;
}

enum { SUMMARY_INDENT = 2, SUMMARY_KEY_COLUMNS = 13, SUMMARY_POOLS = 3 };

static void print_summary_key(const struct terminal *terminal, const char *key) {
    terminal_indent(terminal, SUMMARY_INDENT);
    terminal_print(terminal, STYLE_DIM, "%-*s", SUMMARY_KEY_COLUMNS, key);
}

bool pools_print_lines(const struct terminal *terminal, const struct profile *profile,
                       const struct view_options *view, struct error *error) {
    struct table table;
    struct view_options by_peak = *view;
    by_peak.by = MEASURE_PEAK;
    if (!open_table(&table, profile, CAIRN_SCOPE_POOL, &by_peak, error)) return false;
    for (size_t i = 0; i < table.count && i < SUMMARY_POOLS; i++) {
        const struct stack *values = &table.rows[i].values;
        print_summary_key(terminal, i ? "" : "pools");
        size_t used = (size_t)fprintf(terminal->out, "%s at most, %s %s: ",
                                      units_size_as(values->peak_bytes, view->is_plain_number).text,
                                      units_size_as(values->exit_bytes, view->is_plain_number).text,
                                      profile_has_ended(profile) ? "left" : "now");
        char name[FRAME_TEXT_BYTES];
        size_t columns = terminal->columns, taken = SUMMARY_INDENT + SUMMARY_KEY_COLUMNS + used;
        text_escape(name, sizeof name, table.rows[i].scope->path);
        text_cut(name, columns > taken + 8 ? columns - taken : 8);
        terminal_print(terminal, STYLE_NAME, "%s\n", name);
    }
    if (table.count > SUMMARY_POOLS) {
        print_summary_key(terminal, "");
        fprintf(terminal->out, "%s more: --view pools\n",
                units_count((int64_t)table.count - SUMMARY_POOLS).text);
    }
    close_table(&table);
    return true;
}

static void put_row(struct json *json, const struct table *table, const struct row *row) {
    const struct stack *values = &row->values;
    const struct cairn_scope *entry = &row->scope->entry;
    bool is_pool = row->scope->kind == CAIRN_SCOPE_POOL;
    json_open_object(json, NULL);
    json_put_string(json, "name", row->scope->path);
    json_put_uint(json, is_pool ? "made" : "begun", entry->entries);
    if (is_pool)
        json_put_uint(json, "destroyed", entry->ended);
    else if (!table->is_of_heap)
        json_put_int(json, "rise_bytes", entry->rise_bytes);
    json_values_put_part(json, values);
    if (table->is_sampled && !is_pool)
        json_values_put_estimates(json, stack_more(values)->estimates, false);
    json_close(json);
}

bool scopes_put_json(struct json *json, const struct profile *profile) {
    static const struct {
        enum cairn_scope_kind kind;
        const char *key;
    } lists[] = {{CAIRN_SCOPE_REGION, "regions"}, {CAIRN_SCOPE_POOL, "pools"}};
    const struct view_options view = {.by = MEASURE_PEAK};
    struct error error;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct table table;
        if (!open_table(&table, profile, lists[i].kind, &view, &error)) return false;
        if (table.count) json_open_array(json, lists[i].key);
        for (size_t at = 0; at < table.count; at++) put_row(json, &table, &table.rows[at]);
        if (table.count) json_close(json);
        close_table(&table);
    }
    return true;
}
