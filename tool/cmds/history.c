// SPDX-License-Identifier: Apache-2.0
// cairn history: what cairn check --series kept, as a table, JSON, a page, and for forges.
#include <stdlib.h>
#include <string.h>

#include "tool/base/output.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/history_bisect.h"
#include "tool/history/screen.h"

enum { STEPS_SHOWN = 20 };

static bool read_measure(const struct command_args *args, int *measure, struct error *error) {
    const char *name = args_text(args, OPTION_BY, NULL);
    *measure = -1;
    for (int i = 0; name && i < HISTORY_MEASURES; i++)
        if (!strcmp(name, history_measures[i].name)) *measure = i;
    return !name || *measure >= 0 ||
           error_set(error,
                     "history: --by: peak, exit, calls, bytes, temporary or waste, not \"%s\"",
                     name);
}

static bool read_view(const struct command_args *args, struct history_view *view,
                      struct error *error) {
    uint64_t top;
    view->test = args_text(args, OPTION_TEST, NULL);
    view->is_plain_number = args_has(args, OPTION_BYTES);
    if (!read_measure(args, &view->measure, error) ||
        !args_number(args, OPTION_TOP, STEPS_SHOWN, SIZE_MAX, &top, error))
        return false;
    view->top = (size_t)top;
    if (args->has_separator)
        return error_set(error, "history: a command comes behind bisect: cairn history bisect -- "
                                "COMMAND");
    if (args->word_count > 1)
        return error_set(error, "history: unexpected argument \"%s\"", args->words[1]);
    if (args->word_count && args_has(args, OPTION_SERIES))
        return error_set(error, "history: --series and \"%s\": one history is shown",
                         args->words[0]);
    return !args_has(args, OPTION_BUILD) || error_set(error, "history: --build is for bisect");
}

static bool write_results(const struct command_args *args, enum option_id option,
                          const struct results *results,
                          void (*write)(const struct results *, FILE *), struct error *error) {
    const char *path = args_text(args, option, NULL);
    struct output output;
    if (!path) return true;
    if (!output_open(path, true, &output, error)) return false;
    write(results, output.file);
    return output_commit(&output, error);
}

// A file of the history itself, if it is asked for.
static bool write_file(const struct command_args *args, enum option_id option,
                       struct history *history, const struct history_view *view,
                       bool (*write)(struct history *, const struct history_view *, FILE *,
                                     struct error *),
                       struct error *error) {
    const char *path = args_text(args, option, NULL);
    struct output output;
    if (!path) return true;
    if (!output_open(path, true, &output, error)) return false;
    if (write(history, view, output.file, error)) return output_commit(&output, error);
    output_cancel(&output);
    return false;
}

// What the newest commit moved; `has_risen` if something did.
static bool report_newest(const struct command_args *args, struct history *history,
                          const struct history_view *view, bool *has_risen, struct error *error) {
    struct results results = {0};
    bool is_ok = !history->commits.count || history_results(history, view, true, &results, error);
    *has_risen = results.failed_count > 0;
    if (is_ok && args_has(args, OPTION_ANNOTATIONS)) results_print_annotations(&results, stdout);
    is_ok = is_ok && write_results(args, OPTION_JUNIT, &results, results_write_junit, error) &&
            write_results(args, OPTION_MARKDOWN, &results, results_write_markdown, error) &&
            write_results(args, OPTION_SARIF, &results, results_write_sarif, error);
    results_free(&results);
    return is_ok;
}

static int show(const struct command_args *args, const struct history_view *view,
                uint64_t error_status) {
    struct history history;
    struct error error;
    bool has_risen = false;
    const char *word =
        args->word_count ? args->words[0] : args_text(args, OPTION_SERIES, HISTORY_FILE_NAME);
    struct terminal terminal = terminal_of(stdout);
    if (!history_open(word, args_text(args, OPTION_COMMIT, NULL), &history, &error))
        return command_fail(STATUS_FAILURE, &error);
    bool is_ok = args_has(args, OPTION_JSON) ? history_write_json(&history, view, stdout, &error)
                                             : history_print(&history, view, &terminal, &error);
    is_ok = is_ok && write_file(args, OPTION_HTML, &history, view, history_write_page, &error) &&
            write_file(args, OPTION_BENCHMARK, &history, view, history_write_benchmark, &error) &&
            write_file(args, OPTION_BENCHER, &history, view, history_write_bencher, &error) &&
            report_newest(args, &history, view, &has_risen, &error);
    history_close(&history);
    if (!is_ok) return command_fail(STATUS_FAILURE, &error);
    return has_risen ? (int)error_status : STATUS_OK;
}

int cmd_history(const struct command_args *args) {
    struct history_view view = {0};
    struct error error;
    uint64_t status;
    const uint64_t status_most = 255;
    bool is_bisection =
        args->word_count && (!strcmp(args->words[0], "bisect") ||
                             (args->has_separator && !strcmp(args->words[0], "judge")));
    if (is_bisection) return history_bisect(args);
    if (!read_view(args, &view, &error) ||
        !args_number(args, OPTION_ERROR_EXITCODE, 0, status_most, &status, &error))
        return command_fail(STATUS_USAGE, &error);
    return show(args, &view, status);
}
