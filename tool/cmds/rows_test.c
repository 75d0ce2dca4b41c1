// SPDX-License-Identifier: Apache-2.0
// Commands for tests: budgets, their history, allocations that fail.
#include "tool/cmds/commands.h"
#include "tool/cmds/rows.h"

// clang-format off
// Results for forges: a check's, and what the newest commit moved.
#define OPTION_ROWS_FORGES                                                                         \
    {OPTION_JUNIT, "junit", 0, "FILE", "write JUnit's XML as well, over what is there"},           \
    {OPTION_MARKDOWN, "markdown", 0, "FILE", "write Markdown as well, likewise"},                  \
    {OPTION_SARIF, "sarif", 0, "FILE", "write SARIF 2.1 for code scanning, likewise"},             \
    {OPTION_ANNOTATIONS, "annotations", 0, NULL, "print lines that annotate code on GitHub too"}

const struct command command_check = {
    .name = "check",
    .arguments = "SUBJECT | -- COMMAND [ARGUMENT...]",
    .help = "whether a recording, or a command, keeps within budgets; for tests",
    .description =
        "One line a budget, with the stacks that broke it where it does not hold. Of a run, each\n"
        "budget is for the process that took most. A file of budgets has limits by program\n"
        "name (docs/howto/ci.md). Blocks that common libraries keep are not counted at exit.\n"
        "\n"
        "Status: 0 if all budgets hold, 1 if one does not, 2 for wrong use.\n",
    .run = cmd_check,
    .words_max = SIZE_MAX,
    .first = "max-peak max-exit max-calls max-leaked baseline tolerance budgets junit sarif series adapter",
    .options = {
        {OPTION_MAX_PEAK, "max-peak", 0, "SIZE", "the most that may be live at one time"},
        {OPTION_MAX_EXIT, "max-exit", 0, "SIZE", "the most that may be left at the end"},
        {OPTION_MAX_CALLS, "max-calls", 0, "N", "the most allocations, as 1e6"},
        {OPTION_MAX_ALLOCATED, "max-allocated", 0, "SIZE", "the most bytes over all time"},
        {OPTION_MAX_OVERRUNS, "max-overruns", 0, "N",
         "most blocks that were written past (cairn run --guard)"},
        {OPTION_MAX_TEMPORARY, "max-temporary", 0, "SHARE|N",
         "the most blocks freed before the next call"},
        {OPTION_MAX_WASTE, "max-waste", 0, "SHARE",
         "of a PID or core: what may be of no use, as 20%"},
        {OPTION_WASTE_SEED, "seed", 0, "N", "max-waste of more than 128 MiB: draw this part"},
        {OPTION_NO_COPY_LIMIT, "no-copy-limit", 0, NULL, "max-waste: read all of a process"},
        {OPTION_MAX_LOST, "max-leaked", 0, "SIZE",
         "what nothing leads to at the end; also PID, core"},
        {OPTION_BASELINE, "baseline", 0, "OLD[,OLD]", "no more than these took, of each"},
        {OPTION_GONE, "gone", 0, "FINDING", "of the baseline: left:FUNCTION, temporary ..."},
        {OPTION_TOLERANCE, "tolerance", 0, "SHARE", "more than the baseline by this (0%)"},
        {OPTION_BUDGETS, "budgets", 0, "FILE", "limits by program name, in TOML"},
        OPTION_ROW_PROCESS,
        OPTION_ROWS_SUPPRESSIONS,
        OPTION_ROWS_FORGES,
        {OPTION_SERIES, "series", 0, "FILE|DIR", "append the figures to a history (cairn history)"},
        {OPTION_COMMIT, "commit", 0, "ID", "series: of this commit (HEAD)"},
        {OPTION_TEST, "test", 0, "NAME", "series: name of the test (the program's)"},
        {OPTION_ADAPTER, "adapter", 0, "NAME", "each test of a runner by its name: auto, ctest ..."},
        {OPTION_TIME_LIMIT, "time-limit", 0, "DURATION",
         "kill a command, or a test, that takes longer, as 5m"},
        OPTION_ROW_OUTPUT,
        SYMBOL_OPTIONS,
    },
};

const struct command command_torture = {
    .name = "torture",
    .arguments = "-- COMMAND...",
    .help = "make each allocation fail once: crashes, hangs and leaks without memory",
    .description =
        "The command runs again and again, each time with another allocation that fails: of\n"
        "each stack that allocates the first one, then a later one. A finding is a run that\n"
        "crashes, aborts, does not end, leaks, has a sanitizer's report, or ends with 0 as usual\n"
        "and other output; an error message and another exit status are none. Each comes with the\n"
        "stack that failed and a command that repeats it. This is the only command that\n"
        "changes what a program does. See docs/howto/torture.md.\n"
        "Ends with 1 if there are findings.\n",
    .run = cmd_torture,
    .has_program = true,
    .words_max = SIZE_MAX,
    .options = {
        {OPTION_STACKS, "stacks", 0, "REGEX", "only stacks with such a function, file, module"},
        {OPTION_BUDGET, "budget", 0, "DURATION", "start no run after this time, as 60s"},
        {OPTION_TIME_LIMIT, "time-limit", 0, "DURATION",
         "of a run (10 times the usual, 10 s at least)"},
        {OPTION_JOBS, "jobs", 'j', "N", "runs at one time (1)"},
        {OPTION_STATE, "state", 0, "DIR", "keep results there, and go on from those"},
        {OPTION_TORTURE_SEED, "seed", 0, "N", "which later allocation of a stack fails (0)"},
        {OPTION_ONLY, "only", 0, "STACK:N", "this allocation alone, as a finding names it"},
        {OPTION_ALLOW, "allow", 0, "KIND,...", "what is no finding: abort, leak, silent, ..."},
        {OPTION_ALLOW_IN, "allow-in", 0, "REGEX", "a fault within such a library is no finding"},
        {OPTION_NO_LEAKS, "no-leaks", 0, NULL, "look for no leaks: runs are shorter"},
        {OPTION_STDIN, "stdin", 0, "FILE", "what the command reads (nothing)"},
        {OPTION_MAX_OUTPUT, "max-output", 0, "SIZE",
         "of a run's output, and of each file (256M)"},
        {OPTION_JSON, "json", 0, NULL, "one JSON object"},
        OPTION_ROWS_FORGES,
        {OPTION_QUIET, "quiet", 'q', NULL, "no progress"},
        OPTION_ROWS_SYMBOL_FILES,
    },
};

const struct command command_history = {
    .name = "history",
    .arguments = "[FILE|DIR] | bisect [--series FILE] -- COMMAND [ARGUMENT...]",
    .help = "what commits changed: figures of tests over time, steps, the stacks that moved",
    .description =
        "FILE is what cairn check --series wrote; without it, cairn-history.db in the current\n"
        "directory. Commits are those of the line that ends at HEAD. A figure that was counted\n"
        "makes a step when it differs at all; of samples, threads and what varies between two\n"
        "runs of a commit, when it differs by more than that explains (docs/howto/history.md).\n"
        "\n"
        "bisect finds the commit of the newest step that was up, among those that were not\n"
        "recorded: git bisect run with COMMAND, the test, after --build at each commit. What\n"
        "it measures becomes a part of the history.\n",
    .run = cmd_history,
    .words_max = SIZE_MAX,
    .options = {
        {OPTION_BY, "by", 'b', "MEASURE", "peak, exit, calls, bytes, temporary or waste alone"},
        {OPTION_TEST, "test", 0, "PATTERN", "tests of such a name, * ? and [abc] as in a shell"},
        OPTION_ROW_TOP,
        {OPTION_COMMIT, "commit", 0, "ID", "the line that ends there (HEAD)"},
        OPTION_ROW_BYTES,
        OPTION_ROW_COLOR,
        {OPTION_JSON, "json", 'j', NULL, "all of it as one JSON object (docs/reference/json.md)"},
        {OPTION_HTML, "html", 0, "FILE", "write a page, over what is there"},
        OPTION_ROWS_FORGES,
        {OPTION_BENCHMARK, "benchmark", 0, "FILE", "the newest figures, for github-action-benchmark"},
        {OPTION_BENCHER, "bencher", 0, "FILE", "the same in Bencher's metric format"},
        {OPTION_ERROR_EXITCODE, "error-exitcode", 0, "N", "end so if the newest commit made a step up"},
        {OPTION_SERIES, "series", 0, "FILE|DIR", "the same as FILE|DIR, for bisect (cairn-history.db)"},
        {OPTION_BUILD, "build", 0, "COMMAND", "bisect: what builds each commit, for the shell"},
    },
};
// clang-format on
