// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/leaks.h"
#include "tool/cmds/name_hints.h"
#include "tool/cmds/opened.h"
#include "tool/cmds/report_run.h"
#include "tool/cmds/report_summary.h"
#include "tool/cmds/subject.h"
#include "tool/cmds/views.h"
#include "tool/render/report_json.h"
#include "tool/render/stacks.h"

enum { TEXT_BYTES = 1024 };

struct report {
    struct request request;
    struct leaks leaks;
    struct filter *filter;
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
    struct unit_text value = about->is_bytes ? units_size_as(sum.value, options->is_plain_number)
                                             : units_count(sum.value);
    terminal_print(&terminal, STYLE_STRONG, "%s", text);
    fprintf(out, ": %s %s (%s), %s of %s stacks\n", value.text, about->moment,
            units_percent(sum.value, measure_total(options->by, profile).value).text,
            units_count((int64_t)profile->stack_count).text,
            units_count((int64_t)profile->built_stack_count).text);
}

static bool print_view(FILE *out, const struct report *report, struct opened *opened,
                       const struct frame_names *names, struct error *error) {
    const struct view *view = report->request.view;
    struct view_subject subject = {opened, names, &report->request};
    fputc('\n', out);
    print_filter(out, report, &opened->profile);
    if (!(view ? view : views)->print(out, &subject, error)) return false;
    name_hints_print(out, opened);
    return true;
}

static bool print_text(const struct report *report, struct opened *opened, const char *path,
                       struct error *error) {
    // the list of places goes by its own length, --top is that of the view
    struct view_options summary = report->request.options;
    const struct frame_names *names;
    struct frame_names own_names;
    summary.top = SUMMARY_TOP_DEFAULT;
    bool has_list = !report->request.view;
    // all names first, so that the trust line knows of each
    if (!request_apply(&report->request, report->filter, opened, &names, &own_names, error))
        return false;
    if (has_list && !report_resolve_peak(opened, error)) return false;
    if (!report_summary_of(stdout, opened, path, has_list, names, &summary, error)) return false;
    return !opened->profile.totals.allocations || print_view(stdout, report, opened, names, error);
}

static bool print_json(const struct report *report, struct opened *opened, struct error *error) {
    const struct frame_names *names;
    struct frame_names own_names;
    return request_apply(&report->request, report->filter, opened, &names, &own_names, error) &&
           report_json_print(stdout, &opened->profile, names, &report->request.options, error);
}

static bool report_recording(const struct report *report, const char *path, struct error *error) {
    struct opened opened;
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok = report->request.is_json ? print_json(report, &opened, error)
                                         : print_text(report, &opened, path, error);
    opened_close(&opened);
    return is_ok;
}

// A view of one process of a run.
static bool print_process(FILE *out, struct opened *opened, const void *context,
                          struct error *error) {
    const struct report *report = context;
    const struct frame_names *names;
    struct frame_names own_names;
    return request_apply(&report->request, report->filter, opened, &names, &own_names, error) &&
           print_view(out, report, opened, names, error);
}

static bool report_run(const struct report *report, const char *path, struct error *error) {
    const struct request *request = &report->request;
    struct run run;
    if (!run_open(path, &run, error)) return false;
    bool is_table = request->view && request->view->is_of_run, is_ok;
    bool has_view = request->view || filter_is_any(report->filter);
    if (request->is_json)
        is_ok = report_run_json(stdout, &run, &request->options, error);
    else if (is_table)
        is_ok = report_run_table(stdout, &run, &request->options, error);
    else
        is_ok = report_run_print(stdout, &run, &request->options, has_view ? print_process : NULL,
                                 report, error);
    run_close(&run);
    return is_ok;
}

static bool report_subject(const struct report *report, const struct subject *subject,
                           struct error *error) {
    const struct view *view = report->request.view;
    if (subject->is_run) return report_run(report, subject->path, error);
    if (view && view->is_of_run)
        return error_set(error, "%s: one process; view %s is for the directory of a run",
                         subject->path, view->name);
    return report_recording(report, subject->path, error);
}

int cmd_report(const struct command_args *args) {
    struct report report = {0};
    struct subject subject;
    struct error error;
    const char *process = args_text(args, OPTION_PROCESS, NULL);
    if (!request_read(args, &report.request, &error)) return command_fail(STATUS_USAGE, &error);
    if (!filter_open(&report.filter, &report.request.filter, &error)) {
        error_wrap(&error, "%s", args->command->name);
        return command_fail(STATUS_USAGE, &error);
    }
    if (!leaks_read(args, &report.request, &report.leaks, &error)) {
        filter_close(report.filter);
        return command_fail(STATUS_USAGE, &error);
    }
    bool is_ok = subject_find(args->words[0], &subject, &error) &&
                 (!process || subject_enter(&subject, process, &error)) &&
                 report_subject(&report, &subject, &error);
    int status = report.leaks.found_count ? report.leaks.error_status : STATUS_OK;
    leaks_free(&report.leaks);
    filter_close(report.filter);
    return is_ok ? status : command_fail(STATUS_FAILURE, &error);
}
