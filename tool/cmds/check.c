// SPDX-License-Identifier: Apache-2.0
// cairn check: budgets for tests. Of a recording or run that is there, or of a command that it
// records first (by starting `cairn run` beside itself).
#include <stdlib.h>
#include <string.h>

#include "tool/base/output.h"
#include "tool/check/budgets.h"
#include "tool/check/gone.h"
#include "tool/cmds/check_adapter.h"
#include "tool/cmds/check_memory.h"
#include "tool/cmds/check_series.h"
#include "tool/cmds/record_command.h"

struct check {
    const struct command_args *args;
    struct budgets budgets;
    struct memory_budgets memory;
    struct check_series series;
    const struct adapter *adapter;  // NULL: the command is one test
    struct results results;
    struct recorded recorded;  // of a command
    uint64_t limit_ns;         // that it may take; 0: any time
};

// A report is of the last check: an older one in its place would be taken for it.
static bool write_file(const struct check *check, enum option_id option,
                       void (*write)(const struct results *, FILE *), struct error *error) {
    const char *path = args_text(check->args, option, NULL);
    struct output output;
    if (!path) return true;
    if (!output_open(path, true, &output, error)) return false;
    write(&check->results, output.file);
    return output_commit(&output, error);
}

// A budget for damaged blocks needs bands around them, of the usual size if nothing else is said.
static bool has_damage_budget(const struct budgets *budgets) {
    for (size_t i = 0; i < budgets->list.count; i++)
        if (budgets->list.items[i].measure == MEASURE_OVERRUNS) return true;
    return false;
}

static struct record_command command_of(const struct check *check) {
    return (struct record_command){
        .words = check->args->words,
        .count = check->args->word_count,
        .output = args_text(check->args, OPTION_OUTPUT, NULL),
        .has_guard = has_damage_budget(&check->budgets),
        .has_unreachable = check->memory.lost >= 0,
        .limit_ns = check->limit_ns,
    };
}

static bool record(struct check *check, struct error *error) {
    const struct record_command command = command_of(check);
    return record_command(&command, &check->recorded, error);
}

static bool choose_adapter(struct check *check, struct error *error) {
    const struct command_args *args = check->args;
    const char *name = args_text(args, OPTION_ADAPTER, NULL);
    if (!name) return true;
    if (!args->has_separator) return error_set(error, "check: --adapter is for a command");
    check->adapter = adapter_find(name, args->words, error);
    if (!check->adapter) return false;
    bool is_each = !check->adapter->is_spawning;
    if (is_each && args_has(args, OPTION_GONE))
        return error_set(error,
                         "check: --gone is of one recording, and each test of --adapter %s "
                         "has its own",
                         check->adapter->name);
    if (is_each && (args_has(args, OPTION_OUTPUT) || args_has(args, OPTION_TEST)))
        return error_set(error,
                         "check: --output and --test are for one recording, and each test of "
                         "--adapter %s has its own",
                         check->adapter->name);
    if (is_each && check->memory.lost >= 0)
        return error_set(error, "check: --max-leaked is not for --adapter %s",
                         check->adapter->name);
    return true;
}

static bool read_words(struct check *check, struct error *error) {
    const struct command_args *args = check->args;
    const char *file = args_text(args, OPTION_BUDGETS, NULL);
    if (!budgets_read_options(args, &check->budgets, error)) return false;
    if (file && !budgets_read_file(file, &check->budgets, error)) return false;
    if (!memory_budgets_read(args, &check->memory, error)) return false;
    bool is_of_memory = memory_budgets_are_any(&check->memory);
    if (!check->budgets.list.count && !is_of_memory && !args_has(args, OPTION_SERIES) &&
        !args_has(args, OPTION_ADAPTER) && !args_has(args, OPTION_GONE))
        return error_set(
            error, "check: no budget and no --series; --max-peak, --max-exit, --max-calls, "
                   "--max-allocated, --max-temporary, --max-overruns, --max-waste, --max-leaked, "
                   "--gone, --baseline or --budgets FILE");
    if (args_has(args, OPTION_GONE) && !args_has(args, OPTION_BASELINE))
        return error_set(error, "check: --gone is of a finding that --baseline OLD has");
    bool is_command = args->has_separator;
    if (is_command && check->memory.waste >= 0)
        return error_set(error, "check: --max-waste is of a process that runs or a core dump "
                                "(cairn check --max-waste 20%% PID), not of a command");
    if (is_command && !args->word_count) return error_set(error, "check: no command behind --");
    if (!is_command && args->word_count > 1)
        return error_set(error, "check: unexpected argument \"%s\"; a command comes behind --",
                         args->words[1]);
    if (!is_command && args_has(args, OPTION_OUTPUT))
        return error_set(error, "check: --output is for the recording of a command");
    if (!is_command && args_has(args, OPTION_TIME_LIMIT))
        return error_set(error, "check: --time-limit is for a command");
    if (!args_duration(args, OPTION_TIME_LIMIT, &check->limit_ns, error)) return false;
    return choose_adapter(check, error) && check_series_begin(args, &check->series, error);
}

// A command that failed fails the check, whatever it took.
static bool add_command_result(struct check *check, struct error *error) {
    struct result result = {.budget = "command"};
    if (!check->recorded.status) return true;
    snprintf(result.subject, sizeof result.subject, "%s", "status");
    recorded_text(&check->recorded, result.text, sizeof result.text);
    return results_add(&check->results, &result) || error_set(error, "no memory for results");
}

static bool write_files(const struct check *check, struct error *error) {
    return write_file(check, OPTION_JUNIT, results_write_junit, error) &&
           write_file(check, OPTION_MARKDOWN, results_write_markdown, error) &&
           write_file(check, OPTION_SARIF, results_write_sarif, error);
}

// What could not be checked fails in the files too.
static void write_failure(struct check *check, const char *text) {
    struct result result = {.budget = "check"};
    struct error error;
    snprintf(result.subject, sizeof result.subject, "%s", "recording");
    snprintf(result.text, sizeof result.text, "%s", text);
    if (!results_add(&check->results, &result)) return;
    if (!write_files(check, &error)) command_fail(STATUS_FAILURE, &error);
}

static struct check_adapter adapted(struct check *check) {
    return (struct check_adapter){.args = check->args,
                                  .budgets = &check->budgets,
                                  .has_guard = has_damage_budget(&check->budgets),
                                  .has_unreachable = check->memory.lost >= 0,
                                  .limit_ns = check->limit_ns,
                                  .series = &check->series,
                                  .results = &check->results};
}

// Appends what was recorded; false if nothing was, with `is_ok` of an error.
static bool append(struct check *check, bool *is_ok, struct error *error) {
    *is_ok = true;
    if (check->series.taken.rows.count) return *is_ok = check_series_append(&check->series, error);
    printf("%s: nothing was appended: no test that was recorded passed\n", check->series.file);
    return false;
}

// Records the command again, beside the recording that is kept.
static bool record_again(struct check *check, struct error *error) {
    const struct check_adapter adapter = adapted(check);
    struct record_command command = command_of(check);
    struct recorded recorded;
    command.output = NULL;
    if (!record_command(&command, &recorded, error)) return false;
    bool is_ok = true;
    if (check->adapter)
        is_ok = check_adapter_take_run(&adapter, check->adapter, recorded.path, error);
    else if (!recorded.status)
        is_ok = check_series_take(&check->series, check->args, recorded.path, NULL, error);
    record_command_remove(&recorded);
    return is_ok;
}

// Appends, and runs again what moved or may have: two runs of one commit tell what varies.
static bool append_all(struct check *check, struct error *error) {
    enum { AGAIN_MOST = 2 };
    const struct check_adapter adapter = adapted(check);
    bool is_ok, is_there = append(check, &is_ok, error);
    if (!is_there) return is_ok;
    bool is_each = check->adapter && !check->adapter->is_spawning;
    for (int i = 0; i < AGAIN_MOST && check->args->has_separator; i++) {
        if (!check->series.again.count) break;
        check_series_repeat(&check->series);
        if (is_each ? !check_adapter_run_each(&adapter, check->adapter, error)
                    : !record_again(check, error))
            return false;
        if (!append(check, &is_ok, error)) break;
    }
    return is_ok && check_series_moves(&check->series, &check->results, error);
}

// What a command that failed took says nothing of the commit; a runner's other tests do.
static bool keep(struct check *check, const char *subject, struct error *error) {
    const struct check_adapter adapter = adapted(check);
    if (!check->series.file) return true;
    if (check->adapter)
        return check_adapter_take_run(&adapter, check->adapter, subject, error) &&
               append_all(check, error);
    if (!check->recorded.status &&
        !check_series_take(&check->series, check->args, subject, NULL, error))
        return false;
    if (check->memory.wasted >= 0 && check->series.taken.rows.count)
        check->series.taken.rows.items[0].figures[HISTORY_WASTE] =
            (struct history_figure){.value = check->memory.wasted, .is_known = true};
    return append_all(check, error);
}

// One recording, of the command or that was there.
static bool find_results(struct check *check, struct error *error) {
    const struct command_args *args = check->args;
    bool is_command = args->has_separator;
    if (is_command && !record(check, error)) return false;
    const char *subject = is_command ? check->recorded.path : args->words[0];
    if (memory_budgets_are_any(&check->memory) &&
        !memory_budgets_evaluate(&check->memory, subject, &check->results, error))
        return false;
    if (check->budgets.list.count &&
        !budgets_evaluate(&check->budgets, subject, args_text(args, OPTION_PROCESS, NULL), args,
                          &check->results, error))
        return false;
    const char *gone = args_text(args, OPTION_GONE, NULL);
    if (gone && !gone_evaluate(gone, args_text(args, OPTION_BASELINE, NULL), subject, args,
                               &check->results, error))
        return false;
    return add_command_result(check, error) && keep(check, subject, error);
}

static bool find_all_results(struct check *check, struct error *error) {
    const struct check_adapter adapter = adapted(check);
    if (!check->adapter || check->adapter->is_spawning) return find_results(check, error);
    return check_adapter_run_each(&adapter, check->adapter, error) &&
           (!check->series.file || append_all(check, error));
}

static bool evaluate(struct check *check, struct error *error) {
    struct terminal terminal = terminal_of(stdout);
    if (!find_all_results(check, error)) {
        write_failure(check, error->text);
        return false;
    }
    results_print(&check->results, &terminal);
    if (args_has(check->args, OPTION_ANNOTATIONS))
        results_print_annotations(&check->results, stdout);
    return write_files(check, error);
}

int cmd_check(const struct command_args *args) {
    struct check check = {.args = args};
    struct error error;
    int status = STATUS_USAGE;
    if (read_words(&check, &error)) {
        bool is_ok = evaluate(&check, &error);
        status = !is_ok || check.results.failed_count ? STATUS_FAILURE : STATUS_OK;
        if (!is_ok) command_fail(status, &error);
        if (*check.recorded.directory && check.results.failed_count)
            printf("the recording: %s\n", check.recorded.path);
        else
            record_command_remove(&check.recorded);
    } else {
        command_fail(status, &error);
    }
    results_free(&check.results);
    check_series_end(&check.series);
    budgets_free(&check.budgets);
    return status;
}
