// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/check_adapter.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/check/offenders.h"
#include "tool/model/run.h"

static bool list_tests(const struct check_adapter *check, const struct adapter *adapter,
                       struct adapted *adapted, struct error *error) {
    *adapted = (struct adapted){0};
    if (!adapter->list(check->args->words, adapted, error)) return false;
    return adapted->tests.count || error_set(error, "check: --adapter %s: %s lists no tests",
                                             adapter->name, check->args->words[0]);
}

// --- frameworks: a process for each test

// What it printed is not shown; the command is, which shows it.
static char *command_line(const struct adapted_test *test) {
    enum { WORD_BYTES = 4096 };
    char *line = NULL, word[WORD_BYTES];
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (!out) return NULL;
    fputs("     ", out);
    if (test->directory) {
        text_quote(word, sizeof word, test->directory);
        fprintf(out, " cd %s &&", word);
    }
    for (char **at = test->words; *at; at++) {
        text_quote_word(word, sizeof word, *at);
        fprintf(out, " %s", word);
    }
    fputc('\n', out);
    fclose(out);
    return line;
}

static bool add_failure(const struct check_adapter *check, const struct adapted_test *test,
                        const struct recorded *recorded, struct error *error) {
    struct result result = {.budget = "command", .offenders = command_line(test)};
    text_escape(result.subject, sizeof result.subject, test->name);
    recorded_text(recorded, result.text, sizeof result.text);
    return results_add(check->results, &result) || error_set(error, "no memory for results");
}

// What budgets said of the recording is said of the test.
static bool evaluate(const struct check_adapter *check, const struct adapted_test *test,
                     const char *path, struct error *error) {
    size_t first = check->results->list.count;
    if (!check->budgets->list.count || check->series->again.count) return true;
    if (!budgets_evaluate(check->budgets, path, NULL, check->args, check->results, error))
        return false;
    for (size_t i = first; i < check->results->list.count; i++)
        text_escape(check->results->list.items[i].subject,
                    sizeof check->results->list.items[i].subject, test->name);
    return true;
}

static bool run_test(const struct check_adapter *check, const struct adapter *adapter,
                     const struct adapted_test *test, struct error *error) {
    int count = 0;
    while (test->words[count]) count++;
    struct recorded recorded;
    const struct record_command command = {.words = test->words,
                                           .count = count,
                                           .has_guard = check->has_guard,
                                           .has_unreachable = check->has_unreachable,
                                           .has_python = adapter->is_python,
                                           .is_silent = true,
                                           .limit_ns = check->limit_ns,
                                           .directory = test->directory};
    size_t failed = check->results->failed_count;
    bool is_ok = record_command(&command, &recorded, error);
    if (is_ok && recorded.status)
        is_ok = add_failure(check, test, &recorded, error);
    else if (is_ok)
        is_ok = evaluate(check, test, recorded.path, error) &&
                (!check->series->file ||
                 check_series_take(check->series, check->args, recorded.path, test->name, error));
    if (is_ok && check->results->failed_count > failed && !recorded.status)
        printf("a recording that broke a budget: %s\n", recorded.path);
    else
        record_command_remove(&recorded);
    return is_ok || error_wrap(error, "%s", test->name);
}

// Says whether a test is recorded: all are, and then those again that may have moved.
static bool is_wanted(const struct check_adapter *check, const char *test) {
    enum { NAME_BYTES = 512 };
    char name[NAME_BYTES];
    text_escape(name, sizeof name, test);
    return !check->series->again.count || check_series_is_again(check->series, name);
}

bool check_adapter_run_each(const struct check_adapter *check, const struct adapter *adapter,
                            struct error *error) {
    struct adapted adapted;
    bool is_ok = list_tests(check, adapter, &adapted, error);
    if (is_ok && adapter->is_python) setenv("PYTHONHASHSEED", "0", 0);  // the same each time
    for (size_t i = 0; i < adapted.tests.count && is_ok; i++)
        if (is_wanted(check, adapted.tests.items[i].name))
            is_ok = run_test(check, adapter, &adapted.tests.items[i], error);
    adapted_free(&adapted);
    return is_ok;
}

// --- runners: processes of one run

struct process {
    const struct run_row *row;
    char path[PATH_MAX];
    char *command;  // arguments, each ends in NUL, an empty one at the end
    size_t size;
    const struct adapted_test *test;  // that it was started for; NULL: none
};

struct processes {
    struct run run;
    ARRAY(struct process) list;
};

static void processes_free(struct processes *processes) {
    for (size_t i = 0; i < processes->list.count; i++) free(processes->list.items[i].command);
    array_free(&processes->list);
    run_close(&processes->run);
}

static bool read_command(struct process *process, struct error *error) {
    struct recording recording;
    if (!recording_open(process->path, &recording, error)) return false;
    const char *command = recording.header.command;
    size_t size = 0;
    while (size < sizeof recording.header.command && command[size])
        size += strnlen(command + size, sizeof recording.header.command - size) + 1;
    if (size > sizeof recording.header.command) size = sizeof recording.header.command;
    process->command = calloc(1, size + 1);
    if (process->command) memcpy(process->command, command, size);
    process->size = size;
    recording_close(&recording);
    return process->command || error_set(error, "no memory for the processes");
}

static bool read_processes(const char *directory, struct processes *processes,
                           struct error *error) {
    *processes = (struct processes){0};
    if (!run_open(directory, &processes->run, error)) return false;
    for (size_t i = 0; i < processes->run.rows.count; i++) {
        const struct run_row *row = &processes->run.rows.items[i];
        if (!*row->file) continue;
        struct process *process = array_push(&processes->list);
        if (!process) return error_set(error, "no memory for the processes");
        *process = (struct process){.row = row};
        int used = snprintf(process->path, sizeof process->path, "%s/%s", processes->run.directory,
                            row->file);
        if (used >= (int)sizeof process->path)
            return error_set(error, "%s: path too long", row->file);
        if (!read_command(process, error)) return false;
    }
    return true;
}

// The words of a test are the arguments, or follow the interpreter of a script. Of arguments that
// were cut the beginning has to fit.
static bool is_started_as(const struct process *process, const struct adapted_test *test) {
    enum { INTERPRETER_WORDS = 2 };
    const char *start = process->command, *end = process->command + process->size;
    bool is_cut = process->size >= CAIRN_TEXT_COMMAND - 1;
    for (int skipped = 0; skipped <= INTERPRETER_WORDS && start < end; skipped++) {
        const char *at = start;
        size_t word = 0;
        while (at < end && test->words[word] && !strcmp(at, test->words[word])) {
            at += strlen(at) + 1;
            word++;
        }
        if (word && at >= end && (!test->words[word] || is_cut)) return true;
        start += strlen(start) + 1;
    }
    return false;
}

static const struct adapted_test *test_of(const struct process *process,
                                          const struct adapted *adapted) {
    for (size_t i = 0; i < adapted->tests.count; i++)
        if (is_started_as(process, &adapted->tests.items[i])) return &adapted->tests.items[i];
    return NULL;
}

// The process of this id that was started for a test; NULL: there is none.
static const struct process *find_started(const struct processes *processes, uint32_t pid) {
    for (size_t i = 0; i < processes->list.count; i++)
        if (processes->list.items[i].row->pid == pid && processes->list.items[i].test)
            return &processes->list.items[i];
    return NULL;
}

static const struct process *find_parent(const struct processes *processes, uint32_t pid) {
    for (size_t i = 0; i < processes->list.count; i++)
        if (processes->list.items[i].row->pid == pid) return &processes->list.items[i];
    return NULL;
}

// The test that a process is a part of: it, a former image of it, or who started it.
static const struct process *find_root(const struct processes *processes,
                                       const struct process *process) {
    enum { GENERATIONS_MAX = 64 };
    uint32_t pid = process->row->pid, parent = process->row->ppid;
    for (int i = 0; i < GENERATIONS_MAX; i++) {
        const struct process *found = find_started(processes, pid);
        if (found) return found;
        const struct process *next = find_parent(processes, parent);
        if (!next) return NULL;
        pid = next->row->pid;
        parent = next->row->ppid;
    }
    return NULL;
}

static bool is_same_command(const struct process *one, const struct process *other) {
    return one->size == other->size && !memcmp(one->command, other->command, one->size);
}

// Tests that are started by the same words cannot be told apart.
static void name_of(const struct adapted *adapted, const struct adapted_test *test, char *name,
                    size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < adapted->tests.count && used < size; i++) {
        const struct adapted_test *other = &adapted->tests.items[i];
        bool is_same = true;
        size_t word = 0;
        for (; is_same && test->words[word] && other->words[word]; word++)
            is_same = !strcmp(test->words[word], other->words[word]);
        if (!is_same || test->words[word] || other->words[word]) continue;
        used += (size_t)snprintf(name + used, size - used, "%s%s", used ? " | " : "", other->name);
    }
}

static bool take_process(const struct check_adapter *check, const struct adapted *adapted,
                         const struct process *process, const struct process *root,
                         struct error *error) {
    enum { NAME_BYTES = 512 };
    char name[NAME_BYTES];
    name_of(adapted, root->test, name, sizeof name);
    return !is_wanted(check, name) ||
           take_add_process(&check->series->taken, check->args, process->path, process->row, name,
                            check->series->project.top, error);
}

// A test that records what it tests has cairn as its process, whose memory is not the test's.
static bool is_cairn(const struct process *process) {
    const char *word = process->command, *end = process->command + process->size;
    const char *second = word + strlen(word) + 1;
    return !strcmp(text_base_name(word), "cairn") && second < end &&
           (!strcmp(second, "check") || !strcmp(second, "run"));
}

static bool has_failed(const struct process *root) {
    return root->row->has_exit && (root->row->exit_status || root->row->exit_signal);
}

static bool take_all(const struct check_adapter *check, const struct adapted *adapted,
                     struct processes *processes, struct error *error) {
    const struct process *runner = NULL;
    size_t failed = 0, recorded_within = 0;
    for (size_t i = 0; i < processes->list.count; i++) {
        struct process *process = &processes->list.items[i];
        process->test = test_of(process, adapted);
        if (process->row == &processes->run.rows.items[processes->run.first]) runner = process;
    }
    for (size_t i = 0; i < processes->list.count; i++) {
        const struct process *process = &processes->list.items[i];
        const struct process *root = find_root(processes, process);
        // what a runner does before the test is executed is not the test's
        bool is_fork = runner && process != root && is_same_command(process, runner);
        if (!root || is_fork) continue;
        failed += process == root && has_failed(root);
        recorded_within += process == root && is_cairn(root);
        if (is_cairn(root)) continue;
        if (!has_failed(root) && !take_process(check, adapted, process, root, error)) return false;
    }
    if (failed)
        printf("%s not in the history\n",
               units_counted((int64_t)failed, "test failed, and is", "tests failed, and are").text);
    if (recorded_within)
        printf("%s left out: cairn within it records what it tests\n",
               units_counted((int64_t)recorded_within, "test is", "tests are").text);
    return true;
}

bool check_adapter_take_run(const struct check_adapter *check, const struct adapter *adapter,
                            const char *path, struct error *error) {
    struct adapted adapted;
    struct processes processes = {0};
    bool is_ok = list_tests(check, adapter, &adapted, error);
    if (is_ok) {
        is_ok =
            read_processes(path, &processes, error) && take_all(check, &adapted, &processes, error);
        processes_free(&processes);
    }
    adapted_free(&adapted);
    return is_ok;
}
