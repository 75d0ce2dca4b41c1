// SPDX-License-Identifier: Apache-2.0
#include "tool/render/scopes_screen.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/measure.h"
#include "tool/model/scopes.h"
#include "tool/render/columns.h"
#include "tool/render/frames.h"
#include "tool/render/interval.h"
#include "tool/render/json_values.h"

enum { PERCENT_COLUMNS = 6, SIZE_COLUMNS = 10, PLAIN_COLUMNS = 14, COUNT_COLUMNS = 11 };

struct row {
    const struct scope *scope;
    struct stack values;
    struct measured measured;
};

struct table {
    const struct terminal *terminal;
    const struct view_options *view;
    struct scopes scopes;
    struct row *rows;
    struct stack *values;  // of all scopes
    size_t count;
    size_t size_columns;
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

static bool open_table(struct table *table, const struct terminal *terminal,
                       const struct profile *profile, enum cairn_scope_kind kind,
                       const struct view_options *view, struct error *error) {
    *table = (struct table){.terminal = terminal,
                            .view = view,
                            .is_of_heap = profile->heap != NULL,
                            .is_sampled = profile->sampling.is_on && kind == CAIRN_SCOPE_REGION,
                            .size_columns = view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS};
    if (scopes_read(&table->scopes, profile->recording) && fill(table, profile, kind)) return true;
    close_table(table);
    error_set(error, "no memory for the list of regions or pools");
    return false;
}

static size_t print_heading(const struct table *table, const char *one, const char *several) {
    const struct view_options *view = table->view;
    size_t shown = view->top && view->top < table->count ? view->top : table->count;
    terminal_print(table->terminal, STYLE_STRONG, "%s %s", units_count((int64_t)table->count).text,
                   table->count == 1 ? one : several);
    list_print_cut(table->terminal, view, shown, table->count);
    fputc('\n', table->terminal->out);
    return shown;
}

static struct unit_text size_text(const struct table *table, int64_t bytes) {
    return units_size_as(bytes, table->view->is_plain_number);
}

static void print_name(const struct table *table, const struct row *row, size_t used) {
    char name[FRAME_TEXT_BYTES];
    size_t columns = table->terminal->columns;
    text_escape(name, sizeof name, row->scope->path);
    text_cut(name, columns > used + 8 ? columns - used : 8);
    terminal_print(table->terminal, STYLE_NAME, "  %s\n", name);
}

// A value of the measure: a size, or a number.
static struct unit_text value_text(const struct table *table, int64_t value) {
    bool is_bytes = measure_about(table->view->by)->is_bytes;
    return is_bytes ? size_text(table, value) : units_count(value);
}

// How sure the estimates of a region's row are, on a line of its own.
static void print_estimates(const struct table *table, const struct row *row) {
    const struct measure_row *about = measure_about(table->view->by);
    struct parts parts = {.terminal = table->terminal};
    bool is_plain = table->view->is_plain_number;
    if (table->view->by != MEASURE_ALLOCATED && table->view->by != MEASURE_CALLS)
        interval_add_part(&parts, about->snapshot, row->measured, about->is_bytes, is_plain);
    interval_add_part(&parts, "allocated", measure_stack(MEASURE_ALLOCATED, &row->values), true,
                      is_plain);
    interval_add_part(&parts, "calls", measure_stack(MEASURE_CALLS, &row->values), false, is_plain);
    parts_end(&parts);
}

static void print_column_heads(const struct table *table, const struct columns *columns) {
    columns_print_heads(table->terminal, columns);
    fputc('\n', table->terminal->out);
}

enum { REGION_COLUMNS = 6, POOL_COLUMNS = 6 };

static struct columns region_columns(const struct table *table, struct column *items) {
    const size_t size = table->size_columns, count = COUNT_COLUMNS;
    const struct column columns[REGION_COLUMNS] = {
        {"", PERCENT_COLUMNS, STYLE_STRONG, false},
        {measure_about(table->view->by)->snapshot, size, STYLE_PLAIN, false},
        {"allocated", size, STYLE_PLAIN, false},
        {"calls", count, STYLE_PLAIN, false},
        {"begun", count - 2, STYLE_PLAIN, false},
        {"most more", size, STYLE_PLAIN, false}};
    memcpy(items, columns, sizeof columns);
    return (struct columns){items, REGION_COLUMNS - table->is_of_heap, 0, 1};
}

static void print_region(const struct table *table, const struct columns *columns,
                         const struct row *row, int64_t whole) {
    const struct unit_text texts[REGION_COLUMNS] = {
        units_percent(row->measured.value, whole),
        value_text(table, row->measured.value),
        size_text(table, (int64_t)row->values.allocated_bytes),
        units_count((int64_t)row->values.allocations),
        units_count((int64_t)row->scope->entry.entries),
        size_text(table, row->scope->entry.rise_bytes)};
    columns_print(table->terminal, columns, texts);
    print_name(table, row, columns_width(columns) + 2);
    if (table->is_sampled) print_estimates(table, row);
}

// A sum of processes has no cells, which is where regions are known.
static void print_none(const struct table *table, const struct profile *profile) {
    bool is_sum = profile->stack_count && !profile->cell_count;
    terminal_print(table->terminal, STYLE_DIM, "%s\n",
                   is_sum ? "they are known of each process: --process PID|NAME"
                          : "the program named none (docs/reference/api.md)");
}

bool regions_print(const struct terminal *terminal, const struct profile *profile,
                   const struct view_options *view, struct error *error) {
    struct table table;
    if (!open_table(&table, terminal, profile, CAIRN_SCOPE_REGION, view, error)) return false;
    struct column items[REGION_COLUMNS];
    const struct columns columns = region_columns(&table, items);
    size_t shown = print_heading(&table, "region", "regions");
    if (!table.count) print_none(&table, profile);
    if (table.count) print_column_heads(&table, &columns);
    for (size_t i = 0; i < shown; i++)
        print_region(&table, &columns, &table.rows[i], measure_total(view->by, profile).value);
    close_table(&table);
    return true;
}

static struct columns pool_columns(const struct table *table, const struct profile *profile,
                                   struct column *items) {
    const size_t size = table->size_columns, count = COUNT_COLUMNS;
    const struct column columns[POOL_COLUMNS] = {
        {"own peak", size, STYLE_STRONG, false},
        {profile_has_ended(profile) ? "left" : "now", size, STYLE_PLAIN, false},
        {"allocated", size, STYLE_PLAIN, false},
        {"calls", count, STYLE_PLAIN, false},
        {"made", count - 4, STYLE_PLAIN, false},
        {"open", count - 4, STYLE_PLAIN, false}};
    memcpy(items, columns, sizeof columns);
    return (struct columns){items, POOL_COLUMNS, 0, 1};
}

static void print_pool(const struct table *table, const struct columns *columns,
                       const struct row *row) {
    const struct stack *values = &row->values;
    const struct cairn_scope *entry = &row->scope->entry;
    const struct unit_text texts[POOL_COLUMNS] = {
        size_text(table, values->peak_bytes),
        size_text(table, values->exit_bytes),
        size_text(table, (int64_t)values->allocated_bytes),
        units_count((int64_t)values->allocations),
        units_count((int64_t)entry->entries),
        units_count((int64_t)(entry->entries - entry->ended))};
    columns_print(table->terminal, columns, texts);
    print_name(table, row, columns_width(columns) + 2);
}

bool pools_print(const struct terminal *terminal, const struct profile *profile,
                 const struct view_options *view, struct error *error) {
    struct table table;
    if (!open_table(&table, terminal, profile, CAIRN_SCOPE_POOL, view, error)) return false;
    struct column items[POOL_COLUMNS];
    const struct columns columns = pool_columns(&table, profile, items);
    size_t shown = print_heading(&table, "name of pools", "names of pools");
    if (!table.count) print_none(&table, profile);
    if (table.count) print_column_heads(&table, &columns);
    for (size_t i = 0; i < shown; i++) print_pool(&table, &columns, &table.rows[i]);
    close_table(&table);
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
    if (!open_table(&table, terminal, profile, CAIRN_SCOPE_POOL, &by_peak, error)) return false;
    for (size_t i = 0; i < table.count && i < SUMMARY_POOLS; i++) {
        const struct stack *values = &table.rows[i].values;
        print_summary_key(terminal, i ? "" : "pools");
        size_t used = (size_t)fprintf(
            terminal->out, "%s at most, %s %s: ", size_text(&table, values->peak_bytes).text,
            size_text(&table, values->exit_bytes).text,
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
        if (!open_table(&table, NULL, profile, lists[i].kind, &view, &error)) return false;
        if (table.count) json_open_array(json, lists[i].key);
        for (size_t at = 0; at < table.count; at++) put_row(json, &table, &table.rows[at]);
        if (table.count) json_close(json);
        close_table(&table);
    }
    return true;
}
