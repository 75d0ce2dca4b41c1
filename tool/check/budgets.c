// SPDX-License-Identifier: Apache-2.0
#include "tool/check/budgets.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "tool/base/units.h"

#define BUDGET_REGION "region:"
static const double percent = 100;

// A kind of limit: option and key of the file.
static const struct kind {
    enum option_id option;
    const char *key;
    enum measure measure;
    bool has_share;  // "40%": of all calls
    bool is_alone;   // of a process alone: not of its regions, and no baseline
} kinds[] = {
    {OPTION_MAX_PEAK, "max-peak", MEASURE_PEAK, false, false},
    {OPTION_MAX_EXIT, "max-exit", MEASURE_EXIT, false, false},
    {OPTION_MAX_CALLS, "max-calls", MEASURE_CALLS, false, false},
    {OPTION_MAX_ALLOCATED, "max-allocated", MEASURE_ALLOCATED, false, false},
    {OPTION_MAX_TEMPORARY, "max-temporary", MEASURE_TEMPORARY, true, false},
    {OPTION_MAX_OVERRUNS, "max-overruns", MEASURE_OVERRUNS, false, true},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static bool add(struct budgets *budgets, const struct budget *budget, struct error *error) {
    struct budget *slot = array_push(&budgets->list);
    if (!slot) return error_set(error, "no memory for budgets");
    *slot = *budget;
    return true;
}

// "1e6", "1500000"; the whole text has to be the number.
static bool parse_count(const char *text, int64_t *count) {
    const double most = 9e18;
    char *end;
    double value = strtod(text, &end);
    if (!isdigit((unsigned char)*text) || *end || value > most) return false;
    *count = (int64_t)value;
    return true;
}

bool budgets_parse_share(const char *text, double *share) {
    const double most = 1e6;
    char *end;
    *share = strtod(text, &end) / percent;
    bool is_right = isdigit((unsigned char)*text) && *share <= most;
    end += strspn(end, " ");
    return is_right && (!*end || !strcmp(end, "%"));
}

static bool parse_limit(const struct kind *kind, const char *text, struct budget *budget) {
    uint64_t bytes;
    bool is_share = kind->has_share && strchr(text, '%');
    budget->share = -1;
    if (is_share) return budgets_parse_share(text, &budget->share);
    if (!measure_about(kind->measure)->is_bytes) return parse_count(text, &budget->limit);
    if (units_size_parse(text, &bytes) && bytes <= INT64_MAX) {
        budget->limit = (int64_t)bytes;
        return true;
    }
    return parse_count(text, &budget->limit);
}

static const char *example_of(const struct kind *kind) {
    if (kind->has_share) return "a share of all calls such as 40%, or a number";
    return measure_about(kind->measure)->is_bytes ? "a size such as 200MiB"
                                                  : "a number such as 1e6";
}

// A baseline is a budget for each measure.
static bool add_baseline(struct budgets *budgets, const char *pattern, const char *baseline,
                         double tolerance, struct error *error) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].has_share || kinds[i].is_alone) continue;  // limits of their own kind
        struct budget budget = {
            .measure = kinds[i].measure, .baseline = baseline, .tolerance = tolerance, .share = -1};
        snprintf(budget.pattern, sizeof budget.pattern, "%s", pattern);
        if (!add(budgets, &budget, error)) return false;
    }
    return true;
}

bool budgets_read_options(const struct command_args *args, struct budgets *budgets,
                          struct error *error) {
    const char *baseline =
        args_has(args, OPTION_GONE) ? NULL : args_text(args, OPTION_BASELINE, NULL);
    const char *tolerance = args_text(args, OPTION_TOLERANCE, NULL);
    double share = 0;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct budget budget = {.pattern = "*", .measure = kinds[i].measure};
        const char *text = args_text(args, kinds[i].option, NULL);
        if (!text) continue;
        if (!parse_limit(&kinds[i], text, &budget))
            return error_set(error, "check: --%s needs %s, not \"%s\"", kinds[i].key,
                             example_of(&kinds[i]), text);
        if (!add(budgets, &budget, error)) return false;
    }
    if (tolerance && !budgets_parse_share(tolerance, &share))
        return error_set(error, "check: --tolerance needs a share such as 2%%, not \"%s\"",
                         tolerance);
    if (tolerance && !baseline) return error_set(error, "check: --tolerance is for --baseline");
    return !baseline || add_baseline(budgets, "*", baseline, share, error);
}

// A table is for a program, "region:NAME" for a region that programs name.
static void set_pattern(struct budget *budget, const char *table) {
    size_t prefix = strlen(BUDGET_REGION);
    budget->is_region = !strncmp(table, BUDGET_REGION, prefix);
    snprintf(budget->pattern, sizeof budget->pattern, "%s",
             budget->is_region ? table + prefix
             : *table          ? table
                               : "*");
}

// What a table has said so far of its baseline.
struct table {
    const struct toml_entry *baseline;
    double tolerance;
};

static bool read_entry(struct budgets *budgets, const char *path, const struct toml_entry *entry,
                       struct table *table, struct error *error) {
    struct budget budget = {0};
    set_pattern(&budget, entry->table);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(entry->key, kinds[i].key) != 0) continue;
        budget.measure = kinds[i].measure;
        if (kinds[i].is_alone && budget.is_region) break;
        if (parse_limit(&kinds[i], entry->text, &budget)) return add(budgets, &budget, error);
        return error_set(error, "%s:%u: %s needs %s, not \"%s\"", path, entry->line, entry->key,
                         example_of(&kinds[i]), entry->text);
    }
    if (budget.is_region)
        return error_set(error, "%s:%u: a region has limits of its own, and no %s", path,
                         entry->line, entry->key);
    if (!strcmp(entry->key, "baseline") && entry->is_text) {
        table->baseline = entry;
        return true;
    }
    if (!strcmp(entry->key, "tolerance"))
        return budgets_parse_share(entry->text, &table->tolerance) ||
               error_set(error, "%s:%u: tolerance needs a share such as \"2%%\", not \"%s\"", path,
                         entry->line, entry->text);
    return error_set(
        error,
        "%s:%u: there is no budget \"%s\", but max-peak, max-exit, max-calls, "
        "max-allocated, max-temporary, max-overruns, baseline (a file's name) and tolerance",
        path, entry->line, entry->key);
}

static bool read_entries(struct budgets *budgets, const char *path, struct error *error) {
    const struct toml_entry *entries = budgets->toml.entries.items;
    size_t count = budgets->toml.entries.count;
    struct table table = {0};
    for (size_t i = 0; i < count; i++) {
        if (strlen(entries[i].table) >= RUN_TEXT_MAX)
            return error_set(error, "%s:%u: the name is too long", path, entries[i].line);
        if (*entries[i].key && !read_entry(budgets, path, &entries[i], &table, error)) return false;
        bool is_last = i + 1 == count || strcmp(entries[i + 1].table, entries[i].table) != 0;
        if (!is_last) continue;
        const char *pattern = *entries[i].table ? entries[i].table : "*";
        if (table.baseline &&
            !add_baseline(budgets, pattern, table.baseline->text, table.tolerance, error))
            return false;
        table = (struct table){0};
    }
    return true;
}

bool budgets_read_file(const char *path, struct budgets *budgets, struct error *error) {
    FILE *file = fopen(path, "re");
    if (!file) return error_set(error, "%s: %s", path, strerror(errno));
    bool is_ok = toml_read(file, path, &budgets->toml, error) && read_entries(budgets, path, error);
    fclose(file);
    if (is_ok && !budgets->list.count) is_ok = error_set(error, "%s: no budget in it", path);
    return is_ok;
}

void budgets_free(struct budgets *budgets) {
    array_free(&budgets->list);
    toml_free(&budgets->toml);
}
