// SPDX-License-Identifier: Apache-2.0
// cairn whatif: an event log on every allocator that is installed and with settings that change
// much, as one table, and as a page with a chart.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/output.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/replay_options.h"
#include "tool/replay/allocators.h"

enum { ROUNDS_USUAL = 5, ROUNDS_MOST = 100, LINE_BYTES = PATH_MAX + 200 };

// What is tried, where the allocator is installed.
static const struct trial {
    const char *allocator, *variable;  // "NAME=VALUE", NULL: as it comes
} trials[] = {
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
enum { TRIALS = sizeof trials / sizeof *trials };

// Of several runs.
struct spread {
    double least, middle, most;
};

struct row {
    const struct trial *trial;
    char library[PATH_MAX];
    struct spread peak, freed, ns;
    struct error problem;  // "": it ran
};

struct table {
    struct row rows[TRIALS];
    size_t count;
    uint64_t rounds;
    const struct replay_order *order;
    const struct script *script;
    bool is_plain;
};

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct spread spread_of(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return (struct spread){values[0], values[count / 2], values[count - 1]};
}

static void measure(const struct table *table, struct row *row) {
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
    const struct row *a = left, *b = right;
    int failed = (a->problem.text[0] != 0) - (b->problem.text[0] != 0);
    if (failed) return failed;
    return (a->peak.middle > b->peak.middle) - (a->peak.middle < b->peak.middle);
}

static void measure_all(struct table *table) {
    struct error unused;
    for (size_t i = 0; i < TRIALS; i++) {
        struct row *row = &table->rows[table->count];
        *row = (struct row){.trial = &trials[i]};
        if (!allocator_find(trials[i].allocator, row->library, &unused)) continue;
        measure(table, row);
        table->count++;
    }
    qsort(table->rows, table->count, sizeof *table->rows, by_peak);
}

// What switches a program over, as a shell reads it.
static void line_of(const struct row *row, char *out, size_t size) {
    bool has_library = *row->library, has_variable = row->trial->variable != NULL;
    if (!has_library && !has_variable) {
        snprintf(out, size, "as it is");
        return;
    }
    snprintf(out, size, "%s%s%s%s", has_library ? "LD_PRELOAD=" : "", row->library,
             has_library && has_variable ? " " : "", has_variable ? row->trial->variable : "");
}

static const char *setting_of(const struct row *row) {
    return row->trial->variable ? row->trial->variable : "";
}

static double range_of(const struct spread *spread) {
    const double percent = 100;
    return spread->middle > 0 ? percent * (spread->most - spread->least) / spread->middle : 0;
}

static void print_row(const struct terminal *terminal, const struct table *table,
                      const struct row *row, bool is_best) {
    if (row->problem.text[0]) {
        terminal_print(terminal, STYLE_WARNING, "  %-9s %-46s %s\n", row->trial->allocator,
                       setting_of(row), row->problem.text);
        return;
    }
    terminal_print(
        terminal, is_best ? STYLE_STRONG : STYLE_PLAIN,
        "  %-9s %-46s %10s %3.0f %% %11s %3.0f %% %7.1f ns %3.0f %%\n", row->trial->allocator,
        setting_of(row), units_size_as((int64_t)row->peak.middle, table->is_plain).text,
        range_of(&row->peak), units_size_as((int64_t)row->freed.middle, table->is_plain).text,
        range_of(&row->freed), row->ns.middle, range_of(&row->ns));
}

static const struct row *find_default(const struct table *table) {
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].trial == &trials[0]) return &table->rows[i];
    return NULL;
}

static void print_table(FILE *out, const struct table *table) {
    struct terminal terminal = terminal_of(out);
    char line[LINE_BYTES];
    const struct row *best = &table->rows[0], *usual = find_default(table);
    terminal_print(&terminal, STYLE_DIM, "  %-9s %-46s %16s %17s %16s\n", "allocator", "setting",
                   "peak resident", "95 % freed", "time a call");
    for (size_t i = 0; i < table->count; i++) print_row(&terminal, table, &table->rows[i], i == 0);
    if (!table->count || best->problem.text[0]) return;
    line_of(best, line, sizeof line);
    if (usual && usual != best && !usual->problem.text[0])
        terminal_print(&terminal, STYLE_PLAIN, "\n%s less at the peak than glibc as it comes: ",
                       units_size((int64_t)(usual->peak.middle - best->peak.middle)).text);
    else
        terminal_print(&terminal, STYLE_PLAIN, "\nleast at the peak: ");
    terminal_print(&terminal, STYLE_STRONG, "%s\n", line);
    terminal_print(&terminal, STYLE_DIM,
                   "middle of %" PRIu64 " runs, and how far they lie apart; %s live at the peak\n",
                   table->rounds, units_size((int64_t)table->script->peak_live_bytes).text);
    replay_print_notes(&terminal, table->order, table->script);
}

// --- the page

static void put_bar(FILE *out, const struct row *row, double most, unsigned y) {
    const unsigned left = 430, width = 420, height = 16;
    char name[NAME_MAX];
    double scale = most > 0 ? width / most : 0;
    snprintf(name, sizeof name, "%s %s", row->trial->allocator, setting_of(row));
    fprintf(out, "<text x=\"%u\" y=\"%u\" text-anchor=\"end\">", left - 8, y + height - 4);
    text_put_markup(out, name);
    fprintf(out, "</text><rect x=\"%u\" y=\"%u\" width=\"%.1f\" height=\"%u\" fill=\"#4a7fb5\"/>",
            left, y, row->peak.middle * scale, height / 2);
    fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%.1f\" height=\"%u\" fill=\"#c9a14a\"/>", left,
            y + height / 2, row->freed.middle * scale, height / 2);
    fprintf(out, "<text x=\"%.1f\" y=\"%u\">%s, %s, %.1f ns</text>\n",
            left + row->peak.middle * scale + 6, y + height - 4,
            units_size((int64_t)row->peak.middle).text, units_size((int64_t)row->freed.middle).text,
            row->ns.middle);
}

static void put_rows(FILE *out, const struct table *table) {
    char line[LINE_BYTES];
    fputs("<table><tr><th>allocator<th>setting<th>peak resident<th>spread<th>95 % freed<th>spread"
          "<th>ns a call<th>spread<th>to switch over\n",
          out);
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        fputs("<tr><td>", out);
        text_put_markup(out, row->trial->allocator);
        fputs("<td>", out);
        text_put_markup(out, setting_of(row));
        if (row->problem.text[0]) {
            fputs("<td colspan=7>", out);
            text_put_markup(out, row->problem.text);
            continue;
        }
        line_of(row, line, sizeof line);
        fprintf(out, "<td>%s<td>%.0f %%<td>%s<td>%.0f %%<td>%.1f<td>%.0f %%<td><code>",
                units_size((int64_t)row->peak.middle).text, range_of(&row->peak),
                units_size((int64_t)row->freed.middle).text, range_of(&row->freed), row->ns.middle,
                range_of(&row->ns));
        text_put_markup(out, line);
        fputs("</code>\n", out);
    }
    fputs("</table>\n", out);
}

static void put_page(FILE *out, const struct table *table) {
    const unsigned step = 24, margin = 10, page_width = 1100;
    double most = 0;
    char name[NAME_MAX];
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].peak.middle > most) most = table->rows[i].peak.middle;
    text_escape(name, sizeof name, text_base_name(table->order->log));
    fputs(
        "<!doctype html><meta charset=\"utf-8\"><title>cairn whatif</title><style>"
        "body{font:14px sans-serif;margin:24px;color:#222;background:#fff}"
        "td,th{padding:3px 10px;text-align:left;white-space:nowrap}th{border-bottom:1px solid #999}"
        "text{font:12px sans-serif}</style><h1>",
        out);
    text_put_markup(out, name);
    fprintf(out, "</h1><p>%s, %s live at the peak, middle of %" PRIu64 " runs. ",
            units_counted((int64_t)table->script->call_count, "call", "calls").text,
            units_size((int64_t)table->script->peak_live_bytes).text, table->rounds);
    fputs("Blue: resident at the peak; yellow: when 95 % of the last blocks are freed.</p>\n", out);
    fprintf(out, "<svg width=\"%u\" height=\"%zu\">\n", page_width, margin + step * table->count);
    unsigned y = margin;
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].problem.text[0]) continue;
        put_bar(out, &table->rows[i], most, y);
        y += step;
    }
    fputs("</svg>\n", out);
    put_rows(out, table);
}

static bool write_page(const struct command_args *args, const struct table *table,
                       struct error *error) {
    struct output output;
    const char *path = args_text(args, OPTION_OUTPUT, NULL);
    if (!path) return true;
    if (!output_open(path, args_has(args, OPTION_FORCE), &output, error)) return false;
    put_page(output.file, table);
    return output_commit(&output, error);
}

int cmd_whatif(const struct command_args *args) {
    static struct table table;
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
