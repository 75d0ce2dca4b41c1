// SPDX-License-Identifier: Apache-2.0
// cairn whatif: an event log on every allocator that is installed and with settings that change
// much, as one table, and as a page with a chart.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/whatif.h"
#include "tool/replay/allocators.h"

enum { ROUNDS_USUAL = 5, ROUNDS_MOST = 100 };
// Peaks and times that are closer are equal.
static const double worth = 0.02;

// What is tried, where the allocator is installed.
static const struct whatif_trial trials[] = {
    {"glibc", NULL},
    {"glibc", "MALLOC_ARENA_MAX=1"},
    {"glibc", "MALLOC_ARENA_MAX=2"},
    {"glibc", "MALLOC_TRIM_THRESHOLD_=65536"},
    {"glibc", "MALLOC_MMAP_THRESHOLD_=65536"},
    {"glibc", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"},
    {"glibc", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"},
    {"jemalloc", NULL},
    {"jemalloc", "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"},
    {"jemalloc", "MALLOC_CONF=narenas:1"},
    {"jemalloc", "MALLOC_CONF=thp:always"},
    {"tcmalloc", NULL},
    {"tcmalloc", "TCMALLOC_RELEASE_RATE=10"},
    {"tcmalloc", "TCMALLOC_AGGRESSIVE_DECOMMIT=1"},
    {"mimalloc", NULL},
    {"mimalloc", "MIMALLOC_PAGE_RESET=1"},
    {"mimalloc", "MIMALLOC_LARGE_OS_PAGES=1"},
};
_Static_assert(sizeof trials / sizeof *trials <= WHATIF_ROWS_MOST, "a row for each");

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct whatif_spread spread_of(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return (struct whatif_spread){values[0], values[count / 2], values[count - 1]};
}

static void measure(const struct whatif_table *table, struct whatif_row *row) {
    static struct replay_result result;
    double peaks[ROUNDS_MOST], freed[ROUNDS_MOST], ns[ROUNDS_MOST];
    struct runner_setting setting = table->order->setting;
    setting.library = row->library;
    if (row->trial->variable)
        setting.variables[table->order->variable_count] = row->trial->variable;
    for (uint64_t i = 0; i < table->rounds; i++) {
        if (!runner_run(table->script, &setting, &result, &row->problem)) return;
        peaks[i] = (double)result.told.peak_bytes;
        freed[i] = (double)result.told.freed_bytes;
        ns[i] = replay_allocator_ns(&result.told) / (double)result.told.call_count;
    }
    row->problem.text[0] = 0;
    row->peak = spread_of(peaks, table->rounds);
    row->freed = spread_of(freed, table->rounds);
    row->ns = spread_of(ns, table->rounds);
}

// The lowest peak first; those that failed last.
static int by_peak(const void *left, const void *right) {
    const struct whatif_row *a = left, *b = right;
    int failed = (a->problem.text[0] != 0) - (b->problem.text[0] != 0);
    if (failed) return failed;
    return (a->peak.middle > b->peak.middle) - (a->peak.middle < b->peak.middle);
}

static void measure_all(struct whatif_table *table) {
    struct error unused;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        struct whatif_row *row = &table->rows[table->count];
        *row = (struct whatif_row){.trial = &trials[i]};
        if (!allocator_find(trials[i].allocator, row->library, &unused)) continue;
        measure(table, row);
        table->count++;
    }
    qsort(table->rows, table->count, sizeof *table->rows, by_peak);
}

void whatif_line(const struct whatif_row *row, char *out) {
    bool has_library = *row->library, has_variable = row->trial->variable != NULL;
    if (!has_library && !has_variable) {
        snprintf(out, WHATIF_LINE_BYTES, "as it is");
        return;
    }
    snprintf(out, WHATIF_LINE_BYTES, "%s%s%s%s", has_library ? "LD_PRELOAD=" : "", row->library,
             has_library && has_variable ? " " : "", has_variable ? row->trial->variable : "");
}

const char *whatif_setting(const struct whatif_row *row) {
    return row->trial->variable ? row->trial->variable : "";
}

double whatif_range(const struct whatif_spread *spread) {
    const double percent = 100;
    return spread->middle > 0 ? percent * (spread->most - spread->least) / spread->middle : 0;
}

static void print_row(const struct terminal *terminal, const struct whatif_table *table,
                      const struct whatif_row *row, bool is_best) {
    if (row->problem.text[0]) {
        terminal_print(terminal, STYLE_WARNING, "  %-9s %-46s %s\n", row->trial->allocator,
                       whatif_setting(row), row->problem.text);
        return;
    }
    terminal_print(
        terminal, is_best ? STYLE_STRONG : STYLE_PLAIN,
        "  %-9s %-46s %10s %3.0f %% %11s %3.0f %% %7.1f ns %3.0f %%\n", row->trial->allocator,
        whatif_setting(row), units_size_as((int64_t)row->peak.middle, table->is_plain).text,
        whatif_range(&row->peak), units_size_as((int64_t)row->freed.middle, table->is_plain).text,
        whatif_range(&row->freed), row->ns.middle, whatif_range(&row->ns));
}

static const struct whatif_row *find_default(const struct whatif_table *table) {
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].trial == &trials[0]) return &table->rows[i];
    return NULL;
}

// Returns the fastest of the rows that take about as little as the first one; a setting that costs
// time for some pages is none to take.
static const struct whatif_row *find_best(const struct whatif_table *table) {
    const struct whatif_row *best = &table->rows[0];
    for (size_t i = 1; i < table->count; i++) {
        const struct whatif_row *row = &table->rows[i];
        bool is_as_low =
            !row->problem.text[0] && row->peak.middle <= table->rows[0].peak.middle * (1 + worth);
        if (is_as_low && row->ns.middle < best->ns.middle) best = row;
    }
    return best;
}

bool whatif_conclude(const struct whatif_table *table, char *conclusion, char *line) {
    const struct whatif_row *usual = find_default(table);
    *line = 0;
    if (!table->count || table->rows[0].problem.text[0]) return false;
    bool is_compared = usual && !usual->problem.text[0];
    if (is_compared && usual->peak.middle <= table->rows[0].peak.middle * (1 + worth)) {
        snprintf(conclusion, WHATIF_LINE_BYTES,
                 "no setting takes 2 %% less at the peak than glibc as it comes");
        return true;
    }
    const struct whatif_row *best = find_best(table);
    whatif_line(best, line);
    if (!is_compared) {
        snprintf(conclusion, WHATIF_LINE_BYTES, "least at the peak: ");
        return true;
    }
    int64_t less = (int64_t)(usual->peak.middle - best->peak.middle);
    double slower = usual->ns.middle > 0 ? best->ns.middle / usual->ns.middle - 1 : 0;
    char cost[64] = "";
    const double percent = 100;
    if (fabs(slower) >= worth)
        snprintf(cost, sizeof cost, ", for %.0f %% %s time a call", fabs(slower) * percent,
                 slower > 0 ? "more" : "less");
    snprintf(conclusion, WHATIF_LINE_BYTES,
             "%s less at the peak than glibc as it comes%s: ", units_size(less).text, cost);
    return true;
}

static void print_table(FILE *out, const struct whatif_table *table) {
    struct terminal terminal = terminal_of(out);
    char line[WHATIF_LINE_BYTES], conclusion[WHATIF_LINE_BYTES];
    terminal_print(&terminal, STYLE_DIM, "  %-9s %-46s %16s %17s %16s\n", "allocator", "setting",
                   "peak resident", "95 % freed", "time a call");
    for (size_t i = 0; i < table->count; i++) print_row(&terminal, table, &table->rows[i], i == 0);
    if (!whatif_conclude(table, conclusion, line)) return;
    terminal_print(&terminal, STYLE_PLAIN, "\n%s", conclusion);
    terminal_print(&terminal, STYLE_STRONG, "%s\n", line);
    terminal_print(&terminal, STYLE_DIM,
                   "middle of %" PRIu64 " runs, and how far they lie apart; %s live at the peak\n",
                   table->rounds, units_size((int64_t)table->script->peak_live_bytes).text);
    replay_print_notes(&terminal, table->order, table->script);
}

static bool write_page(const struct command_args *args, const struct whatif_table *table,
                       struct error *error) {
    struct output output;
    const char *path = args_text(args, OPTION_OUTPUT, NULL);
    if (!path) return true;
    if (!output_open(path, args_has(args, OPTION_FORCE), &output, error)) return false;
    if (whatif_put_page(output.file, table, error)) return output_commit(&output, error);
    output_cancel(&output);
    return false;
}

int cmd_whatif(const struct command_args *args) {
    static struct whatif_table table;
    struct replay_order order;
    struct script script;
    struct error error;
    table.rounds = ROUNDS_USUAL;
    if (!replay_order_read(args, &order, &error) ||
        !args_number(args, OPTION_ROUNDS, ROUNDS_USUAL, ROUNDS_MOST, &table.rounds, &error))
        return command_fail(STATUS_USAGE, &error);
    if (!table.rounds) table.rounds = 1;
    if (!replay_order_open(&order, &script, &error)) return command_fail(STATUS_FAILURE, &error);
    table.order = &order;
    table.script = &script;
    table.is_plain = args_has(args, OPTION_BYTES);
    measure_all(&table);
    print_table(stdout, &table);
    bool is_ok = write_page(args, &table, &error);
    script_close(&script);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
