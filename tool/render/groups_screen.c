// SPDX-License-Identifier: Apache-2.0
#include "tool/render/groups_screen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/model/threads.h"
#include "tool/render/columns.h"
#include "tool/render/interval.h"
#include "tool/render/shorten.h"

enum {
    VALUE_COLUMNS = 18,                            // percent and size, with a blank before each ...
    PLAIN_COLUMNS = 24,                            // ... and where sizes are plain numbers
    BLOCKS_COLUMNS = 18,                           // " 1,234,567 blocks "
    NOTE_COLUMNS = INTERVAL_NOTE_COLUMNS + 2,      // of sampled recordings, instead ...
    NARROW_COLUMNS = INTERVAL_NARROW_COLUMNS + 2,  // ... and where each line has two values
    PERCENTS_COLUMNS = 94,  // of sampled recordings: below, two values have no shares
    WIDE_COLUMNS = 110,     // from here on there is room for the number of blocks too
    PERCENT_COLUMNS = 6,
    LABEL_COLUMNS_MIN = 22,
};

struct table {
    const struct terminal *terminal;
    const struct view_options *view;
    const struct measure_row *about;
    const struct grouping *grouping;  // NULL: threads
    int64_t whole;
    int value_columns;
    bool has_total, has_blocks, has_shares;
    bool has_notes;  // on intervals
};

static struct table table_of(const struct terminal *terminal, const struct profile *profile,
                             const struct view_options *view, const struct grouping *grouping) {
    bool has_total = grouping && grouping->has_total;
    const struct measure_row *about = measure_about(view->by);
    bool has_notes = profile->sampling.is_on;
    bool has_shares = !has_total || !has_notes || terminal->columns >= PERCENTS_COLUMNS;
    int columns = view->is_plain_number ? PLAIN_COLUMNS : VALUE_COLUMNS;
    return (struct table){.terminal = terminal,
                          .view = view,
                          .about = about,
                          .grouping = grouping,
                          .whole = measure_total(view->by, profile).value,
                          .value_columns = columns - (has_shares ? 0 : PERCENT_COLUMNS + 1),
                          .has_total = has_total,
                          .has_notes = has_notes,
                          .has_shares = has_shares,
                          .has_blocks =
                              about->is_bytes && (!has_total || terminal->columns >= WIDE_COLUMNS)};
}

static void print_value(const struct table *table, int64_t value) {
    struct unit_text text = table->about->is_bytes
                                ? units_size_as(value, table->view->is_plain_number)
                                : units_count(value);
    if (!value) {
        terminal_print(table->terminal, STYLE_DIM, "%*s", table->value_columns, "-");
        return;
    }
    int columns = table->value_columns;
    if (table->has_shares) {
        terminal_print(table->terminal, STYLE_STRONG, "%*s", PERCENT_COLUMNS + 1,
                       units_percent(value, table->whole).text);
        columns -= PERCENT_COLUMNS + 1;
    }
    fprintf(table->terminal->out, " %*s", columns - 1, text.text);
}

static void print_measured(const struct table *table, struct measured measured) {
    print_value(table, measured.value);
    if (!table->has_notes) return;
    if (measured.value)
        interval_print(table->terminal, measured, table->has_total);
    else
        terminal_indent(table->terminal,
                        (size_t)(table->has_total ? NARROW_COLUMNS : NOTE_COLUMNS));
}

static void print_blocks(const struct table *table, struct measured measured) {
    if (table->has_notes || !table->has_blocks) return;
    fprintf(table->terminal->out, " %9s %-6s ", units_count(measured.blocks).text,
            table->about->noun[measured.blocks != 1]);
}

static size_t columns_of(const struct table *table) {
    size_t used = (size_t)table->value_columns * (table->has_total ? 2 : 1);
    if (table->has_notes) return used + (table->has_total ? 2 * NARROW_COLUMNS : NOTE_COLUMNS) + 2;
    return used + (table->has_blocks ? BLOCKS_COLUMNS : 0) + 2;
}

// A path loses directories at its front, another name what shorten_function takes.
static void fit(char *label, size_t columns) {
    static const char ellipsis[] = "\xe2\x80\xa6";
    char *cut = label;
    bool is_path = *label == '/';
    if (text_columns(label) <= columns) return;
    if (!is_path) {
        shorten_function(label, columns);
        text_cut(label, columns);
        return;
    }
    while (cut && text_columns(cut) + 1 > columns) cut = strchr(cut + 1, '/');
    if (!cut) cut = strrchr(label, '/');
    if (cut - label >= (int)sizeof ellipsis - 1) {
        cut -= sizeof ellipsis - 1;
        memcpy(cut, ellipsis, sizeof ellipsis - 1);
        memmove(label, cut, strlen(cut) + 1);
    }
    text_cut(label, columns);
}

static void print_label(const struct table *table, const struct group *group) {
    char label[GROUP_TEXT_BYTES], location[GROUP_TEXT_BYTES];
    size_t used = columns_of(table), columns = table->terminal->columns;
    size_t room = columns > used + LABEL_COLUMNS_MIN ? columns - used : LABEL_COLUMNS_MIN;
    bool is_line = table->grouping && !table->grouping->has_stable_names;
    snprintf(label, sizeof label, "%s", is_line ? text_base_name(group->label) : group->label);
    snprintf(location, sizeof location, "%s", group->location);
    size_t wanted = text_columns(label);
    // the place stands behind a name that leaves room for some of it
    size_t location_columns = *location ? text_columns(location) + 1 : 0;
    if (location_columns > room / 3) location_columns = room / 3;
    size_t label_room = wanted + location_columns > room ? room - location_columns : wanted;
    fit(label, label_room);
    terminal_print(table->terminal, STYLE_NAME, "%s", label);
    size_t left = room - text_columns(label);
    if (*location && left > 1) {
        fit(location, left - 1);
        terminal_print(table->terminal, STYLE_DIM, " %s", location);
    }
    fputc('\n', table->terminal->out);
}

static void print_row(const struct table *table, const struct group *group) {
    print_measured(table, group->self);
    if (table->has_total) print_measured(table, group->total);
    print_blocks(table, group->self.value ? group->self : group->total);
    terminal_indent(table->terminal, 2);
    print_label(table, group);
}

static void print_columns(const struct table *table) {
    static const char heading[] = INTERVAL_NARROW_HEADING;
    const struct terminal *terminal = table->terminal;
    if (!table->has_total) return;
    size_t note_columns = table->has_notes ? NARROW_COLUMNS : 0;
    for (int i = 0; i < 2; i++) {
        terminal_print(terminal, STYLE_DIM, "%*s", table->value_columns, i ? "total" : "self");
        if (note_columns) terminal_print(terminal, STYLE_DIM, "  %s", heading);
        if (note_columns && !i) terminal_indent(terminal, note_columns - 2 - text_columns(heading));
    }
    fputc('\n', terminal->out);
}

// Prints the heading of `all` things in `count` rows.
static void print_heading(const struct table *table, const char *what, size_t all, size_t shown,
                          size_t count) {
    terminal_print(table->terminal, STYLE_STRONG, "%s %s, %s%s", units_count((int64_t)all).text,
                   what, strcmp(table->about->name, "calls") != 0 ? "" : "by ",
                   table->about->snapshot);
    list_print_cut(table->terminal, table->view, shown, count);
    fputc('\n', table->terminal->out);
}

static size_t count_shown(const struct table *table, const struct group_list *list) {
    int64_t threshold = view_threshold(table->view, table->whole);
    size_t shown = 0;
    while (shown < list->groups.count && (!table->view->top || shown < table->view->top)) {
        const struct group *group = &list->groups.items[shown];
        if (group->self.value < threshold && group->total.value < threshold) break;
        shown++;
    }
    return shown;
}

void groups_print(const struct terminal *terminal, const struct profile *profile,
                  const struct grouping *grouping, const struct group_list *list,
                  const struct view_options *view) {
    struct table table = table_of(terminal, profile, view, grouping);
    size_t count = list->groups.count, shown = count_shown(&table, list);
    struct measured rest = {0};
    print_heading(&table, count == 1 ? grouping->one : grouping->name, count, shown, count);
    print_columns(&table);
    for (size_t i = 0; i < count; i++) {
        if (i < shown)
            print_row(&table, &list->groups.items[i]);
        else
            measured_add(&rest, list->groups.items[i].self);
    }
    if (!rest.value) return;
    print_measured(&table, rest);
    if (table.has_total)
        terminal_indent(terminal,
                        (size_t)table.value_columns + (table.has_notes ? NARROW_COLUMNS : 0));
    print_blocks(&table, rest);
    terminal_print(terminal, STYLE_DIM, "  %s\n",
                   units_counted((int64_t)(count - shown), "other", "others").text);
}

static struct measured thread_estimate(const struct profile_thread *thread, bool is_peak) {
    const struct estimate *estimate = is_peak ? &thread->peak_estimate : &thread->exit_estimate;
    return measured_bytes(is_peak ? thread->peak_bytes : thread->exit_bytes, estimate);
}

// Prints how sure the estimates of a row are, on a line of its own.
static void print_thread_note(const struct table *table, const struct profile_thread *thread) {
    bool is_plain = table->view->is_plain_number;
    struct parts parts = {.terminal = table->terminal};
    if (table->view->by == MEASURE_PEAK)
        interval_add_part(&parts, table->about->snapshot, thread_estimate(thread, true), true,
                          is_plain);
    interval_add_part(&parts, "at the end", thread_estimate(thread, false), true, is_plain);
    parts_end(&parts);
}

int64_t thread_value(const struct profile_thread *thread, enum measure by) {
    switch (by) {
    case MEASURE_PEAK:
        return thread->peak_bytes;
    case MEASURE_EXIT:
        return thread->exit_bytes;
    case MEASURE_ALLOCATED:
        return (int64_t)thread->allocated_bytes;
    default:
        return (int64_t)thread->allocations;
    }
}

static int compare_threads(const void *a, const void *b, void *context) {
    const struct thread_row *first = a, *second = b;
    const enum measure *by = context;
    int64_t x = thread_value(&first->sums, *by), y = thread_value(&second->sums, *by);
    if (x != y) return x < y ? 1 : -1;
    return (first->number > second->number) - (first->number < second->number);
}

enum { THREAD_COLUMNS = 4 };

// The first one has a share and a size.
static struct columns thread_columns(const struct table *table, struct column *items) {
    const size_t size = table->view->is_plain_number ? PLAIN_COLUMNS - PERCENT_COLUMNS : 10;
    const struct column columns[THREAD_COLUMNS] = {
        {table->about->snapshot, (size_t)table->value_columns, STYLE_PLAIN, false},
        {"allocated", size, STYLE_PLAIN, false},
        {"calls", 12, STYLE_PLAIN, false},
        {"at the end", size, STYLE_PLAIN, false}};
    memcpy(items, columns, sizeof columns);
    return (struct columns){items, THREAD_COLUMNS, 0, 1};
}

static void print_thread(const struct table *table, const struct thread_row *row) {
    const struct profile_thread *thread = &row->sums;
    char name[2 * THREAD_TEXT_BYTES], raw[THREAD_TEXT_BYTES];
    bool is_plain = table->view->is_plain_number;
    struct column items[THREAD_COLUMNS];
    thread_columns(table, items);
    const struct columns rest = {items + 1, THREAD_COLUMNS - 1, 1, 1};
    const struct unit_text texts[] = {units_size_as((int64_t)thread->allocated_bytes, is_plain),
                                      units_count((int64_t)thread->allocations),
                                      units_size_as(thread->exit_bytes, is_plain)};
    thread_row_text(row, raw, sizeof raw);
    text_escape(name, sizeof name, raw);
    print_value(table, thread_value(thread, table->view->by));
    columns_print(table->terminal, &rest, texts);
    terminal_print(table->terminal, STYLE_NAME, "  %s", name);
    if (thread->tid && row->sharing_count < 2)
        terminal_print(table->terminal, STYLE_DIM, " %" PRIu32, thread->tid);
    if (thread->folded_count && row->sharing_count < 2)
        terminal_print(table->terminal, STYLE_DIM, " and %s more",
                       units_count(thread->folded_count).text);
    fputc('\n', table->terminal->out);
    if (table->has_notes) print_thread_note(table, thread);
}

// Counts what the rows say of shared accounts. False: there are none.
static bool claim_of_rows(struct claim *claim, const struct thread_row *rows, size_t count) {
    int64_t accounts = 0, threads = 0;
    *claim = (struct claim){.key = CLAIM_ACCOUNTS};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].sharing_count < 2) continue;
        accounts++;
        threads += (int64_t)rows[i].sharing_count;
    }
    claim_set(claim, "threads", threads);
    claim_set(claim, "accounts", accounts);
    return accounts > 0;
}

bool claim_of_accounts(struct claim *claim, const struct profile *profile) {
    size_t count = 0;
    struct thread_row *rows = calloc(profile->thread_count + 1, sizeof *rows);
    bool has_any = rows && threads_rows(profile, rows, &count) && claim_of_rows(claim, rows, count);
    free(rows);
    return has_any;
}

static void print_threads_legend(const struct table *table, const struct thread_row *rows,
                                 size_t count) {
    char sentence[CLAIM_SENTENCE_BYTES];
    struct claim claim;
    if (table->has_notes)
        terminal_print(table->terminal, STYLE_DIM,
                       "allocated and calls are counted; the rest are estimates from samples\n");
    if (!claim_of_rows(&claim, rows, count)) return;
    claim_sentence(&claim, false, sentence);
    terminal_print(table->terminal, STYLE_DIM, "%s;\n--json has the calls of each\n", sentence);
}

bool threads_print(const struct terminal *terminal, const struct profile *profile,
                   const struct view_options *view, bool is_grouped, struct error *error) {
    struct view_options own = *view;
    // threads know no numbers of blocks: their calls are the nearest
    if (!measure_about(own.by)->is_bytes) own.by = MEASURE_CALLS;
    struct table table = table_of(terminal, profile, &own, NULL);
    size_t count = 0;
    struct thread_row *rows = calloc(profile->thread_count + 1, sizeof *rows);
    if (!rows || !(is_grouped ? threads_group : threads_rows)(profile, rows, &count)) {
        free(rows);
        return error_set(error, "no memory for the list of threads");
    }
    for (size_t i = 0; i < count; i++) rows[i].number = (uint32_t)i;
    qsort_r(rows, count, sizeof *rows, compare_threads, &own.by);
    size_t shown = own.top && own.top < count ? own.top : count;
    int64_t threshold = view_threshold(&own, table.whole);
    if (threshold > 1)
        for (shown = 0; shown < count && (!own.top || shown < own.top); shown++)
            if (thread_value(&rows[shown].sums, own.by) < threshold) break;
    size_t all = is_grouped ? count : profile->thread_count;
    print_heading(&table, units_noun((int64_t)all, "thread", "threads"), all, shown, count);
    struct column items[THREAD_COLUMNS];
    const struct columns columns = thread_columns(&table, items);
    columns_print_heads(terminal, &columns);
    fputc('\n', terminal->out);
    for (size_t i = 0; i < shown; i++) print_thread(&table, &rows[i]);
    print_threads_legend(&table, rows, count);
    free(rows);
    return true;
}
