// SPDX-License-Identifier: Apache-2.0
// cairn run: starts a program beside a watch, waits, reports. The program keeps its streams,
// signals, terminal and exit status.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/hello.h"
#include "format/languages.h"
#include "format/settings.h"
#include "tool/attach/entry_patch.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/finish.h"
#include "tool/cmds/looks.h"
#include "tool/cmds/open.h"
#include "tool/cmds/recording_options.h"
#include "tool/cmds/run_log.h"
#include "tool/cmds/run_static.h"
#include "tool/cmds/symbolize.h"
#include "tool/cmds/wrap_rows.h"
#include "tool/model/left_out.h"
#include "tool/proc/process.h"
#include "tool/query/name_options.h"
#include "tool/watch/job.h"
#include "tool/watch/library.h"
#include "tool/watch/program.h"
#include "tool/watch/run_directory.h"
#include "tool/watch/watch.h"

enum {
    STATUS_RUN_FAILED = 125,
    STATUS_CANNOT_EXECUTE = 126,
    STATUS_NOT_FOUND = 127,
    STATUS_SIGNAL_BASE = 128,
    MESSAGE_BYTES = 1024,
};

struct run_command {
    const struct command_args *args;
    struct program program;
    struct launch launch;
    struct recording_options recording;
    const char *children;  // as the watch takes it
    struct schedule schedule;
    struct run_log *log;  // NULL: there is none
    struct run_directory store;
    struct watch watch;
    struct event_drain_wish events;
    struct event_drain drain;
    struct entry_patcher begin;
    struct run_static fixed;  // of a static program
    struct job job;
    enum symbolize_which symbols;
    struct finish_early early;
    char *wrap_rows;  // allocators by name; NULL: none
    char *variables;  // as the watch tells them
    FILE *summary;    // where the report goes; NULL: nowhere (--quiet)
};

static bool run_open_summary(struct run_command *run, struct error *error) {
    const char *path = args_text(run->args, OPTION_SUMMARY, NULL);
    if (path) {
        run->summary = fopen(path, "ae");
        return run->summary || error_set(error, "%s: %s", path, strerror(errno));
    }
    int copy = args_has(run->args, OPTION_QUIET) ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    run->summary = copy >= 0 ? fdopen(copy, "w") : NULL;
    return true;
}

static bool run_is_recordable(struct run_command *run, struct error *error) {
    if (!run->program.obstacle || args_has(run->args, OPTION_IGNORE_CHECKS)) return true;
    return error_set(error, "%s cannot be recorded: %s (--ignore-checks runs it nevertheless)",
                     run->program.path, run->program.obstacle);
}

// --python for another Python than the one whose frames can be read.
static bool run_is_readable_python(struct run_command *run, struct error *error) {
    const unsigned major_shift = 24, minor_shift = 16, mask = 0xff;
    // Its objects come from an allocator in itself, whose functions are found (entries.h).
    if (run->launch.is_for_python && python_is_free_threaded(run->program.image))
        run->launch.is_for_python = false;
    uint32_t version = run->recording.is_for_python ? python_of_image(run->program.image) : 0;
    if (!version || cairn_python_is_read(version)) return true;
    return error_set(error,
                     "%s is Python %u.%u, and --python reads the frames of " CAIRN_PYTHON_READ
                     " only; without it, PYTHONMALLOC=malloc in the environment shows its objects",
                     run->program.path, version >> major_shift, version >> minor_shift & mask);
}

static void run_say(const struct run_command *run, const char *text) {
    char safe[MESSAGE_BYTES];
    text_escape(safe, sizeof safe, text);
    fprintf(run->summary ? run->summary : stderr, "cairn: %s\n", safe);
}

static void run_announce(struct run_command *run) {
    if (!run->summary || !isatty(fileno(run->summary))) return;
    char name[NAME_MAX], path[NAME_MAX];
    text_escape(name, sizeof name, program_called(&run->program, run->program.path));
    text_escape(path, sizeof path, program_base_name(run->store.path));
    fprintf(run->summary, "cairn: recording %s (pid %d) to %s\n", name, (int)run->job.child, path);
    fflush(run->summary);
}

// Why nothing may have been recorded although the program ran.
static const char *run_empty_reason(const struct run_command *run) {
    static char text[MESSAGE_BYTES];
    const rlim_t room_bytes = 256 << 20;  // what the library reserves, rounded up (thread/slots.c)
    struct rlimit space;
    struct error error;
    if (run->program.obstacle) return run->program.obstacle;
    if (run->fixed.problem.text[0]) return run->fixed.problem.text;
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur < room_bytes)
        return "cairn needs some 250 MiB of address space, and ulimit -v leaves less";
    if (!limits_leave_room(&error)) {
        snprintf(text, sizeof text, "%s", error.text);
        return text;
    }
    if (!run->program.own_allocator || !run->begin.refused_count) return NULL;
    snprintf(text, sizeof text, "the program is linked with %s, whose calls cannot be seen",
             run->program.own_allocator);
    return text;
}

// Allocators in executables that could not be led to the library.
static void run_say_refused(const struct run_command *run) {
    const struct entry_patcher *begin = &run->begin;
    char text[MESSAGE_BYTES];
    if (!begin->refused_count) return;
    snprintf(text, sizeof text, "%s's own %s not recorded: %s", begin->refused,
             begin->wrap_rows ? "functions (--wrap, or an allocator of its own) are"
                              : "allocator is",
             begin->problem.text);
    run_say(run, text);
}

static void run_begin(void *context, pid_t pid, uint64_t attachment) {
    entry_patch_started(context, pid, attachment);
}

// The program's own modules are asked for names as they were while it ran.
static void run_hold_files(const struct run_command *run) {
    name_options_symbols()->held = run->watch.files.list;
    name_options_symbols()->held_count = run->watch.files.count;
}

static void run_over(void *context, struct memory *memory, const struct memory_end *end) {
    struct run_command *run = context;
    run_hold_files(run);
    finish_begin(&run->early, memory, end, run->symbols, !run->summary);
}

// Programs that were started and not recorded, a line for each reason.
static void run_say_unrecorded(const struct run_command *run) {
    const struct cairn_left_out *list = &run->watch.left_out;
    unsigned long long unnamed = left_out_unnamed(list);
    char text[MESSAGE_BYTES];
    for (uint32_t reason = 0; reason < CAIRN_UNRECORDED_KINDS; reason++) {
        const char *first = NULL;
        uint64_t count = 0;
        for (size_t i = 0; i < CAIRN_LEFT_OUT_PROGRAMS; i++) {
            const struct cairn_left_out_program *program = &list->programs[i];
            if (!program->count || program->reason != reason) continue;
            if (!first) first = program->name;
            count += program->count;
        }
        if (!count) continue;
        if (count > 1)
            snprintf(text, sizeof text, "%s and %llu more were not recorded: %s", first,
                     (unsigned long long)count - 1, left_out_clause(reason));
        else
            snprintf(text, sizeof text, "%s was not recorded: %s", first, left_out_clause(reason));
        run_say(run, text);
    }
    snprintf(text, sizeof text, "%llu further programs were not recorded", unnamed);
    if (unnamed) run_say(run, text);
}

// Processes of several whose recordings could not be written.
static void run_say_lost(const struct run_command *run) {
    const struct run_directory *store = &run->store;
    char text[MESSAGE_BYTES];
    if (!store->lost_count || store->row_count < 2) return;
    snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " recordings %s lost: %s%s: %s",
             store->lost_count, store->row_count, store->lost_count == 1 ? "is" : "are",
             store->lost_names, store->has_unnamed ? " and others" : "", store->lost_because);
    run_say(run, text);
}

// Names into the recordings while the program's files are certainly there, and the summary.
static void run_report(struct run_command *run) {
    struct error error;
    char text[MESSAGE_BYTES];
    struct summary_options options = {.by = run->recording.by,
                                      .has_all_frames = args_has(run->args, OPTION_ALL_FRAMES),
                                      .empty_reason = run_empty_reason(run),
                                      .symbols = run->symbols};
    uint64_t top = SUMMARY_TOP_DEFAULT;
    run_hold_files(run);
    args_number(run->args, OPTION_TOP, top, SIZE_MAX, &top, NULL);
    options.top = (size_t)top;
    // a recording that could not be kept is said under --quiet too
    const struct error *problem = run->summary ? &run->watch.problem : &run->watch.writer.problem;
    if (problem->text[0]) run_say(run, problem->text);
    run_say_lost(run);
    if (run->summary) run_say_unrecorded(run);
    if (run->summary) run_say_refused(run);
    if (run->store.is_made && access(run->store.path, F_OK) != 0) {
        // of one process that was said
        snprintf(text, sizeof text, "%s is gone, and with it what was recorded", run->store.path);
        if (run->store.row_count > 1 || !problem->text[0]) run_say(run, text);
    } else if (run->store.is_made) {
        bool is_done = finish_print(run->summary, run->store.path, &options, &run->early, &error);
        if (!is_done && run->summary) run_say(run, error.text);
        if (!run->summary) finish_say_numbered(&run->store);
    } else if (run->summary && run->watch.writer.problem.text[0]) {
        run_say(run, "the recording is lost: nothing of it was kept");
    } else if (!run->watch.writer.problem.text[0]) {
        snprintf(text, sizeof text, "nothing was recorded%s%s", options.empty_reason ? ": " : "",
                 options.empty_reason ? options.empty_reason : "");
        run_say(run, text);
    }
}

// Where the events of the program are.
static void run_say_log(const struct run_command *run) {
    char text[MESSAGE_BYTES];
    if (!run->summary || !run->drain.first_log[0]) return;
    unsigned more = run->drain.log_count - 1;
    char which[sizeof(struct unit_text) + sizeof "the last  of "] = "";
    if (run->events.keep_bytes)
        snprintf(which, sizeof which, "the last %s of ",
                 units_size((int64_t)run->events.keep_bytes).text);
    snprintf(text, sizeof text, "%sevents are in %s%s, for cairn events and cairn whatif", which,
             run->events.path ? run->drain.first_log : text_base_name(run->drain.first_log),
             more ? " and further logs beside it" : "");
    run_say(run, text);
}

static void run_open_page(struct run_command *run) {
    struct error error;
    if (!args_has(run->args, OPTION_OPEN) || !run->store.is_made) return;
    name_options_symbols()->is_quick = false;
    if (!open_show(run->store.path, &error)) command_fail(STATUS_FAILURE, &error);
}

static int run_status(const struct run_command *run) {
    int status = run->job.wait_status;
    return WIFSIGNALED(status) ? STATUS_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

// The program leads an allocator that is linked into it to the library by itself.
static bool run_lead(struct run_command *run, struct error *error) {
    struct error problem;
    char *digits = NULL;
    bool is_ok =
        run->program.refuses_preload || entry_patch_plan(run->program.image, run->program.is_linker,
                                                         run->begin.is_anyway, &digits, &problem);
    if (!is_ok && !args_has(run->args, OPTION_QUIET)) {
        run->begin.refused_count = 1;
        run->begin.problem = problem;
        snprintf(run->begin.refused, sizeof run->begin.refused, "%s",
                 program_base_name(run->program.image));
        if (!run_open_summary(run, error)) return false;
        run_say_refused(run);
        fclose(run->summary);
    }
    is_ok = digits ? setenv(CAIRN_VARIABLE(ENTRIES), digits, 1) == 0
                   : unsetenv(CAIRN_VARIABLE(ENTRIES)) == 0;
    free(digits);
    return is_ok || error_set(error, "out of memory");
}

// cairn run --exec: becomes the program, which then writes its own file.
static int run_exec(struct run_command *run, struct error *error) {
    const char *output = args_text(run->args, OPTION_OUTPUT, NULL);
    const char *name = program_called(&run->program, run->args->words[0]);
    if (!run_directory_choose(&run->store, output, name, (int)getpid(), error))
        return STATUS_RUN_FAILED;
    finish_say_numbered(&run->store);
    run->launch.output = run->store.path;
    if (run->launch.library[0]) library_mark(run->launch.library, CAIRN_MARK_ALONE, 0);
    if (!run_lead(run, error) || !launch_set_environment(&run->launch, error))
        return STATUS_RUN_FAILED;
    execv(run->program.path, run->args->words);
    error_set(error, "%s: %s", run->program.path, strerror(errno));
    return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}

// Which children are recorded, as the watch takes it.
static bool run_read_children(struct run_command *run, struct error *error) {
    const char *which = args_text(run->args, OPTION_CHILDREN, "all");
    if (!*which)
        return error_set(error, "run: --children needs all, none or a pattern of programs' names");
    bool is_all = !strcmp(which, "all"), is_none = !strcmp(which, "none");
    run->children = is_all ? NULL : is_none ? "" : which;
    if (!is_all && args_has(run->args, OPTION_EXEC))
        return error_set(error, "run: --children cannot be chosen with --exec");
    return symbolize_read_option(run->args, &run->symbols, error) || error_wrap(error, "run");
}

// Windows and snapshots, which need the tool beside the program.
static bool run_read_schedule(struct run_command *run, struct error *error) {
    struct schedule *schedule = &run->schedule;
    const char *rule;
    size_t next = 0;
    schedule->is_off_at_start = args_has(run->args, OPTION_OFF);
    while ((rule = args_next(run->args, OPTION_WHEN, &next)))
        if (!schedule_add_rule(schedule, rule, error)) return error_wrap(error, "run");
    return args_duration(run->args, OPTION_START_AFTER, &schedule->start_after_ns, error) &&
           args_duration(run->args, OPTION_RECORD_FOR, &schedule->record_for_ns, error) &&
           args_duration(run->args, OPTION_MARK_EVERY, &schedule->mark_every_ns, error);
}

static bool run_read_events(struct run_command *run, struct error *error) {
    const uint64_t ns_per_ms = 1000000, keep_least = 1u << 20;
    const char *path = args_text(run->args, OPTION_EVENTS, "");
    struct event_drain_wish *events = &run->events;
    uint64_t for_ns = 0;
    *events = (struct event_drain_wish){.path = *path ? path : NULL,
                                        .is_from_start = args_has(run->args, OPTION_EVENTS)};
    if (!args_duration(run->args, OPTION_EVENTS_FOR, &for_ns, error) ||
        !args_size(run->args, OPTION_EVENTS_KEEP, &events->keep_bytes, error))
        return false;
    events->for_ms = (for_ns + ns_per_ms - 1) / ns_per_ms;
    if (for_ns && !events->is_from_start)
        return error_set(error, "run: --events-for needs --events");
    if (!args_has(run->args, OPTION_EVENTS_KEEP) || events->keep_bytes >= keep_least) return true;
    return error_set(error, "run: --events-keep needs 1 MiB at least");
}

static bool run_read_options(struct run_command *run, struct error *error) {
    uint64_t unused = 0;
    if (!args_number(run->args, OPTION_TOP, 0, SIZE_MAX, &unused, error) ||
        !recording_options_read(run->args, &run->recording, &run->launch, error) ||
        !run_read_children(run, error) || !run_read_schedule(run, error) ||
        !run_read_events(run, error))
        return false;
    run->launch.is_for_python = run->recording.is_for_python;
    if (!wrap_rows_read(run->args, &run->wrap_rows, error)) return false;
    run->launch.wrap_rows = run->wrap_rows;
    run->begin.wrap_rows = run->wrap_rows;
    run->begin.is_anyway = args_has(run->args, OPTION_IGNORE_CHECKS);
    return true;
}

static bool run_prepare(struct run_command *run, int *status, struct error *error) {
    *status = STATUS_USAGE;
    if (!run_read_options(run, error)) return false;
    if (!program_find_command(run->args->words, &run->program, status, error)) return false;
    *status = STATUS_RUN_FAILED;
    if (!run_is_recordable(run, error) || !run_is_readable_python(run, error)) return false;
    if (run->wrap_rows && !entry_patch_check_wrapped(run->program.image, run->wrap_rows, error))
        return error_wrap(error, "run: --wrap");
    if (run->program.is_static && !run->program.obstacle &&
        !run_static_prepare(&run->fixed, run->args, &run->program, error))
        return false;
    if (run->program.refuses_preload) return true;  // --ignore-checks
    if (run->program.records_itself) return true;
    return library_find(run->launch.library, run->program.brings_operator_new, error);
}

// The place for the recordings, which has the program's pid in its name.
static bool run_make_store(struct run_command *run, const struct launched *launched,
                           struct error *error) {
    const char *output = args_text(run->args, OPTION_OUTPUT, NULL);
    const char *name = program_called(&run->program, run->args->words[0]);
    return run_directory_choose(&run->store, output, name, (int)launched->pid, error) &&
           run_directory_make(&run->store, error);
}

static bool run_start(struct run_command *run, int *status, struct error *error) {
    struct launched launched;
    struct error unused;
    char pattern[PATH_MAX];
    *status = STATUS_RUN_FAILED;
    if (!event_drain_open(&run->drain, &run->events, error)) return false;
    if (!watch_open(&run->watch, &run->store, &run->schedule, error)) return false;
    const char *log = args_text(run->args, OPTION_LOG, NULL);
    if (log && !run_log_open(log, &run->log, error)) return false;
    if (log) name_options_symbols()->is_quick = true;  // a block is not to wait for large files
    run->watch.log = log ? run_log_write : NULL;
    run->watch.has_quick_clock = args_has(run->args, OPTION_AGES);
    run->watch.log_context = run->log;
    run->watch.drain = &run->drain;
    unsigned looks = (args_has(run->args, OPTION_LOOK) ? LOOKS_AT_HEAP : 0) |
                     (args_has(run->args, OPTION_UNREACHABLE) ? LOOKS_UNREACHABLE : 0);
    if (looks) run->watch.last_look = looks_of(looks);
    run->watch.begin = run_begin;
    run->watch.begin_context = &run->begin;
    run_static_follow(&run->fixed, run->args, &run->watch, &run->job);
    run->watch.over = run_over;
    run->watch.over_context = run;
    run->launch.socket_name = run->watch.listener.name;
    if (run->launch.library[0])
        library_mark(run->launch.library, CAIRN_MARK_RUN, run->watch.listener.number);
    if (!launch_fork(&run->launch, run->program.path, run->args->words, &run->job.old_mask,
                     &run->job.old_limits, &launched, error))
        return false;
    bool is_held = run->program.is_static && !run->program.obstacle;
    if ((is_held && !run_static_hold(&run->fixed, &launched, error)) ||
        !run_make_store(run, &launched, error)) {
        launch_cancel(&launched);
        return false;
    }
    // for processes that begin to record when cairn is gone
    run_directory_path_of(&run->store, "%n.%p.cairn", pattern, sizeof pattern);
    run->launch.output = pattern;
    run->variables = launch_text(&run->launch);
    run->watch.variables = run->variables;
    run_static_tell(&run->fixed, run->variables);
    run->launch.output = NULL;
    job_started(&run->job, launched.pid);
    watch_start(&run->watch, launched.pid, program_called(&run->program, run->args->words[0]),
                run->children);
    if (launch_go(&launched, pattern, run->program.path, status, error)) return true;
    if (run->program.missing[0] && *status != STATUS_RUN_FAILED)
        error_set(error, "%s needs %s, which is not there", run->program.path,
                  run->program.missing);
    run_directory_finish(&run->store, false, &unused);
    return false;
}

// As many are open together until a first process is recorded.
enum { RUN_FILES = 7, RUN_FILES_STATIC = 11 };

// Becomes the program where the tool cannot be beside it.
static int run_unrecorded(struct run_command *run, const struct error *reason) {
    struct error error;
    char text[MESSAGE_BYTES];
    snprintf(text, sizeof text, "%s runs, and nothing is recorded: %s", run->program.path,
             reason->text);
    run_say(run, text);
    if (run->summary) fflush(run->summary);
    int problem =
        launch_plain(run->program.path, run->args->words, &run->job.old_mask, &run->job.old_limits);
    error_set(&error, "%s: %s", run->program.path, strerror(problem));
    return command_fail(problem == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE, &error);
}

static int run_beside(struct run_command *run) {
    struct error error;
    int status;
    int files = run->program.is_static ? RUN_FILES_STATIC : RUN_FILES;
    if (!run_open_summary(run, &error)) return command_fail(STATUS_RUN_FAILED, &error);
    if (!job_prepare(&run->job, &error) || !process_can_open(files, &error))
        return run_unrecorded(run, &error);
    if (!run_start(run, &status, &error)) return command_fail(status, &error);
    run_announce(run);
    while (!run->job.is_over) {
        watch_turn(&run->watch, run->job.signal_file);
        job_handle(&run->job);
    }
    run_static_close(&run->fixed);
    watch_finish(&run->watch, run->job.wait_status, run->job.rusage_peak_bytes);
    job_finish(&run->job);
    run_report(run);
    run_say_log(run);
    finish_free(&run->early);
    run_open_page(run);
    watch_close(&run->watch);
    free(run->variables);
    run_log_close(run->log);
    if (run->summary) fclose(run->summary);
    job_end_alike(&run->job);
    return run_status(run);
}

int cmd_run(const struct command_args *args) {
    struct run_command run = {
        .args = args, .job = {.signal_file = -1}, .early = {.memory = {.file = -1}}};
    struct error error;
    int status = STATUS_USAGE;
    if (!run_prepare(&run, &status, &error)) return command_fail(status, &error);
    if (!args_has(args, OPTION_EXEC)) return run_beside(&run);
    status = run_exec(&run, &error);
    return command_fail(status, &error);
}
