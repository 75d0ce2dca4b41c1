// SPDX-License-Identifier: Apache-2.0
// cairn torture: a program run again and again, each time with another allocation that fails.
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/output.h"
#include "tool/base/units.h"
#include "tool/check/results.h"
#include "tool/cmds/commands.h"
#include "tool/proc/process.h"
#include "tool/query/name_options.h"
#include "tool/torture/torture.h"
#include "tool/watch/library.h"

enum { JOBS_MAX = 256, POLL_MS = 5, LIMIT_FACTOR = 10, OUTPUT_MAX = 256 << 20 };
static const uint64_t limit_least_ns = 10 * CLOCK_SECOND_NS, usual_limit_ns = 600 * CLOCK_SECOND_NS;

struct torture {
    const struct command_args *args;
    struct torture_settings settings;
    struct torture_plan plan;
    struct torture_results results;
    struct torture_outcome usual;
    struct torture_report report;
    struct pattern *wanted, *allowed_in;
    char library[PATH_MAX], tool[PATH_MAX], directory[PATH_MAX / 2];
    bool has_own_directory, is_quiet;
    uint64_t jobs, seed, budget_ns, limit_ns, started;
    uint64_t only_hash, only_nth;  // 0: every step
    struct torture_run *runs;
    size_t next;  // step
};

static volatile sig_atomic_t is_stopped;

static void stop(int signal) {
    (void)signal;
    is_stopped = 1;
}

static bool read_duration(const struct command_args *args, enum option_id option, uint64_t *ns,
                          struct error *error) {
    const char *text = args_text(args, option, NULL);
    if (!text || (units_duration_parse(text, ns) && *ns)) return true;
    return error_set(error, "torture: \"%s\" is no duration, as 60s or 5m", text);
}

// "3f2a…:2"
static bool read_only(struct torture *torture, struct error *error) {
    const char *text = args_text(torture->args, OPTION_ONLY, NULL);
    char *end = NULL;
    if (!text) return true;
    torture->only_hash = strtoull(text, &end, 16);
    torture->only_nth = *end == ':' ? strtoull(end + 1, &end, 10) : 1;
    return (!*end && torture->only_hash && torture->only_nth) ||
           error_set(error, "torture: --only takes what a finding says, as 3f2a0c81d2e4b597:1");
}

static bool read_allowed(struct torture *torture, struct error *error) {
    const char *text = args_text(torture->args, OPTION_ALLOW, "");
    while (*text) {
        size_t length = strcspn(text, ",");
        int kind = TORTURE_CRASH;
        while (kind < TORTURE_KINDS && (strlen(torture_kind_names[kind]) != length ||
                                        strncmp(torture_kind_names[kind], text, length) != 0))
            kind++;
        if (kind == TORTURE_KINDS)
            return error_set(error,
                             "torture: --allow: crash, abort, hang, sanitizer, silent, leak or "
                             "flood, not \"%.*s\"",
                             (int)length, text);
        torture->report.allowed |= 1u << kind;
        text += length + (text[length] == ',');
    }
    return true;
}

static bool read_words(struct torture *torture, struct error *error) {
    const struct command_args *args = torture->args;
    const char *stacks = args_text(args, OPTION_STACKS, NULL);
    const char *libraries = args_text(args, OPTION_ALLOW_IN, NULL);
    const char *most = args_text(args, OPTION_MAX_OUTPUT, NULL);
    torture->jobs = 1;
    torture->settings.bytes_max = OUTPUT_MAX;
    if (!args_number(args, OPTION_JOBS, 1, JOBS_MAX, &torture->jobs, error) ||
        !args_number(args, OPTION_TORTURE_SEED, 0, UINT64_MAX, &torture->seed, error) ||
        !read_duration(args, OPTION_BUDGET, &torture->budget_ns, error) ||
        !read_duration(args, OPTION_TIME_LIMIT, &torture->limit_ns, error) ||
        !read_only(torture, error) || !read_allowed(torture, error))
        return false;
    if (!torture->jobs) return error_set(error, "torture: --jobs 0: nothing would run");
    if (most &&
        (!units_size_parse(most, &torture->settings.bytes_max) || !torture->settings.bytes_max))
        return error_set(error, "torture: \"%s\" is no size, as 64M", most);
    if (stacks && !pattern_compile(stacks, &torture->wanted, error))
        return error_wrap(error, "torture: --stacks");
    return !libraries || pattern_compile(libraries, &torture->allowed_in, error) ||
           error_wrap(error, "torture: --allow-in");
}

static bool choose_directory(struct torture *torture, struct error *error) {
    const char *state = args_text(torture->args, OPTION_STATE, NULL), *top = getenv("TMPDIR");
    if (state) {
        char *whole = realpath(state, NULL);
        if (!whole) {
            if (!torture_state_open(&torture->results, state, torture->args->words, error))
                return false;
            whole = realpath(state, NULL);
        } else if (!torture_state_open(&torture->results, whole, torture->args->words, error)) {
            free(whole);
            return false;
        }
        snprintf(torture->directory, sizeof torture->directory, "%s", whole ? whole : state);
        free(whole);
        return true;
    }
    snprintf(torture->directory, sizeof torture->directory, "%s/cairn-torture.XXXXXX",
             top && *top ? top : "/tmp");
    torture->has_own_directory = mkdtemp(torture->directory) != NULL;
    return torture->has_own_directory ||
           error_set(error, "%s: %s", torture->directory, strerror(errno));
}

static bool prepare(struct torture *torture, struct error *error) {
    struct torture_settings *settings = &torture->settings;
    if (!library_find_torture(torture->library, error)) return false;
    if (!process_own_executable(torture->tool))
        return error_set(error, "torture: where cairn itself is cannot be found");
    if (!choose_directory(torture, error)) return false;
    settings->command = torture->args->words;
    settings->library = torture->library;
    settings->tool = torture->tool;
    settings->directory = torture->directory;
    settings->input = args_text(torture->args, OPTION_STDIN, NULL);
    torture->report.input = settings->input;
    settings->has_leaks = !args_has(torture->args, OPTION_NO_LEAKS);
    torture->report.has_no_leaks = !settings->has_leaks;
    if (settings->input && access(settings->input, R_OK))
        return error_set(error, "%s: %s", settings->input, strerror(errno));
    torture->runs = calloc(torture->jobs, sizeof *torture->runs);
    if (!torture->runs) return error_set(error, "torture: no memory");
    const struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a run leaves behind is ours to end
    return true;
}

// ---- the usual run ------------------------------------------------------------------------------

static void pause_for(const struct torture_run *runs, size_t count) {
    struct pollfd files[2 * JOBS_MAX];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!runs[i].pid) continue;
        files[used++] = (struct pollfd){.fd = runs[i].output, .events = POLLIN};
        files[used++] = (struct pollfd){.fd = runs[i].errors, .events = POLLIN};
    }
    poll(files, used, POLL_MS);
}

// A run that lists; its files stay until the plan is made.
static bool run_usual(struct torture *torture, struct torture_run *run, unsigned number,
                      struct error *error) {
    torture->settings.limit_ns = torture->limit_ns ? torture->limit_ns : usual_limit_ns;
    if (!torture_run_start(run, &torture->settings, 0, 0, number, error)) return false;
    while (!is_stopped && !torture_run_poll(run, &torture->settings)) pause_for(run, 1);
    if (is_stopped) {
        torture_run_kill(run);
        return error_set(error, "torture: interrupted");
    }
    if (run->outcome.is_over_time)
        return error_set(error,
                         "torture: the command did not end within %s without a failure: "
                         "--time-limit",
                         units_duration(torture->settings.limit_ns).text);
    if (run->outcome.is_flood || run->outcome.signal == SIGXFSZ)
        return error_set(error,
                         "torture: the command writes more than %s without a failure: "
                         "--max-output",
                         units_size((int64_t)torture->settings.bytes_max).text);
    return true;
}

static bool is_same(const struct torture_outcome *one, const struct torture_outcome *other,
                    struct error *error) {
    if (one->status == other->status && one->signal == other->signal) return true;
    return error_set(error, "torture: the command ends differently by itself (status %d, then %d)",
                     one->signal ? 128 + one->signal : one->status,
                     other->signal ? 128 + other->signal : other->status);
}

static bool check_plan(const struct torture *torture, const struct torture_outcome *usual,
                       struct error *error) {
    const int not_started = 127;  // as shells and cairn run have it
    const char *word = *torture->args->words;
    if (torture->plan.targets.count) return true;
    if (usual->status == not_started)
        return error_set(error, "torture: the command cannot be started: %.*s",
                         (int)strcspn(usual->tail, "\n"), usual->tail);
    return error_set(error,
                     "torture: %s: no allocation was seen: it is static, of musl, or has an "
                     "allocator of its own",
                     word);
}

// A program that cairn run refuses, as one with a sanitizer, is run without it.
static bool run_first(struct torture *torture, struct torture_run *run, struct error *error) {
    const int refused = 125;
    if (!run_usual(torture, run, 0, error)) return false;
    if (!torture->settings.has_leaks || run->outcome.status != refused) return true;
    torture->settings.has_leaks = false;
    torture->report.has_no_leaks = true;
    torture_run_remove(run);
    torture_outcome_free(&run->outcome);
    return run_usual(torture, run, 0, error);
}

static bool make_plan(struct torture *torture, struct error *error) {
    struct torture_run first = {0}, second = {0};
    char path[PATH_MAX];
    bool is_ok = run_first(torture, &first, error);
    if (is_ok) {
        torture_run_map(&first, path);
        is_ok = torture_plan_read(path, name_options_symbols(), torture->wanted, torture->seed,
                                  &torture->plan, error);
    }
    torture_run_remove(&first);
    is_ok = is_ok && check_plan(torture, &first.outcome, error);
    is_ok = is_ok && run_usual(torture, &second, 0, error) &&
            is_same(&first.outcome, &second.outcome, error);
    torture_run_remove(&second);
    torture->report.has_same_output =
        is_ok && first.outcome.output_hash == second.outcome.output_hash;
    torture_outcome_free(&second.outcome);
    torture->usual = first.outcome;
    uint64_t longest = first.outcome.duration_ns * LIMIT_FACTOR;
    torture->settings.limit_ns = torture->limit_ns          ? torture->limit_ns
                                 : longest > limit_least_ns ? longest
                                                            : limit_least_ns;
    return is_ok;
}

// ---- all the others -----------------------------------------------------------------------------

static bool is_only(const struct torture *torture, size_t step) {
    const struct torture_step *of = &torture->plan.steps.items[step];
    return !torture->only_hash ||
           (torture->plan.targets.items[of->target].hash == torture->only_hash &&
            of->nth == torture->only_nth);
}

static bool is_over_budget(const struct torture *torture) {
    return torture->budget_ns && clock_now_ns() - torture->started > torture->budget_ns;
}

// The next step that has no result; false: there is none, or no time for it.
static bool next_step(struct torture *torture, size_t *step) {
    if (is_stopped || is_over_budget(torture)) return false;
    for (; torture->next < torture->plan.steps.count; torture->next++) {
        const struct torture_step *of = &torture->plan.steps.items[torture->next];
        uint64_t hash = torture->plan.targets.items[of->target].hash;
        if (!is_only(torture, torture->next) ||
            (!torture->only_hash && torture_results_find(&torture->results, hash, of->nth)))
            continue;
        *step = torture->next++;
        return true;
    }
    return false;
}

static void show_progress(const struct torture *torture) {
    if (torture->is_quiet || !isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r%zu of %zu, %zu findings ", torture->results.list.count,
            torture->plan.steps.count, torture_findings(&torture->report));
}

static bool end_run(struct torture *torture, struct torture_run *run, struct error *error) {
    const struct torture_step *of = &torture->plan.steps.items[run->step];
    torture_judge(&run->outcome, &torture->usual, torture->report.has_same_output);
    const struct torture_target *target = &torture->plan.targets.items[of->target];
    if (run->outcome.kind == TORTURE_LEAK)
        torture_leaks_tell(run, &torture->settings, &torture->usual, target);
    else if (run->outcome.kind > TORTURE_MISSED)
        torture_death_tell(run, &torture->plan, target);
    torture_run_remove(run);
    if (torture->only_hash) fputs(run->outcome.tail, stderr);
    show_progress(torture);
    return torture_results_add(&torture->results, target->hash, of->nth, &run->outcome) ||
           error_set(error, "torture: no memory");
}

static bool start_run(struct torture *torture, size_t slot, size_t step, struct error *error) {
    const struct torture_step *of = &torture->plan.steps.items[step];
    torture->runs[slot].step = step;
    return torture_run_start(&torture->runs[slot], &torture->settings,
                             torture->plan.targets.items[of->target].hash, of->nth,
                             (unsigned)slot + 1, error);
}

static bool is_of_run(const struct torture *torture, pid_t pid) {
    for (size_t i = 0; i < torture->jobs; i++)
        if (torture->runs[i].pid == pid) return true;
    return false;
}

// What runs left behind became children of ours.
static void reap_others(const struct torture *torture) {
    siginfo_t ended = {0};
    while (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid &&
           !is_of_run(torture, ended.si_pid))
        waitpid(ended.si_pid, NULL, 0);
}

static bool run_steps(struct torture *torture, struct error *error) {
    size_t running = 0, step;
    bool is_ok = true;
    do {
        running = 0;
        for (size_t i = 0; i < torture->jobs && is_ok; i++) {
            struct torture_run *run = &torture->runs[i];
            if (run->pid && torture_run_poll(run, &torture->settings))
                is_ok = end_run(torture, run, error);
            if (is_ok && !run->pid && next_step(torture, &step))
                is_ok = start_run(torture, i, step, error);
            running += run->pid != 0;
        }
        if (running && !is_stopped) pause_for(torture->runs, torture->jobs);
        reap_others(torture);
    } while (running && is_ok && !is_stopped);
    for (size_t i = 0; i < torture->jobs; i++) {
        if (!torture->runs[i].pid) continue;
        torture_run_kill(&torture->runs[i]);
        torture_run_remove(&torture->runs[i]);
    }
    if (!torture->is_quiet && isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
    return is_ok;
}

// A stack that this build of the program has, whatever allocation of it.
static bool add_only(struct torture *torture, struct error *error) {
    struct torture_plan *plan = &torture->plan;
    if (!torture->only_hash) return true;
    for (size_t i = 0; i < plan->steps.count; i++)
        if (is_only(torture, i)) return true;
    for (size_t i = 0; i < plan->targets.count; i++) {
        struct torture_step *step =
            plan->targets.items[i].hash == torture->only_hash ? array_push(&plan->steps) : NULL;
        if (!step) continue;
        *step = (struct torture_step){i, torture->only_nth};
        return true;
    }
    return error_set(error,
                     "torture: --only %016" PRIx64 ": the command has no such stack; a new "
                     "build has others",
                     torture->only_hash);
}

static bool write_file(const struct torture *torture, enum option_id option, const void *results,
                       void (*write)(const void *, FILE *), struct error *error) {
    const char *path = args_text(torture->args, option, NULL);
    struct output output;
    if (!path) return true;
    if (!output_open(path, true, &output, error)) return false;
    write(results, output.file);
    return output_commit(&output, error);
}

static void write_junit(const void *report, FILE *out) {
    torture_write_junit(report, out);
}

static void write_markdown(const void *results, FILE *out) {
    results_write_markdown(results, out);
}

static void write_sarif(const void *results, FILE *out) {
    results_write_sarif(results, out);
}

// "src/parser.c:120", below the working directory if it is there; for free(), NULL: not known.
static char *place_of(const struct torture_frame *site) {
    char directory[PATH_MAX], safe[PATH_MAX], *place = NULL;
    if (!site || !site->file || !site->line) return NULL;
    size_t length = getcwd(directory, sizeof directory) ? strlen(directory) : 0;
    bool is_below = length && !strncmp(site->file, directory, length) && site->file[length] == '/';
    text_escape(safe, sizeof safe, is_below ? site->file + length + 1 : site->file);
    return asprintf(&place, "%s:%u", safe, site->line) < 0 ? NULL : place;
}

static bool add_result(const struct torture *torture, size_t step, struct results *results) {
    const struct torture_outcome *outcome = &torture_result_of(&torture->report, step)->outcome;
    const struct torture_frame *site = torture_site_of(torture_target_of(&torture->report, step));
    struct result result = {.budget = torture_kind_names[outcome->kind]};
    char name[sizeof result.text / 2], *told = NULL;
    size_t size;
    text_escape(result.subject, sizeof result.subject, text_base_name(*torture->args->words));
    text_escape(name, sizeof name, site && site->function ? site->function : "its code");
    snprintf(result.text, sizeof result.text, "%s when an allocation of %s fails",
             torture_kind_texts[outcome->kind], name);
    FILE *out = open_memstream(&told, &size);
    if (out) torture_print_finding(&torture->report, step, out);
    if (out) fclose(out);
    result.offenders = told;
    result.place = place_of(site);
    return results_add(results, &result);
}

// The findings for forges, as a check has them.
static bool write_forges(const struct torture *torture, struct error *error) {
    struct results results = {0};
    bool is_ok = true;
    for (size_t i = 0; i < torture->plan.steps.count && is_ok; i++)
        if (torture_is_told(&torture->report, i)) is_ok = add_result(torture, i, &results);
    if (!is_ok) error_set(error, "torture: no memory");
    is_ok = is_ok && write_file(torture, OPTION_MARKDOWN, &results, write_markdown, error) &&
            write_file(torture, OPTION_SARIF, &results, write_sarif, error);
    if (is_ok && args_has(torture->args, OPTION_ANNOTATIONS))
        results_print_annotations(&results, stdout);
    results_free(&results);
    return is_ok;
}

static bool write_results(const struct torture *torture, struct error *error) {
    if (args_has(torture->args, OPTION_JSON))
        torture_write_json(&torture->report, stdout);
    else
        torture_print(&torture->report, stdout);
    return write_file(torture, OPTION_JUNIT, &torture->report, write_junit, error) &&
           write_forges(torture, error);
}

static bool run_all(struct torture *torture, struct error *error) {
    torture->report.command = torture->args->words;
    torture->report.plan = &torture->plan;
    torture->report.results = &torture->results;
    torture->report.usual = &torture->usual;
    torture->report.seed = torture->seed;
    torture->report.allowed_in = torture->allowed_in;
    torture->started = clock_now_ns();
    if (!prepare(torture, error) || !make_plan(torture, error) || !add_only(torture, error))
        return false;
    if (!torture->is_quiet)
        fprintf(stderr, "cairn: %s, %s to fail; a run takes %s\n",
                units_counted((int64_t)torture->plan.targets.count, "stack", "stacks").text,
                units_counted((int64_t)torture->plan.steps.count, "allocation", "allocations").text,
                units_duration(torture->usual.duration_ns).text);
    return run_steps(torture, error) && write_results(torture, error);
}

int cmd_torture(const struct command_args *args) {
    struct torture *torture = calloc(1, sizeof *torture);
    struct error error;
    if (!torture) {
        error_set(&error, "torture: no memory");
        return command_fail(STATUS_FAILURE, &error);
    }
    torture->args = args;
    torture->is_quiet = args_has(args, OPTION_QUIET);
    bool is_understood = read_words(torture, &error);
    bool is_ok = is_understood && run_all(torture, &error);
    size_t findings = is_ok ? torture_findings(&torture->report) : 0;
    if (torture->has_own_directory) rmdir(torture->directory);
    torture_outcome_free(&torture->usual);
    torture_results_free(&torture->results);
    torture_plan_free(&torture->plan);
    pattern_free(torture->wanted);
    pattern_free(torture->allowed_in);
    free(torture->runs);
    free(torture);
    if (!is_ok) return command_fail(is_understood ? STATUS_FAILURE : STATUS_USAGE, &error);
    return findings || is_stopped ? STATUS_FAILURE : STATUS_OK;
}
