// SPDX-License-Identifier: Apache-2.0
// A command's options as a row each, and what was given of them: what the table of commands
// (tool/cmds/rows.h) is made of, and all that a query reads of a command line.
//
// The one table of options that exclude each other, or that need something beside them. The parser
// checks what can be seen on the command line; what follows from it (a preset samples, a view shows
// mappings) is a circumstance, which its reader names as soon as it is known.
#ifndef TOOL_QUERY_ARGUMENTS_H
#define TOOL_QUERY_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/error.h"

#define STATUS_OK 0
#define STATUS_FAILURE 1
#define STATUS_USAGE 2

// Every option there is, whatever commands have it.
enum option_id {
    OPTION_ADAPTER,
    OPTION_AGES,
    OPTION_ALLOW,
    OPTION_ALLOW_IN,
    OPTION_MMAP,
    OPTION_EVENTS,
    OPTION_ADDRESS,
    OPTION_ALLOCATOR,
    OPTION_ENV,
    OPTION_THREADS,
    OPTION_TOUCH,
    OPTION_SPEED,
    OPTION_PARTIAL,
    OPTION_ROUNDS,
    OPTION_FROM,
    OPTION_EVENTS_WAIT,
    OPTION_EVENTS_FOR,
    OPTION_EVENTS_KEEP,
    OPTION_FREE_STACKS,
    OPTION_ALL,
    OPTION_ALL_FRAMES,
    OPTION_ALLOW_RUN,
    OPTION_ANNOTATIONS,
    OPTION_BENCHMARK,
    OPTION_BENCHER,
    OPTION_IGNORE_CHECKS,
    OPTION_AT,
    OPTION_BASELINE,
    OPTION_GONE,
    OPTION_BETWEEN,
    OPTION_BLOCKS,
    OPTION_BUDGET,
    OPTION_BUDGETS,
    OPTION_BUILD,
    OPTION_BY,
    OPTION_BYTES,
    OPTION_SCAN_HEAP,
    OPTION_NO_COPY_LIMIT,
    OPTION_UNREACHABLE,
    OPTION_LOOK,
    OPTION_CGROUP,
    OPTION_CHILDREN,
    OPTION_COLOR,
    OPTION_COMMIT,
    OPTION_COMPLETION,
    OPTION_CPU_BUDGET,
    OPTION_DEBUGINFOD,
    OPTION_DEBUG_DIR,
    OPTION_DEPTH,
    OPTION_ERROR_EXITCODE,
    OPTION_SNAPSHOT_EVERY,
    OPTION_EVERY,
    OPTION_EXACT,
    OPTION_EXEC,
    OPTION_FOCUS,
    OPTION_FOR,
    OPTION_FORCE,
    OPTION_FORMAT,
    OPTION_FULL_NAMES,
    OPTION_GROUP,
    OPTION_GUARD,
    OPTION_HEADERS,
    OPTION_HIDE,
    OPTION_HTML,
    OPTION_IGNORE,
    OPTION_INTERVAL,
    OPTION_INVERTED,
    OPTION_JSON,
    OPTION_KEEP,
    OPTION_LABEL,
    OPTION_LIBRARY,
    OPTION_JOBS,
    OPTION_JUNIT,
    OPTION_LIFESPAN,
    OPTION_LINES,
    OPTION_LISTEN,
    OPTION_MARKDOWN,
    OPTION_MAX_ALLOCATED,
    OPTION_MAX_CALLS,
    OPTION_MAX_OVERRUNS,
    OPTION_MAX_WASTE,
    OPTION_MAX_LOST,
    OPTION_MAX_OUTPUT,
    OPTION_MAX_EXIT,
    OPTION_MANUAL,
    OPTION_MAX_DEPTH,
    OPTION_MAX_OVERHEAD,
    OPTION_MAX_PEAK,
    OPTION_MAX_TEMPORARY,
    OPTION_MAX_SAMPLES,
    OPTION_MAX_SIZE,
    OPTION_MIN_BYTES,
    OPTION_MIN_SIZE,
    OPTION_MODULE,
    OPTION_LOG,
    OPTION_MARK_EVERY,
    OPTION_NO_SCAN_HEAP,
    OPTION_NO_LEAKS,
    OPTION_NO_STACKS,
    OPTION_NO_STOP,
    OPTION_NO_SUPPRESSIONS,
    OPTION_OFF,
    OPTION_ONCE,
    OPTION_ONLY,
    OPTION_OPEN,
    OPTION_CONTENTS,
    OPTION_OUTPUT,
    OPTION_OWNERS,
    OPTION_INTERNAL_FRAMES,
    OPTION_SYMBOLS,
    OPTION_PID,
    OPTION_PRESET,
    OPTION_PRINT,
    OPTION_PROCESS,
    OPTION_PYTHON,
    OPTION_FRAMES,
    OPTION_QUEUE,
    OPTION_QUEUE_SIZE,
    OPTION_QUIET,
    OPTION_RATE,
    OPTION_RECORD_FOR,
    OPTION_RECORDING,
    OPTION_REFERENCE,
    OPTION_REGION,
    OPTION_CONTEXT,
    OPTION_HEAP,
    OPTION_RENAME,
    OPTION_ROOT,
    OPTION_SHORT,
    OPTION_SIGNAL,
    OPTION_SINCE,
    OPTION_SNAPSHOTS,
    OPTION_SAMPLE,
    OPTION_SARIF,
    OPTION_SEED,
    OPTION_SERIES,
    OPTION_SOURCE,
    OPTION_SOURCE_MAP,
    OPTION_STACKS,
    OPTION_START_AFTER,
    OPTION_STATE,
    OPTION_STDIN,
    OPTION_SUMMARY,
    OPTION_PROGRAM,
    OPTION_SYSROOT,
    OPTION_SUPPRESSIONS,
    OPTION_TEST,
    OPTION_THREAD,
    OPTION_TIME_LIMIT,
    OPTION_TORTURE_SEED,
    OPTION_WASTE_SEED,
    OPTION_THRESHOLD,
    OPTION_TO,
    OPTION_TOKEN,
    OPTION_TOLERANCE,
    OPTION_TOP,
    OPTION_VIEW,
    OPTION_WHEN,
    OPTION_WRAP,
    OPTION_COUNT,
};

struct option_row {
    enum option_id id;
    const char *name;      // long name without dashes
    char letter;           // 0: no short name
    const char *argument;  // NULL: a switch; "[=BYTES]": may be left out
    const char *help;      // one line
};

static inline bool option_may_lack_argument(const struct option_row *row) {
    return row->argument && *row->argument == '[';
}

#define COMMAND_OPTIONS_MAX 48

struct command_args;

struct command {
    const char *name;
    const char *arguments;    // of the usage line: "[SUBJECT]"
    const char *help;         // one line
    const char *description;  // paragraphs of --help; NULL: none
    int (*run)(const struct command_args *args);
    bool has_program;          // options end at the first word that is none
    size_t words_max;          // words after the options; SIZE_MAX: any number
    bool has_views;            // help lists the views (tool/query/views.h)
    bool has_no_usual_limits;  // everything is written unless --top or another limit is given
    const char *view;          // what an alias stands for: OPTION_VIEW unless it is given
    const char *first;         // names of options that --help shows; NULL: all, as --help=all does
    struct option_row options[COMMAND_OPTIONS_MAX];  // ends with name NULL
};

// An option as it was given; some may be given several times.
struct given_option {
    enum option_id id;
    const char *value;  // "" for a switch
};
#define GIVEN_OPTIONS_MAX 64

// The row of an option; NULL: the command does not have it.
const struct option_row *option_row_of(const struct command *command, enum option_id option);

struct command_args {
    const struct command *command;
    const char *values[OPTION_COUNT];  // NULL: not given; "" for a switch; else the last one
    struct given_option given[GIVEN_OPTIONS_MAX];
    size_t given_count;
    int word_count;      // words after the options
    bool has_separator;  // "--" was in front of the words
    char **words;        // ends with NULL
};

bool args_has(const struct command_args *args, enum option_id option);
// Text of an option, `otherwise` if it is not given.
const char *args_text(const struct command_args *args, enum option_id option,
                      const char *otherwise);
// Every value of an option that may be given several times: the next from `*index` on, which starts
// at 0; NULL at the end.
const char *args_next(const struct command_args *args, enum option_id option, size_t *index);
// A number of at most `most`; false after an error was filled.
bool args_number(const struct command_args *args, enum option_id option, uint64_t otherwise,
                 uint64_t most, uint64_t *number, struct error *error);
// A size such as 256M or 1.5GiB; 0 if it is not given; false after an error was filled.
bool args_size(const struct command_args *args, enum option_id option, uint64_t *bytes,
               struct error *error);

// The same; "0" is no mistake.
bool args_size_or_none(const struct command_args *args, enum option_id option, uint64_t *bytes,
                       struct error *error);

// A time such as 10s, 500ms, 2m or 1h; 0 if it is not given; false after an error was filled.
bool args_duration(const struct command_args *args, enum option_id option, uint64_t *ns,
                   struct error *error);

// A share such as "0.2%" or "0.2" (percent) as a fraction; `otherwise` if it is not given; false
// after an error was filled.
bool args_percent(const struct command_args *args, enum option_id option, double otherwise,
                  double *share, struct error *error);

// Prints "cairn: TEXT" to stderr, escaped; returns the status, so that `return command_fail(...)`.
int command_fail(int status, const struct error *error);

// Counted on from the options, so that a rule may name either.
enum circumstance {
    SAMPLED = OPTION_COUNT,  // a sample is recorded
    OF_MAPPINGS,             // the view shows mappings
    OF_HEAP_NOW,             // the view shows a heap as it is now
    OF_UNREACHABLE_NOW,      // of a process or core, what nothing leads to
    OF_LEAKS,                // the view shows leaks
    OF_SNAPSHOTS,            // snapshots of recordings are compared
    CIRCUMSTANCE_END,
};

struct option_rule {
    int subject;         // an option or a circumstance
    const int *others;   // ends with CIRCUMSTANCE_END
    bool is_needed;      // one of the others has to be there; else none of them may be
    const char *reason;  // NULL: it is plain
};

extern const struct option_rule option_rules[];  // ends with others NULL

// Whether the options that were given go together. False with an error that names two of them.
bool options_check(const struct command_args *args, struct error *error);

// The same, under a circumstance, or without it.
bool options_check_under(const struct command_args *args, enum circumstance circumstance,
                         struct error *error);
bool options_check_without(const struct command_args *args, enum circumstance circumstance,
                           struct error *error);

// How a circumstance is called, and the option that can bring it about; OPTION_COUNT: a word
// "SUBJECT@SNAPSHOT" does.
const char *circumstance_name(int circumstance);
enum option_id circumstance_cause(int circumstance);

#endif
