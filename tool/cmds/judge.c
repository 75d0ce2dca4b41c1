// SPDX-License-Identifier: Apache-2.0
// Budgets against what was recorded. The peak of a threaded process is known within an error, and
// what samples say within their 95 % interval: a budget fails when it is exceeded by more, so that
// the same program is judged alike each time.
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/budgets.h"
#include "tool/cmds/guilty.h"
#include "tool/cmds/opened.h"
#include "tool/cmds/subject.h"
#include "tool/model/run.h"
#include "tool/model/scopes.h"
#include "tool/render/interval.h"

enum { REGION_BYTES = 96 };

// What one process took.
struct taken {
    const struct run_row *row;
    char path[PATH_MAX];  // of its recording; "": none was kept
    int64_t values[MEASURE_COUNT];
    struct estimate estimates[MEASURE_COUNT];  // of samples, how sure they are
    int64_t peak_error, suppressed;
    bool has_temporary;  // they were counted
    bool has_bands;      // around its blocks
};

struct judge {
    const struct command_args *args;
    struct verdicts *verdicts;
    struct run run;
    struct run_row own_row;  // of a subject that is a single recording
    ARRAY(struct taken) list;
};

static int64_t clamp(uint64_t value) {
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

static void take_figures(struct taken *taken) {
    const struct figures *figures = &taken->row->figures;
    taken->values[MEASURE_PEAK] = clamp(figures->peak_bytes);
    taken->values[MEASURE_EXIT] = figures->exit_bytes;
    taken->values[MEASURE_ALLOCATED] = clamp(figures->allocated_bytes);
    taken->values[MEASURE_CALLS] = clamp(figures->allocations);
    taken->estimates[MEASURE_PEAK] = figures->peak_estimate;
    taken->estimates[MEASURE_EXIT] = figures->exit_estimate;
}

static bool take_recording(const struct judge *judge, struct taken *taken, struct error *error) {
    struct opened opened;
    struct suppressions suppressions = {0};
    bool is_ok = guilty_open(judge->args, taken->path, &opened, &suppressions, error);
    if (is_ok) {
        taken->values[MEASURE_PEAK] = opened.profile.peak.bytes;
        taken->peak_error = clamp(opened.profile.peak.error_bytes);
        taken->has_temporary = recording_count(&opened.recording, CAIRN_SECTION_CELLS_USE) != 0 &&
                               !opened.profile.sampling.is_on;
        taken->has_bands = opened.profile.overruns.guard.band_bytes != 0;
        taken->values[MEASURE_DAMAGED] = clamp(opened.profile.overruns.guard.damaged_blocks);
        taken->values[MEASURE_TEMPORARY] = clamp(opened.profile.totals.temporary);
        for (size_t i = 0; i < suppressions.rules.count; i++)
            taken->suppressed = figures_add(taken->suppressed, suppressions.rules.items[i].bytes);
        taken->values[MEASURE_EXIT] = figures_add(opened.profile.exit_bytes, -taken->suppressed);
        opened_close(&opened);
    }
    suppressions_free(&suppressions);
    return is_ok;
}

static bool take(struct judge *judge, const struct run_row *row, const char *path,
                 struct error *error) {
    struct taken *taken = array_push(&judge->list);
    if (!taken) return error_set(error, "no memory for the processes");
    *taken = (struct taken){.row = row};
    snprintf(taken->path, sizeof taken->path, "%s", path);
    take_figures(taken);
    if (*path && !take_recording(judge, taken, error)) return false;
    // what a program held when it became another one was not left by it
    if (row->stop_reason == CAIRN_STOP_EXEC) taken->values[MEASURE_EXIT] = 0;
    return true;
}

static bool is_meant(const struct budgets *budgets, const char *name) {
    for (size_t i = 0; i < budgets->list.count; i++)
        if (budgets->list.items[i].is_region || !fnmatch(budgets->list.items[i].pattern, name, 0))
            return true;
    return false;
}

static bool take_run(struct judge *judge, const struct budgets *budgets, const char *directory,
                     struct error *error) {
    if (!run_open(directory, &judge->run, error)) return false;
    for (size_t i = 0; i < judge->run.rows.count; i++) {
        const struct run_row *row = &judge->run.rows.items[i];
        char path[PATH_MAX] = "";
        if (!is_meant(budgets, row->name)) continue;
        if (*row->file) {
            int length = snprintf(path, sizeof path, "%s/%s", judge->run.directory, row->file);
            if (length >= (int)sizeof path) return error_set(error, "%s: path too long", row->file);
        }
        if (!take(judge, row, path, error)) return false;
    }
    return true;
}

static bool take_single(struct judge *judge, const char *path, struct error *error) {
    struct recording recording;
    if (!recording_open(path, &recording, error)) return false;
    run_row_of(&recording, &judge->own_row);
    recording_close(&recording);
    return take(judge, &judge->own_row, path, error);
}

// What is compared among processes: a value, or its share of their calls.
static double weight_of(const struct taken *taken, enum measure measure, bool is_share) {
    double value = (double)taken->values[measure], calls = (double)taken->values[MEASURE_CALLS];
    return !is_share ? value : calls > 0 ? value / calls : 0;
}

static const struct taken *find_worst(const struct judge *judge, const char *pattern,
                                      enum measure measure, bool is_share, size_t *count) {
    const struct taken *worst = NULL;
    *count = 0;
    for (size_t i = 0; i < judge->list.count; i++) {
        const struct taken *taken = &judge->list.items[i];
        if (fnmatch(pattern, taken->row->name, 0) != 0) continue;
        ++*count;
        if (!worst || weight_of(taken, measure, is_share) > weight_of(worst, measure, is_share))
            worst = taken;
    }
    return worst;
}

static struct measured measured_of(const struct taken *taken, enum measure measure) {
    const struct estimate *estimate = &taken->estimates[measure];
    bool is_bytes = measure_about(measure)->is_bytes;
    return (struct measured){.value = taken->values[measure],
                             .samples = estimate->samples,
                             .variance =
                                 is_bytes ? estimate->bytes_variance : estimate->blocks_variance};
}

static bool is_above(const struct taken *taken, enum measure measure, int64_t limit) {
    int64_t value = taken->values[measure];
    int64_t error = measure == MEASURE_PEAK ? taken->peak_error : 0;
    error = figures_add(error, measured_interval(measured_of(taken, measure)));
    return value > limit && value - limit > error;
}

static void name_subject(const struct taken *taken, const char *pattern, size_t count,
                         struct verdict *verdict) {
    text_escape(verdict->subject, sizeof verdict->subject, taken ? taken->row->name : pattern);
    if (!taken) return;
    int used = snprintf(verdict->process, sizeof verdict->process, "%" PRIu32, taken->row->pid);
    if (count > 1)
        snprintf(verdict->process + used, sizeof verdict->process - (size_t)used, ", of %zu",
                 count);
}

static void describe(const struct taken *taken, enum measure measure, int64_t limit,
                     const char *more, struct verdict *verdict) {
    char value[GUILTY_VALUE_BYTES], most[GUILTY_VALUE_BYTES], suppressed[GUILTY_VALUE_BYTES];
    bool has_suppressed = measure == MEASURE_EXIT && taken->suppressed;
    struct measured measured = measured_of(taken, measure);
    snprintf(verdict->text, sizeof verdict->text, "%s%s%s%s%s%s%s%s",
             guilty_value(measure, measured.value, value),
             interval_text(measured, measure_about(measure)->is_bytes, false).text,
             interval_samples(measured).text, verdict->holds ? " of " : ", more than ",
             guilty_value(measure, limit, most), more,
             has_suppressed ? ", not counting suppressed " : "",
             has_suppressed ? guilty_value(MEASURE_EXIT, taken->suppressed, suppressed) : "");
}

// "35 % of 363,831 calls, more than 30 %". Of what samples say, the share's interval is that of the
// value.
static void describe_share(const struct taken *taken, const struct budget *budget,
                           struct verdict *verdict) {
    const double percent = 100;
    int64_t calls = taken->values[MEASURE_CALLS];
    struct measured measured = measured_of(taken, budget->measure);
    char sure[GUILTY_VALUE_BYTES] = "";
    if (measured_interval(measured))
        snprintf(sure, sizeof sure, " \xc2\xb1 %s",
                 units_percent(measured_interval(measured), calls).text);
    snprintf(verdict->text, sizeof verdict->text, "%s%s of %s%s%s%.4g %%",
             units_percent(taken->values[budget->measure], calls).text, sure,
             units_counted(calls, "call", "calls").text, interval_samples(measured).text,
             verdict->holds ? ", at most " : ", more than ", budget->share * percent);
}

static bool judge_limit(const struct judge *judge, const struct budget *budget,
                        struct error *error) {
    size_t count;
    enum measure measure = budget->measure;
    bool is_share = budget->share >= 0;
    const struct taken *worst = find_worst(judge, budget->pattern, measure, is_share, &count);
    struct verdict verdict = {.budget = measure_name(measure),
                              .text = "no process of this name was recorded"};
    name_subject(worst, budget->pattern, count, &verdict);
    if (worst && measure == MEASURE_TEMPORARY && !worst->has_temporary) {
        snprintf(verdict.text, sizeof verdict.text, "its recording does not count them");
        worst = NULL;
    } else if (worst && measure == MEASURE_DAMAGED && !worst->has_bands) {
        snprintf(verdict.text, sizeof verdict.text,
                 "its blocks had no guard bands (cairn run --guard)");
        worst = NULL;
    } else if (worst && is_share) {
        verdict.holds = weight_of(worst, measure, true) <= budget->share;
        describe_share(worst, budget, &verdict);
    } else if (worst) {
        verdict.holds = !is_above(worst, measure, budget->limit);
        describe(worst, measure, budget->limit, "", &verdict);
    }
    if (worst) {
        if (!verdict.holds &&
            !guilty_find(judge->args, worst->path, NULL, measure, &verdict.guilty, error))
            return false;
    }
    return verdicts_add(judge->verdicts, &verdict) || error_set(error, "no memory for verdicts");
}

// The most of a measure in a region whose name fits, over the processes; -1: there is none.
static bool find_region(const struct judge *judge, const struct budget *budget,
                        const struct taken **worst, struct measured *most, char *path,
                        struct error *error) {
    *most = (struct measured){.value = -1};
    for (size_t i = 0; i < judge->list.count; i++) {
        const struct taken *taken = &judge->list.items[i];
        struct opened opened;
        struct scopes scopes;
        if (!*taken->path) continue;
        if (!opened_open(taken->path, &opened, error)) return false;
        bool is_read = scopes_read(&scopes, &opened.recording);
        struct stack *values = is_read ? calloc(scopes.count + 1, sizeof *values) : NULL;
        if (values) scopes_sum(&scopes, &opened.profile, true, values);
        for (size_t at = 0; values && at < scopes.count; at++) {
            const struct scope *scope = &scopes.list[at];
            struct measured measured = measure_stack(budget->measure, &values[at]);
            bool is_meant =
                scope->kind == CAIRN_SCOPE_REGION && !fnmatch(budget->pattern, scope->path, 0);
            if (!is_meant || measured.value <= most->value) continue;
            *most = measured;
            *worst = taken;
            snprintf(path, REGION_BYTES, "%s", scope->path);
        }
        free(values);
        if (is_read) scopes_free(&scopes);
        opened_close(&opened);
        if (!values) return error_set(error, "no memory for the regions");
    }
    return true;
}

static bool judge_region(const struct judge *judge, const struct budget *budget,
                         struct error *error) {
    const struct taken *worst = NULL;
    char path[REGION_BYTES], name[REGION_BYTES];
    struct measured most;
    struct verdict verdict = {.budget = measure_name(budget->measure),
                              .text = "no region of this name was recorded"};
    snprintf(path, sizeof path, "%s", budget->pattern);
    if (!find_region(judge, budget, &worst, &most, path, error)) return false;
    text_escape(name, sizeof name, path);
    snprintf(verdict.subject, sizeof verdict.subject, "region %s", name);
    if (worst) {
        struct taken part = *worst;  // a region's values are exact as its cells are
        part.values[budget->measure] = most.value;
        part.estimates[budget->measure] =
            (struct estimate){most.samples, most.variance, most.variance};
        part.suppressed = part.peak_error = 0;
        int64_t calls = part.values[MEASURE_CALLS], interval = measured_interval(most);
        bool is_share = budget->share >= 0;
        double most_of_calls = budget->share * (double)calls + (double)interval;
        verdict.holds = is_share ? (double)most.value <= most_of_calls
                                 : !is_above(&part, budget->measure, budget->limit);
        name_subject(worst, name, 1, &verdict);
        snprintf(verdict.subject, sizeof verdict.subject, "region %s", name);
        if (is_share)
            describe_share(&part, budget, &verdict);
        else
            describe(&part, budget->measure, budget->limit, "", &verdict);
        if (!verdict.holds &&
            !guilty_find(judge->args, worst->path, path, budget->measure, &verdict.guilty, error))
            return false;
    }
    return verdicts_add(judge->verdicts, &verdict) || error_set(error, "no memory for verdicts");
}

static bool open_subject(struct judge *judge, const struct budgets *budgets, const char *path,
                         const char *process, struct error *error) {
    struct subject subject;
    if (!subject_find(path, &subject, error)) return false;
    if (process && !subject_enter(&subject, process, error)) return false;
    return subject.is_run ? take_run(judge, budgets, subject.path, error)
                          : take_single(judge, subject.path, error);
}

static void judge_close(struct judge *judge) {
    run_close(&judge->run);
    array_free(&judge->list);
}

static bool judge_against(const struct judge *judge, const struct judge *old,
                          const struct budget *budget, struct error *error) {
    enum measure measure = budget->measure;
    size_t count;
    const struct taken *worst = find_worst(judge, budget->pattern, measure, false, &count);
    struct verdict verdict = {.budget = measure_name(measure),
                              .text = "no process of this name was recorded"};
    name_subject(worst, budget->pattern, count, &verdict);
    const struct taken *before =
        worst ? find_worst(old, worst->row->name, measure, false, &count) : NULL;
    // another build may have another name: a single process is compared with a single one
    if (worst && !before && old->list.count == 1) before = &old->list.items[0];
    if (worst && !before)
        snprintf(verdict.text, sizeof verdict.text, "the baseline has no process of this name");
    if (before) {
        double most = (double)before->values[measure] * (1 + budget->tolerance);
        int64_t limit = most < (double)INT64_MAX ? (int64_t)most : INT64_MAX;
        struct taken both = *worst;  // both are known within their errors
        both.peak_error = figures_add(worst->peak_error, before->peak_error);
        estimate_add(&both.estimates[measure], &before->estimates[measure]);
        verdict.holds = !is_above(&both, measure, limit);
        describe(worst, measure, limit, " that the baseline allows", &verdict);
        if (!verdict.holds && !guilty_find_grown(judge->args, before->path, worst->path, measure,
                                                 &verdict.guilty, error))
            return false;
    }
    return verdicts_add(judge->verdicts, &verdict) || error_set(error, "no memory for verdicts");
}

static bool judge_baseline(const struct judge *judge, const struct budgets *budgets,
                           const struct budget *budget, struct error *error) {
    struct judge old = {.args = judge->args};
    bool is_ok = open_subject(&old, budgets, budget->baseline, NULL, error) &&
                 judge_against(judge, &old, budget, error);
    judge_close(&old);
    return is_ok;
}

bool budgets_judge(const struct budgets *budgets, const char *path, const char *process,
                   const struct command_args *args, struct verdicts *verdicts,
                   struct error *error) {
    struct judge judge = {.args = args, .verdicts = verdicts};
    bool is_ok = open_subject(&judge, budgets, path, process, error);
    for (size_t i = 0; i < budgets->list.count && is_ok; i++) {
        const struct budget *budget = &budgets->list.items[i];
        if (budget->is_region)
            is_ok = judge_region(&judge, budget, error);
        else
            is_ok = budget->baseline ? judge_baseline(&judge, budgets, budget, error)
                                     : judge_limit(&judge, budget, error);
    }
    judge_close(&judge);
    return is_ok;
}
