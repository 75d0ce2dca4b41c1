// SPDX-License-Identifier: Apache-2.0
// Budgets against what was recorded. The peak of a threaded process is known within an error, and
// what samples say within their 95 % interval: a budget fails when it is exceeded by more, so that
// the same program gets the same results each time.
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/check/budgets.h"
#include "tool/check/offenders.h"
#include "tool/model/run.h"
#include "tool/model/scopes.h"
#include "tool/query/compared.h"
#include "tool/query/depth.h"
#include "tool/query/merged.h"
#include "tool/query/subject.h"
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
    bool has_no_frees;   // neither peak nor what is left is known
    bool has_bands;      // around its blocks
};

struct evaluation {
    const struct command_args *args;
    struct results *results;
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

static bool take_recording(const struct evaluation *evaluation, struct taken *taken,
                           struct error *error) {
    struct opened opened;
    struct suppressions suppressions = {0};
    bool is_ok = offenders_open(evaluation->args, taken->path, &opened, &suppressions, error);
    if (is_ok) {
        taken->values[MEASURE_PEAK] = opened.profile.peak.bytes;
        taken->peak_error = clamp(opened.profile.peak.error_bytes);
        taken->has_temporary =
            recording_has_temporary(&opened.recording) && !opened.profile.sampling.is_on;
        taken->has_no_frees = !profile_has_frees(&opened.profile);
        taken->has_bands = opened.profile.overruns.guard.band_bytes != 0;
        taken->values[MEASURE_OVERRUNS] = clamp(opened.profile.overruns.guard.overrun_blocks);
        taken->values[MEASURE_TEMPORARY] = clamp(opened.profile.totals.temporary);
        taken->suppressed = offenders_suppressed(&suppressions);
        taken->values[MEASURE_EXIT] = figures_add(opened.profile.exit_bytes, -taken->suppressed);
        opened_close(&opened);
    }
    suppressions_free(&suppressions);
    return is_ok;
}

static bool take(struct evaluation *evaluation, const struct run_row *row, const char *path,
                 struct error *error) {
    struct taken *taken = array_push(&evaluation->list);
    if (!taken) return error_set(error, "no memory for the processes");
    *taken = (struct taken){.row = row};
    snprintf(taken->path, sizeof taken->path, "%s", path);
    take_figures(taken);
    if (*path && !take_recording(evaluation, taken, error)) return false;
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

static bool take_run(struct evaluation *evaluation, const struct budgets *budgets,
                     const char *directory, struct error *error) {
    if (!run_open(directory, &evaluation->run, error)) return false;
    for (size_t i = 0; i < evaluation->run.rows.count; i++) {
        const struct run_row *row = &evaluation->run.rows.items[i];
        char path[PATH_MAX] = "";
        if (!is_meant(budgets, row->name)) continue;
        if (*row->file) {
            int length = snprintf(path, sizeof path, "%s/%s", evaluation->run.directory, row->file);
            if (length >= (int)sizeof path) return error_set(error, "%s: path too long", row->file);
        }
        if (!take(evaluation, row, path, error)) return false;
    }
    return true;
}

static bool take_single(struct evaluation *evaluation, const char *path, struct error *error) {
    struct recording recording;
    if (!recording_open(path, &recording, error)) return false;
    run_row_of(&recording, &evaluation->own_row);
    recording_close(&recording);
    return take(evaluation, &evaluation->own_row, path, error);
}

// What is compared among processes: a value, or its share of their calls.
static double weight_of(const struct taken *taken, enum measure measure, bool is_share) {
    double value = (double)taken->values[measure], calls = (double)taken->values[MEASURE_CALLS];
    return !is_share ? value : calls > 0 ? value / calls : 0;
}

static const struct taken *find_worst(const struct evaluation *evaluation, const char *pattern,
                                      enum measure measure, bool is_share, size_t *count) {
    const struct taken *worst = NULL;
    *count = 0;
    for (size_t i = 0; i < evaluation->list.count; i++) {
        const struct taken *taken = &evaluation->list.items[i];
        if (fnmatch(pattern, taken->row->name, 0) != 0) continue;
        ++*count;
        if (!worst || weight_of(taken, measure, is_share) > weight_of(worst, measure, is_share))
            worst = taken;
    }
    return worst;
}

static struct measured measured_of(const struct taken *taken, enum measure measure) {
    bool is_bytes = measure_about(measure)->is_bytes;
    return (is_bytes ? measured_bytes : measured_blocks)(taken->values[measure],
                                                         &taken->estimates[measure]);
}

static bool is_above(const struct taken *taken, enum measure measure, int64_t limit) {
    int64_t least = measured_least(measured_of(taken, measure));
    int64_t error = measure == MEASURE_PEAK ? taken->peak_error : 0;
    return least > limit && least - limit > error;
}

static void name_subject(const struct taken *taken, const char *pattern, size_t count,
                         struct result *result) {
    text_escape(result->subject, sizeof result->subject, taken ? taken->row->name : pattern);
    if (!taken) return;
    int used = snprintf(result->process, sizeof result->process, "%" PRIu32, taken->row->pid);
    if (count > 1)
        snprintf(result->process + used, sizeof result->process - (size_t)used, ", of %zu", count);
}

static void describe(const struct taken *taken, enum measure measure, int64_t limit,
                     const char *more, struct result *result) {
    char value[GUILTY_VALUE_BYTES], most[GUILTY_VALUE_BYTES], suppressed[GUILTY_VALUE_BYTES];
    bool has_suppressed = measure == MEASURE_EXIT && taken->suppressed;
    struct measured measured = measured_of(taken, measure);
    snprintf(result->text, sizeof result->text, "%s%s%s%s%s%s%s%s",
             offenders_value(measure, measured_shown(measured), value),
             interval_amount(measured, measure_about(measure)->is_bytes, false).text,
             interval_samples(measured).text, result->holds ? " of " : ", more than ",
             offenders_value(measure, limit, most), more,
             has_suppressed ? ", not counting suppressed " : "",
             has_suppressed ? offenders_value(MEASURE_EXIT, taken->suppressed, suppressed) : "");
}

// "35 % of 363,831 calls, more than 30 %". Of what samples say, the share's interval is that of the
// value.
static void describe_share(const struct taken *taken, const struct budget *budget,
                           struct result *result) {
    const double percent = 100;
    int64_t calls = taken->values[MEASURE_CALLS];
    struct measured measured = measured_of(taken, budget->measure);
    char sure[GUILTY_VALUE_BYTES] = "";
    if (measured_interval(measured))
        snprintf(sure, sizeof sure, " \xc2\xb1 %s",
                 units_percent(measured_interval(measured), calls).text);
    snprintf(result->text, sizeof result->text, "%s%s of %s%s%s%.4g %%",
             units_percent(taken->values[budget->measure], calls).text, sure,
             units_counted(calls, "call", "calls").text, interval_samples(measured).text,
             result->holds ? ", at most " : ", more than ", budget->share * percent);
}

static bool evaluate_limit(const struct evaluation *evaluation, const struct budget *budget,
                           struct error *error) {
    size_t count;
    enum measure measure = budget->measure;
    bool is_share = budget->share >= 0;
    const struct taken *worst = find_worst(evaluation, budget->pattern, measure, is_share, &count);
    struct result result = {.budget = measure_name(measure),
                            .text = "no process of this name was recorded"};
    name_subject(worst, budget->pattern, count, &result);
    if (worst && measure == MEASURE_TEMPORARY && !worst->has_temporary) {
        snprintf(result.text, sizeof result.text, "its recording does not count them");
        worst = NULL;
    } else if (worst && worst->has_no_frees && measure != MEASURE_ALLOCATED &&
               measure != MEASURE_CALLS) {
        snprintf(result.text, sizeof result.text,
                 "it was imported from a file that does not say what was freed");
        worst = NULL;
    } else if (worst && measure == MEASURE_OVERRUNS && !worst->has_bands) {
        snprintf(result.text, sizeof result.text,
                 "its blocks had no guard bands (cairn run --guard)");
        worst = NULL;
    } else if (worst && is_share) {
        result.holds = weight_of(worst, measure, true) <= budget->share;
        describe_share(worst, budget, &result);
    } else if (worst) {
        result.holds = !is_above(worst, measure, budget->limit);
        describe(worst, measure, budget->limit, "", &result);
    }
    if (worst) {
        if (!result.holds &&
            !offenders_find(evaluation->args, worst->path, NULL, measure, &result, error))
            return false;
    }
    return results_add(evaluation->results, &result) || error_set(error, "no memory for results");
}

// The most of a measure in a region whose name fits, over the processes; -1: there is none.
static bool find_region(const struct evaluation *evaluation, const struct budget *budget,
                        const struct taken **worst, struct measured *most, char *path,
                        struct error *error) {
    *most = (struct measured){.value = -1};
    for (size_t i = 0; i < evaluation->list.count; i++) {
        const struct taken *taken = &evaluation->list.items[i];
        struct opened opened;
        struct scopes scopes;
        if (!*taken->path) continue;
        if (!opened_open(taken->path, &opened, error)) return false;
        bool is_read = scopes_read(&scopes, &opened.recording);
        struct stack *values = is_read ? scopes_sum(&scopes, &opened.profile, true) : NULL;
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

static bool evaluate_region(const struct evaluation *evaluation, const struct budget *budget,
                            struct error *error) {
    const struct taken *worst = NULL;
    char path[REGION_BYTES], name[REGION_BYTES];
    struct measured most;
    struct result result = {.budget = measure_name(budget->measure),
                            .text = "no region of this name was recorded"};
    snprintf(path, sizeof path, "%s", budget->pattern);
    if (!find_region(evaluation, budget, &worst, &most, path, error)) return false;
    text_escape(name, sizeof name, path);
    snprintf(result.subject, sizeof result.subject, "region %s", name);
    if (worst) {
        struct taken part = *worst;  // a region's values are exact as its cells are
        part.values[budget->measure] = most.value;
        part.estimates[budget->measure] = most.estimate;
        part.suppressed = part.peak_error = 0;
        int64_t calls = part.values[MEASURE_CALLS], interval = measured_interval(most);
        bool is_share = budget->share >= 0;
        double most_of_calls = budget->share * (double)calls + (double)interval;
        result.holds = is_share ? (double)most.value <= most_of_calls
                                : !is_above(&part, budget->measure, budget->limit);
        name_subject(worst, name, 1, &result);
        snprintf(result.subject, sizeof result.subject, "region %s", name);
        if (is_share)
            describe_share(&part, budget, &result);
        else
            describe(&part, budget->measure, budget->limit, "", &result);
        if (!result.holds &&
            !offenders_find(evaluation->args, worst->path, path, budget->measure, &result, error))
            return false;
    }
    return results_add(evaluation->results, &result) || error_set(error, "no memory for results");
}

static bool open_subject(struct evaluation *evaluation, const struct budgets *budgets,
                         const char *path, const char *process, struct error *error) {
    struct subject subject;
    if (!subject_find(path, &subject, error)) return false;
    if (process && !subject_enter(&subject, process, error)) return false;
    return subject.is_run ? take_run(evaluation, budgets, subject.path, error)
                          : take_single(evaluation, subject.path, error);
}

static void evaluate_close(struct evaluation *evaluation) {
    run_close(&evaluation->run);
    array_free(&evaluation->list);
}

// Recordings that a budget is compared with.
struct baselines {
    struct evaluation list[COMPARED_MAX];
    size_t count;
};

// What the baselines took of a measure, in the worst of their processes of this name.
struct range {
    int64_t low, high;
    const struct taken *highest;  // NULL: none of them has such a process
};

static struct range range_of(const struct baselines *baselines, const char *name,
                             enum measure measure) {
    struct range range = {0};
    for (size_t i = 0; i < baselines->count; i++) {
        const struct evaluation *old = &baselines->list[i];
        size_t count;
        const struct taken *before = find_worst(old, name, measure, false, &count);
        // another build may have another name: a single process is compared with a single one
        if (!before && old->list.count == 1) before = &old->list.items[0];
        if (!before) continue;
        int64_t value = before->values[measure];
        if (!range.highest || value < range.low) range.low = value;
        if (!range.highest || value > range.high) {
            range.high = value;
            range.highest = before;
        }
    }
    return range;
}

// The highest of the baselines and the tolerance; with several at least as much above the highest
// as that is above the lowest, which a program that varies needs to be judged alike each time.
static int64_t limit_of(const struct range *range, double tolerance) {
    double high = (double)range->high, most = high * (1 + tolerance);
    double spread = high + (high - (double)range->low);
    if (spread > most) most = spread;
    return most < (double)INT64_MAX ? (int64_t)most : INT64_MAX;
}

static bool evaluate_against(const struct evaluation *evaluation, const struct baselines *baselines,
                             const struct budget *budget, struct error *error) {
    enum measure measure = budget->measure;
    size_t count;
    const struct taken *worst = find_worst(evaluation, budget->pattern, measure, false, &count);
    struct result result = {.budget = measure_name(measure),
                            .text = "no process of this name was recorded"};
    name_subject(worst, budget->pattern, count, &result);
    struct range range = {0};
    if (worst) range = range_of(baselines, worst->row->name, measure);
    const struct taken *before = range.highest;
    if (worst && !before)
        snprintf(result.text, sizeof result.text, "the baseline has no process of this name");
    if (before) {
        int64_t limit = limit_of(&range, budget->tolerance);
        struct taken both = *worst;  // both are known within their errors
        both.peak_error = figures_add(worst->peak_error, before->peak_error);
        estimate_add(&both.estimates[measure], &before->estimates[measure]);
        estimate_forget_limits(&both.estimates[measure]);
        result.holds = !is_above(&both, measure, limit);
        describe(worst, measure, limit,
                 baselines->count > 1 ? " that the baselines allow" : " that the baseline allows",
                 &result);
        if (!result.holds && !offenders_find_grown(evaluation->args, before->path, worst->path,
                                                   measure, &result, error))
            return false;
    }
    return results_add(evaluation->results, &result) || error_set(error, "no memory for results");
}

static bool evaluate_baseline(const struct evaluation *evaluation, const struct budgets *budgets,
                              const struct budget *budget, struct error *error) {
    struct compared_list names;
    struct baselines *old = calloc(1, sizeof *old);
    if (!old) return error_set(error, "no memory for the baselines");
    bool is_ok = compared_list_read(&names, budget->baseline, error);
    if (!is_ok) {
        free(old);
        return false;
    }
    struct depth depth = {0};
    for (size_t i = 0; i < names.count; i++) depth_add_word(&depth, names.names[i]);
    for (size_t i = 0; i < evaluation->list.count; i++)
        if (*evaluation->list.items[i].path) depth_add_path(&depth, evaluation->list.items[i].path);
    depth_use(&depth);
    for (size_t i = 0; i < names.count && is_ok; i++) {
        struct evaluation *judged = &old->list[old->count++];
        judged->args = evaluation->args;
        is_ok = open_subject(judged, budgets, names.names[i], NULL, error);
    }
    is_ok = is_ok && evaluate_against(evaluation, old, budget, error);
    for (size_t i = 0; i < old->count; i++) evaluate_close(&old->list[i]);
    free(old);
    compared_list_free(&names);
    return is_ok;
}

bool budgets_evaluate(const struct budgets *budgets, const char *path, const char *process,
                      const struct command_args *args, struct results *results,
                      struct error *error) {
    struct evaluation evaluation = {.args = args, .results = results};
    bool is_ok = open_subject(&evaluation, budgets, path, process, error);
    for (size_t i = 0; i < budgets->list.count && is_ok; i++) {
        const struct budget *budget = &budgets->list.items[i];
        if (budget->is_region)
            is_ok = evaluate_region(&evaluation, budget, error);
        else
            is_ok = budget->baseline ? evaluate_baseline(&evaluation, budgets, budget, error)
                                     : evaluate_limit(&evaluation, budget, error);
    }
    evaluate_close(&evaluation);
    return is_ok;
}
