// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/cgroup_answer.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/core_overview.h"
#include "tool/cmds/core_owners.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/core_types.h"
#include "tool/cmds/core_unreachable.h"
#include "tool/cmds/core_waste.h"
#include "tool/cmds/report_rankings.h"
#include "tool/cmds/report_run.h"
#include "tool/cmds/report_summary.h"
#include "tool/proc/examine.h"
#include "tool/query/heap_report.h"
#include "tool/query/heap_views.h"
#include "tool/query/kept_looks.h"
#include "tool/query/leaks.h"
#include "tool/query/live.h"
#include "tool/query/log_ages.h"
#include "tool/query/merged.h"
#include "tool/query/name_hints.h"
#include "tool/query/subject.h"
#include "tool/query/views.h"
#include "tool/render/interval.h"
#include "tool/render/reachability.h"
#include "tool/render/report_json.h"
#include "tool/render/stacks.h"
#include "tool/render/trust.h"
#include "tool/watch/rss.h"

enum { TEXT_BYTES = 1024 };

struct report {
    struct request request;
    struct leaks leaks;
    struct filter *filter;
    bool has_summary;    // above the view
    bool has_stacks;     // below the summary
    bool is_summed_up;   // the summary was printed
    bool is_all;         // of a run: all processes, though one of them is the largest
    const char *of_run;  // the line of context says so; NULL: of no run
};

// "of this, --focus 'x': 1.2 MiB at the peak (9.1 %), 5 of 11 stacks".
static void print_filter(FILE *out, const struct report *report, const struct profile *profile) {
    const struct view_options *options = &report->request.options;
    const struct measure_row *about = measure_about(options->by);
    struct terminal terminal = terminal_of(out);
    struct measured sum = {0};
    char text[TEXT_BYTES];
    if (!filter_is_any(report->filter)) return;
    for (size_t i = 0; i < profile->stack_count; i++)
        measured_add(&sum, measure_stack(options->by, &profile->stacks[i]));
    filter_text(report->filter, text, sizeof text);
    struct unit_text value = about->is_bytes
                                 ? units_size_as(measured_shown(sum), options->is_plain_number)
                                 : units_count(measured_shown(sum));
    terminal_print(&terminal, STYLE_STRONG, "%s", text);
    fprintf(out, ": %s%s %s%s (%s), %s of %s\n", value.text,
            interval_amount(sum, about->is_bytes, options->is_plain_number).text, about->snapshot,
            interval_samples(sum).text,
            units_percent(sum.value, measure_total(options->by, profile).value).text,
            units_count((int64_t)profile->stack_count).text,
            units_counted((int64_t)profile->built_stack_count, "stack", "stacks").text);
}

// The view as rows, beside which stands what part of the recording they are of.
static bool print_rows(FILE *out, const struct report *report, struct opened *opened,
                       const struct frame_names *names, struct error *error) {
    const struct leaks *leaks = report->request.leaks;
    char suppressed[TEXT_BYTES] = "", filter[TEXT_BYTES] = "", text[TEXT_BYTES - 16];
    if (filter_is_any(report->filter)) {
        filter_text(report->filter, text, sizeof text);
        snprintf(filter, sizeof filter, "filtered: %s", text);
    }
    if (leaks) leaks_say(leaks, &report->request.options, suppressed, sizeof suppressed);
    const struct view_subject subject = {.opened = opened,
                                         .names = names,
                                         .request = &report->request,
                                         .notes = {opened->at_text, filter, suppressed}};
    return view_print(out, &subject, error);
}

static bool print_view(FILE *out, const struct report *report, struct opened *opened,
                       const struct frame_names *names, struct error *error) {
    const struct leaks *leaks = report->request.leaks;
    struct terminal terminal = terminal_of(out);
    const struct view_subject subject = {
        .opened = opened, .names = names, .request = &report->request};
    if (report->request.form) return print_rows(out, report, opened, names, error);
    print_filter(out, report, &opened->profile);
    if (report->request.is_unreachable) reachability_print_line(&terminal, &opened->profile);
    if (!view_print(out, &subject, error)) return false;
    if (leaks) leaks_print(leaks, &terminal, &report->request.options);
    name_hints_print(out, opened, report->is_summed_up);
    return true;
}

// Something is asked for, so that the summary would stand in its way.
static bool is_asked(const struct report *report) {
    const struct request *request = &report->request;
    return request->view || request->snapshot.kind || filter_is_any(report->filter);
}

static bool print_text(struct report *report, struct opened *opened, const char *path,
                       struct error *error) {
    // the list of places goes by its own length, --top is that of the view
    struct view_options summary = report->request.options;
    const struct frame_names *names;
    struct frame_names own_names;
    summary.top = SUMMARY_TOP_DEFAULT;
    bool is_empty = profile_is_empty(&opened->profile);
    bool has_list = !is_asked(report) && !is_empty;
    // all names first, so that the trust line knows of each
    if (!request_apply(&report->request, report->filter, opened, &names, &own_names, error))
        return false;
    if (report->request.form) return print_view(stdout, report, opened, names, error);
    if (!has_list && !is_empty && !report->has_summary) {
        report_context_of(stdout, opened, path, report->of_run, &summary);
        return print_view(stdout, report, opened, names, error);
    }
    if (has_list && !report_resolve_places(opened, summary.by, error)) return false;
    if (!report_summary_of(stdout, opened, path, has_list, names, &summary, error)) return false;
    if (is_empty || (has_list && !report->has_stacks)) return true;
    report->is_summed_up = true;
    fputc('\n', stdout);
    return print_view(stdout, report, opened, names, error);
}

// What can be claimed is of a whole process: of a part of its stacks it would be another sentence.
static bool has_claims(const struct request *request, const struct filter *filter,
                       const struct profile *profile) {
    return !filter_is_any(filter) && !request->snapshot.kind && !request->leaks &&
           !request->is_unreachable && !profile->heap && !profile->is_of_mappings &&
           !profile_is_sum(profile) && !profile_is_empty(profile);
}

// Puts the whole of a recording, or of one process of a run.
static bool put_json(struct json *json, const char *file, const struct request *request,
                     struct filter *filter, struct opened *opened, struct error *error) {
    const struct frame_names *names;
    struct frame_names own_names;
    struct findings findings;
    const bool has_any = has_claims(request, filter, &opened->profile);
    if (has_any && !report_find_findings(opened, &findings, error)) return false;
    if (!request_apply(request, filter, opened, &names, &own_names, error)) return false;
    if (has_any && !findings_settle(&findings, &opened->profile, names, error)) return false;
    bool is_ok = report_json_put(json, file, &opened->profile, names, has_any ? &findings : NULL,
                                 &request->options, error);
    if (has_any && opened_is_alive(opened))
        core_overview_put_go(json, (pid_t)opened->recording.header.pid);
    json_close(json);
    return is_ok;
}

static bool print_json(const struct report *report, struct opened *opened, struct error *error) {
    struct json json;
    json_start(&json, stdout);
    return put_json(&json, NULL, &report->request, report->filter, opened, error);
}

// What an event log tells more than its recording, where that is shown.
static bool read_log(const struct report *report, const struct subject *subject,
                     struct profile *profile, struct shape_log *log, struct error *error) {
    bool is_shown = report->request.is_json || view_has(report->request.view, VIEW_TAKES_LOG);
    if (!*subject->log || !is_shown) return true;
    profile->log = log;
    return log_ages_read(subject->log, profile, log, error);
}

// A view of what was in blocks when they were looked at.
static bool report_look(const struct report *report, struct opened *opened, const char *path,
                        struct error *error) {
    const struct request *request = &report->request;
    if (!kept_looks_check(&opened->recording, request, error)) return false;
    if (!request->form && !request->is_json)
        report_context_of(stdout, opened, path, report->of_run, &request->options);
    return kept_looks_print(stdout, &opened->profile, request, error);
}

static bool report_recording(const struct report *asked, const struct subject *subject,
                             struct error *error) {
    struct opened opened;
    struct report report = *asked;
    const struct narrowing narrowing = {&report.request, report.filter};
    struct shape_log log = {0};
    if (!opened_open(subject->path, &opened, error)) return false;
    // a process that goes on is looked at longer than is possible while it is recorded
    if (opened_is_alive(&opened))
        rss_look_now((pid_t)opened.recording.header.pid, &opened.recording);
    snprintf(opened.log, sizeof opened.log, "%s", subject->log);
    if (kept_looks_answer(&opened.recording, &report.request)) {
        bool is_printed = report_look(&report, &opened, subject->name, error);
        opened_close(&opened);
        return is_printed;
    }
    bool is_ok = kept_looks_check(&opened.recording, &report.request, error) &&
                 request_settle(&report.request, &opened.profile, error) &&
                 read_log(&report, subject, &opened.profile, &log, error) &&
                 request_narrow(&narrowing, &opened.profile, error);
    if (is_ok)
        is_ok = request_is_whole(&report.request)
                    ? print_json(&report, &opened, error)
                    : print_text(&report, &opened, subject->name, error);
    opened_close(&opened);
    log_ages_free(&log);
    return is_ok;
}

static enum view_run run_of(const struct request *request) {
    return request->view ? request->view->run : RUN_SUM;
}

// Views that several processes together have not are of the one with the highest peak.
static bool is_of_one(const struct report *report, const struct run *run) {
    return run_of(&report->request) == RUN_ONE && run->rows.count && *run->rows.items[0].file;
}

static bool print_of_all(const struct report *report, const struct run *run, struct error *error) {
    if (run_of(&report->request) == RUN_TIMELINES)
        return report_run_timeline(stdout, run, &report->request.options, error);
    return report_run_overruns(stdout, run, &report->request.options, error);
}

// A view of all processes of a run.
static bool print_sum(const struct report *report, const struct run *run, struct error *error) {
    const struct narrowing narrowing = {&report->request, report->filter};
    char *words[] = {(char *)run->directory, NULL};
    const struct opening opening = {
        .words = words, .count = 1, .narrow = request_narrow, .context = &narrowing};
    const struct frame_names *names;
    struct frame_names own_names;
    struct opened opened;
    struct unit_text count;
    char what[TEXT_BYTES];
    if (!merged_open(&opening, &opened, error)) return false;
    bool is_ok =
        request_apply(&report->request, report->filter, &opened, &names, &own_names, error);
    count = units_counted((int64_t)opened.process_count, "process", "processes");
    snprintf(what, sizeof what, "all %s with a recording, each at its own peak", count.text);
    if (is_ok && !report->request.form)
        is_ok = report_run_context(stdout, run, &report->request.options, what, error);
    if (is_ok) {
        is_ok = print_view(stdout, report, &opened, names, error);
    }
    opened_close(&opened);
    return is_ok;
}

// What the processes of a run's JSON have in common.
struct process_filter {
    const struct report *report;
    size_t *kept_count;  // stacks with a value
};

static bool put_process(struct json *json, const char *file, struct opened *opened,
                        const void *context, struct error *error) {
    const struct process_filter *wanted = context;
    struct request request = wanted->report->request;
    struct filter_request filter_request = request.filter;
    struct filter *filter;
    filter_request.may_be_empty = true;  // that it is in one process is enough
    if (!filter_open(&filter, &filter_request, error)) return false;
    const struct narrowing narrowing = {&request, filter};
    request.is_of_run = true;
    bool is_ok = request_narrow(&narrowing, &opened->profile, error) &&
                 put_json(json, file, &request, filter, opened, error);
    for (size_t i = 0; is_ok && i < opened->profile.stack_count; i++)
        *wanted->kept_count +=
            measure_stack(request.options.by, &opened->profile.stacks[i]).value > 0;
    filter_close(filter);
    return is_ok;
}

static bool report_run_as_json(const struct report *report, const struct run *run,
                               struct error *error) {
    size_t kept_count = 0;
    const struct process_filter wanted = {report, &kept_count};
    if (!report_run_json(stdout, run, put_process, &wanted, error)) return false;
    return kept_count || !filter_is_any(report->filter) ||
           error_set(error, "%s: the filter matches nothing in any of its processes",
                     run->directory);
}

// Helpers (a shell, a version manager) do not stand in the way of the program that was meant.
static bool report_main(const struct report *report, const struct run *run, struct error *error) {
    const struct run_row *row = &run->rows.items[0];
    struct report of_main = *report;
    struct subject subject = {0};
    char of_run[TEXT_BYTES];
    if (!report_run_path(run, row, subject.path))
        return error_set(error, "%s: the path is too long", run->directory);
    snprintf(subject.name, sizeof subject.name, "%s", row->file);
    snprintf(of_run, sizeof of_run, "1 of %s",
             units_counted((int64_t)run->rows.count, "process", "processes").text);
    of_main.of_run = of_run;
    return report_recording(&of_main, &subject, error);
}

static bool report_whole_run(const struct request *request, const struct run *run,
                             struct error *error) {
    struct view_options options = request->options;
    options.top = SUMMARY_TOP_DEFAULT;
    return report_run_summary(stdout, run, &options, false, error);
}

static bool report_run(const struct report *report, const char *path, struct error *error) {
    const struct request *request = &report->request;
    struct run run;
    if (!run_open(path, &run, error)) return false;
    enum view_run how = run_of(request);
    bool is_ok;
    bool has_view = request->view || filter_is_any(report->filter);
    if (request_is_whole(request) && !view_has(request->view, VIEW_NEEDS_MEMORY))
        is_ok = report_run_as_json(report, &run, error);
    else if (how == RUN_TABLE && request->form)
        is_ok = view_print(stdout, &(struct view_subject){.request = request, .run = &run}, error);
    else if (how == RUN_TABLE)
        is_ok = report_run_table(stdout, &run, &request->options, error);
    else if ((how == RUN_TIMELINES || how == RUN_OVERRUNS) && request->form)
        is_ok = error_set(error, "%s: rows of view %s are of one process: -p PID or NAME",
                          run.directory, request->view->name);
    else if (how == RUN_TIMELINES || how == RUN_OVERRUNS)
        is_ok = report_run_context(stdout, &run, &request->options, "all processes", error) &&
                print_of_all(report, &run, error);
    else if (view_has(request->view, VIEW_NEEDS_MEMORY) && report->is_all)
        is_ok = view_check_recording(request->view, error);
    else if (has_view && !report->is_all && (report_run_has_main(&run) || is_of_one(report, &run)))
        is_ok = report_main(report, &run, error);
    else if (has_view)
        is_ok = (!report->has_summary || request->form ||
                 report_run_print_head(stdout, &run, &request->options, error)) &&
                print_sum(report, &run, error);
    else
        is_ok = report_whole_run(request, &run, error);
    run_close(&run);
    return is_ok;
}

static bool report_subject(const struct report *report, const struct subject *subject,
                           struct error *error) {
    const struct view *view = report->request.view;
    if (subject->is_run) return report_run(report, subject->path, error);
    if (run_of(&report->request) == RUN_TABLE)
        return error_set(error, "%s: one process; view %s is for the directory of a run",
                         subject->path, view->name);
    return report_recording(report, subject, error);
}

// `cairn leaks --unreachable PID`.
static int report_unreachable(const struct command_args *args, const struct report *report) {
    struct error error;
    uint64_t lost = 0;
    if (!options_check_under(args, OF_UNREACHABLE_NOW, &error))
        return command_fail(STATUS_USAGE, &error);
    if (!core_unreachable_report(args->words[0], &report->request,
                                 !args_has(args, OPTION_NO_COPY_LIMIT), &lost, &error))
        return command_fail(STATUS_FAILURE, &error);
    return lost ? report->leaks.error_status : STATUS_OK;
}

static int report_waste(const struct command_args *args, const struct request *request) {
    struct waste_wish wish;
    struct error error;
    if (!waste_wish_read(args, &wish, &error)) return command_fail(STATUS_USAGE, &error);
    return core_waste_report(args->words[0], request, &wish, &error)
               ? STATUS_OK
               : command_fail(STATUS_FAILURE, &error);
}

static int report_remedies(const struct command_args *args, const struct request *request) {
    const struct remedies_wish wish = {.has_limit = !args_has(args, OPTION_NO_COPY_LIMIT),
                                       .may_stop = !args_has(args, OPTION_NO_STOP)};
    struct error error;
    return core_remedies_report(args->words[0], request, &wish, &error)
               ? STATUS_OK
               : command_fail(STATUS_FAILURE, &error);
}

static int report_heap(const struct command_args *args, const struct request *request) {
    struct error error;
    return heap_views_report(args->words[0], request, &error)
               ? STATUS_OK
               : command_fail(STATUS_FAILURE, &error);
}

typedef bool blocks_report(const char *word, const struct request *request, bool has_limit,
                           struct error *error);

static int report_blocks(const struct command_args *args, const struct request *request,
                         blocks_report *report) {
    struct error error;
    return report(args->words[0], request, !args_has(args, OPTION_NO_COPY_LIMIT), &error)
               ? STATUS_OK
               : command_fail(STATUS_FAILURE, &error);
}

static int report_owners(const struct command_args *args, const struct request *request) {
    return report_blocks(args, request, core_owners_report);
}

static int report_types(const struct command_args *args, const struct request *request) {
    return report_blocks(args, request, core_types_report);
}

static int report_containers(const struct command_args *args, const struct request *request) {
    return report_blocks(args, request, core_containers_report);
}

// Reports on what is in the blocks of a process or of a core dump; returns what to end with.
static int report_memory(const struct command_args *args, const struct request *request) {
    static int (*const reports[MEMORY_COUNT])(const struct command_args *args,
                                              const struct request *request) = {
        [MEMORY_HEAP] = report_heap,
        [MEMORY_PAGES] = report_heap,
        [MEMORY_OWNERS] = report_owners,
        [MEMORY_TYPES] = report_types,
        [MEMORY_CONTAINERS] = report_containers,
        [MEMORY_WASTE] = report_waste,
        [MEMORY_REMEDIES] = report_remedies};
    return reports[request->view->memory](args, request);
}

// Returns true for a process that may not be read, or has nothing to be read: no view has it.
static bool is_unreadable(const char *word) {
    struct error why;
    pid_t pid;
    return running_find(word, &pid, &why) && !examine_to_read(pid, &why);
}

// Finds the recording, or says what can be had of a process or core dump without one.
static bool find_subject(const char *word, struct subject *subject, struct error *error) {
    char names[VIEW_NAMES_BYTES];
    if (subject_find(word, subject, error)) return true;
    bool is_core = heap_views_have_memory(word) && !access(word, F_OK);
    if (!is_core && (!core_overview_is_possible(word) || is_unreadable(word))) return false;
    struct error why = *error;
    view_names_of_memory(names);
    return error_set(error,
                     "%s; its memory is shown by the views %s: cairn report --view owners %s",
                     why.text, names, word);
}

// Returns true if an option is given that is of the list of stacks: it stands below the summary
// then.
static bool has_stacks(const struct command_args *args) {
    static const enum option_id of_stacks[] = {OPTION_TOP,       OPTION_DEPTH, OPTION_THRESHOLD,
                                               OPTION_MIN_BYTES, OPTION_BY,    OPTION_ALL_FRAMES};
    bool has_any = false;
    for (size_t i = 0; i < sizeof of_stacks / sizeof *of_stacks; i++)
        has_any |= args_has(args, of_stacks[i]);
    return has_any;
}

int cmd_report(const struct command_args *args) {
    struct report report = {.has_summary = args_has(args, OPTION_SUMMARY),
                            .has_stacks = has_stacks(args)};
    struct subject subject;
    struct error error;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (rankings_are_asked(args)) return rankings_report(args);
    report.is_all = process && !strcmp(process, "all");
    if (report.is_all) process = NULL;
    if (!request_read(args, &report.request, &error)) return command_fail(STATUS_USAGE, &error);
    if (args_has(args, OPTION_CGROUP)) return cgroup_report(args);
    const struct view *view = report.request.view;
    if (view && view->memory && heap_views_have_memory(args->words[0]))
        return report_memory(args, &report.request);
    int overview_status;
    if (core_overview_answers(args, &report.request, &overview_status)) return overview_status;
    if (!filter_open(&report.filter, &report.request.filter, &error)) {
        error_wrap(&error, "%s", args->command->name);
        return command_fail(STATUS_USAGE, &error);
    }
    if (!leaks_read(args, &report.request, &report.leaks, &error)) {
        filter_close(report.filter);
        return command_fail(STATUS_USAGE, &error);
    }
    report.request.is_unreachable = args_has(args, OPTION_UNREACHABLE);
    if (report.request.is_unreachable && heap_views_have_memory(args->words[0])) {
        int unreachable_status = report_unreachable(args, &report);
        leaks_free(&report.leaks);
        filter_close(report.filter);
        return unreachable_status;
    }
    bool is_ok = find_subject(args->words[0], &subject, &error) &&
                 (!process || subject_enter(&subject, process, &error)) &&
                 report_subject(&report, &subject, &error);
    int status = report.leaks.found_count ? report.leaks.error_status : STATUS_OK;
    leaks_free(&report.leaks);
    filter_close(report.filter);
    return is_ok ? status : command_fail(STATUS_FAILURE, &error);
}
