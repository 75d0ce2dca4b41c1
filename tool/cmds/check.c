// SPDX-License-Identifier: Apache-2.0
// cairn check: budgets for tests. Of a recording or run that is there, or of a command that it
// records first (by starting `cairn run` beside itself).
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/settings.h"
#include "tool/base/output.h"
#include "tool/check/budgets.h"
#include "tool/cmds/check_memory.h"
#include "tool/proc/process.h"

struct check {
    const struct command_args *args;
    struct budgets budgets;
    struct memory_budgets memory;
    struct results results;
    char directory[PATH_MAX];  // made for the recording of a command; "": none
    char path[PATH_MAX];       // of the recording
    int command_status;
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

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_directory(const char *directory) {
    enum { DESCRIPTORS = 16 };
    nftw(directory, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

// Where the recording of the command goes: where the user said, or a directory of its own.
static bool choose_path(struct check *check, struct error *error) {
    const char *output = args_text(check->args, OPTION_OUTPUT, NULL), *top = getenv("TMPDIR");
    if (output) {
        if (!access(output, F_OK)) return error_set(error, "%s: exists", output);
        snprintf(check->path, sizeof check->path, "%s", output);
        return true;
    }
    snprintf(check->directory, sizeof check->directory, "%s/cairn-check.XXXXXX",
             top && *top ? top : "/tmp");
    if (!mkdtemp(check->directory)) {
        error_set(error, "%s: %s", check->directory, strerror(errno));
        *check->directory = 0;
        return false;
    }
    int length = snprintf(check->path, sizeof check->path, "%s/run.cairn", check->directory);
    return length < (int)sizeof check->path || error_set(error, "the path is too long");
}

// A budget for damaged blocks needs bands around them, of the usual size if nothing else is said.
static bool has_damage_budget(const struct budgets *budgets) {
    for (size_t i = 0; i < budgets->list.count; i++)
        if (budgets->list.items[i].measure == MEASURE_OVERRUNS) return true;
    return false;
}

// Becomes `cairn run -q -o PATH [--unreachable] -- COMMAND`.
static void exec_run(const struct check *check) {
    enum { OWN_WORDS = 7 };
    char own_path[PATH_MAX];
    int count = check->args->word_count;
    char **words = calloc((size_t)count + OWN_WORDS + 1, sizeof *words);
    if (!words) _exit(STATUS_FAILURE);
    if (has_damage_budget(&check->budgets)) setenv(CAIRN_VARIABLE(GUARD), "16", 0);
    char *own[OWN_WORDS] = {"cairn", "run", "-q", "-o", (char *)check->path};
    size_t own_count = OWN_WORDS - 2;
    if (check->memory.lost >= 0) own[own_count++] = "--unreachable";
    own[own_count++] = "--";
    memcpy(words, own, own_count * sizeof *words);
    memcpy(words + own_count, check->args->words, (size_t)count * sizeof *words);
    execv("/proc/self/exe", words);
    if (process_own_executable(own_path)) execv(own_path, words);
    _exit(STATUS_FAILURE);
}

static bool record(struct check *check, struct error *error) {
    enum { STATUS_SIGNAL_BASE = 128 };
    int status;
    if (!choose_path(check, error)) return false;
    pid_t child = fork();
    if (child < 0) return error_set(error, "cannot start a process: %s", strerror(errno));
    if (!child) exec_run(check);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return error_set(error, "waitpid: %s", strerror(errno));
    check->command_status =
        WIFSIGNALED(status) ? STATUS_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
    if (!access(check->path, F_OK)) return true;
    return error_set(error, "check: nothing was recorded; the command ended with status %d",
                     check->command_status);
}

static bool read_words(struct check *check, struct error *error) {
    const struct command_args *args = check->args;
    const char *file = args_text(args, OPTION_BUDGETS, NULL);
    if (!budgets_read_options(args, &check->budgets, error)) return false;
    if (file && !budgets_read_file(file, &check->budgets, error)) return false;
    if (!memory_budgets_read(args, &check->memory, error)) return false;
    bool is_of_memory = memory_budgets_are_any(&check->memory);
    if (!check->budgets.list.count && !is_of_memory)
        return error_set(
            error, "check: no budget; --max-peak, --max-exit, --max-calls, "
                   "--max-allocated, --max-temporary, --max-overruns, --max-waste, --max-leaked, "
                   "--baseline or --budgets FILE");
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
    return true;
}

// A command that failed fails the check, whatever it took.
static bool add_command_result(struct check *check, struct error *error) {
    struct result result = {.budget = "command"};
    if (!check->command_status) return true;
    snprintf(result.subject, sizeof result.subject, "%s", "status");
    snprintf(result.text, sizeof result.text, "it ended with status %d", check->command_status);
    return results_add(&check->results, &result) || error_set(error, "no memory for results");
}

static bool write_files(const struct check *check, struct error *error) {
    return write_file(check, OPTION_JUNIT, results_write_junit, error) &&
           write_file(check, OPTION_MARKDOWN, results_write_markdown, error);
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

static bool find_results(struct check *check, struct error *error) {
    const struct command_args *args = check->args;
    bool is_command = args->has_separator;
    if (is_command && !record(check, error)) return false;
    const char *subject = is_command ? check->path : args->words[0];
    if (memory_budgets_are_any(&check->memory) &&
        !memory_budgets_evaluate(&check->memory, subject, &check->results, error))
        return false;
    if (check->budgets.list.count &&
        !budgets_evaluate(&check->budgets, subject, args_text(args, OPTION_PROCESS, NULL), args,
                          &check->results, error))
        return false;
    return add_command_result(check, error);
}

static bool evaluate(struct check *check, struct error *error) {
    struct terminal terminal = terminal_of(stdout);
    if (!find_results(check, error)) {
        write_failure(check, error->text);
        return false;
    }
    results_print(&check->results, &terminal);
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
        if (*check.directory && check.results.failed_count)
            printf("the recording: %s\n", check.path);
        else if (*check.directory)
            remove_directory(check.directory);
    } else {
        command_fail(status, &error);
    }
    results_free(&check.results);
    budgets_free(&check.budgets);
    return status;
}
