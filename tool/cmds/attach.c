// SPDX-License-Identifier: Apache-2.0
// cairn attach: records a process that runs already, and with --children those that descend from
// it, beside a watch, until it is asked to leave.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "format/settings.h"
#include "tool/attach/wrapped.h"
#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/attach_cgroup.h"
#include "tool/cmds/attach_tree.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/finish.h"
#include "tool/cmds/recording_options.h"
#include "tool/cmds/wrap_rows.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/name_options.h"
#include "tool/watch/job.h"
#include "tool/watch/library.h"
#include "tool/watch/program.h"
#include "tool/watch/watch.h"

enum { SETTINGS_BYTES = 1536 };

struct session {
    const struct command_args *args;
    pid_t pid;
    char name[NAME_MAX];           // of its program
    char safe[ATTACH_NAME_BYTES];  // the same, safe to print
    struct launch launch;
    struct recording_options recording;
    char *wrap_rows;                // allocators by name; NULL: none
    struct symbol_options symbols;  // for types of pre-existing blocks
    enum symbolize_which which_symbols;
    uint64_t record_for_ns, end_ns;
    char settings[SETTINGS_BYTES];
    struct attach_tree tree;
    struct run_directory store;
    struct schedule schedule;
    struct watch watch;
    struct event_drain drain;
    int signal_file;
};

static bool find_process(struct session *session, struct error *error) {
    const char *which = session->args->words[0];
    bool is_found = session->tree.has_children ? running_find_tree(which, &session->pid, error)
                                               : running_find(which, &session->pid, error);
    if (!is_found) return false;
    if (!process_name(session->pid, session->name))
        snprintf(session->name, sizeof session->name, "process");
    text_escape(session->safe, sizeof session->safe, session->name);
    return true;
}

static void add_setting(struct session *session, const char *name, const char *value) {
    struct attach_request *request = &session->tree.request;
    const size_t room = sizeof session->settings - 1 - request->settings_bytes;
    int length = snprintf(session->settings + request->settings_bytes, room, "%s=%s", name, value);
    if (length > 0 && (size_t)length < room) request->settings_bytes += (size_t)length + 1;
}

// Forks of a process that is recorded find the watch by its socket, if they are recorded too.
static void make_settings(struct session *session) {
    struct attach_request *request = &session->tree.request;
    request->settings = session->settings;
    for (size_t i = 0; i < session->recording.count; i++)
        add_setting(session, session->recording.variables[i].name,
                    session->recording.variables[i].value);
    char own[PATH_MAX];
    if (process_own_executable(own)) add_setting(session, CAIRN_VARIABLE(TOOL), own);
    if (session->tree.has_children)
        add_setting(session, CAIRN_VARIABLE(SOCKET), session->watch.listener.name);
    session->settings[request->settings_bytes++] = 0;
}

static void take_signals(struct session *session) {
    static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t handled;
    sigemptyset(&handled);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) sigaddset(&handled, asking[i]);
    session->signal_file = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&handled, SIGPIPE);
    sigaddset(&handled, SIGXFSZ);  // a limit of file sizes is an error where a file is written
    sigprocmask(SIG_BLOCK, &handled, NULL);
}

static bool has_signal(struct session *session) {
    struct signalfd_siginfo info;
    return read(session->signal_file, &info, sizeof info) == sizeof info;
}

static bool session_read(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    uint64_t unused = 0;
    if (args_has(args, OPTION_WHEN) || args_has(args, OPTION_KEEP) ||
        args_has(args, OPTION_NO_COPY_LIMIT))
        return error_set(error, "attach: --when, --keep and --no-copy-limit are for --cgroup");
    if (!args->word_count) return error_set(error, "attach: give the pid or name of a process");
    if (!symbolize_read_option(args, &session->which_symbols, error))
        return error_wrap(error, "attach");
    return wrap_rows_read(args, &session->wrap_rows, error) &&
           args_number(args, OPTION_TOP, 0, SIZE_MAX, &unused, error) &&
           args_duration(args, OPTION_RECORD_FOR, &session->record_for_ns, error) &&
           recording_options_read(args, &session->recording, &session->launch, error);
}

// Everything that can be looked at before the process is touched.
static bool session_prepare(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    const char *output = args_text(args, OPTION_OUTPUT, NULL);
    struct attach_tree *tree = &session->tree;
    tree->has_children = args_has(args, OPTION_CHILDREN);
    if (!find_process(session, error)) return false;
    tree->is_anyway = args_has(args, OPTION_IGNORE_CHECKS);
    tree->is_quiet = args_has(args, OPTION_QUIET);
    tree->watch = &session->watch;
    bool is_ok = limits_leave_room(error) &&
                 library_find(session->launch.library, program_has_operators(session->pid), error);
    tree->library_path = session->launch.library;
    if (!is_ok || !attach_tree_open(tree, session->pid, error))
        return error_wrap(error, "cannot attach to %s %d", session->safe, (int)session->pid);
    return run_directory_choose(&session->store, output, session->name, (int)session->pid, error) &&
           run_directory_make(&session->store, error) &&
           watch_open(&session->watch, &session->store, &session->schedule, error) &&
           event_drain_open(&session->drain, &(struct event_drain_wish){0}, error);
}

static bool session_start(struct session *session, struct error *error) {
    struct error unused;
    struct attach_request *request = &session->tree.request;
    make_settings(session);
    session->symbols = *name_options_symbols();
    session->symbols.process = (uint32_t)session->pid;
    request->symbols = &session->symbols;
    request->wrap_rows = session->wrap_rows;
    request->existing = args_has(session->args, OPTION_NO_SCAN_HEAP) ? EXISTING_NEVER
                        : args_has(session->args, OPTION_SCAN_HEAP)  ? EXISTING_ALWAYS
                                                                     : EXISTING_IF_SMALL;
    session->watch.drain = &session->drain;
    watch_start(&session->watch, 0, session->name, NULL);
    if (attach_tree_start(&session->tree, error)) return true;
    error_wrap(error, "cannot attach to %s %d", session->safe, (int)session->pid);
    watch_finish(&session->watch, 0, 0);
    run_directory_finish(&session->store, false, &unused);
    return false;
}

static void say_started(const struct session *session) {
    const struct attach *attach = &session->tree.named->attach;
    char path[ATTACH_NAME_BYTES];
    if (args_has(session->args, OPTION_QUIET)) return;
    text_escape(path, sizeof path, program_base_name(session->store.path));
    if (session->tree.named->state == MEMBER_REFUSED)
        fprintf(stderr, "cairn: recording descendants of %s %d to %s\n", session->safe,
                (int)session->pid, path);
    else
        fprintf(stderr, "cairn: recording %s %d to %s; paused %s in total, longest %s\n",
                session->safe, (int)session->pid, path, units_duration(attach->pause_ns).text,
                units_duration(attach->longest_pause_ns).text);
    if (attach->uncounted_why[0])
        fprintf(stderr, "cairn: pre-existing blocks are not counted: %s\n", attach->uncounted_why);
    const struct entry_wish *missing = wrapped_missing(attach);
    if (missing)
        fprintf(stderr, "cairn: --wrap: %s is %s, and its heap is not counted\n", missing->name,
                missing->is_variable ? "no variable of the executable that can be read"
                                     : "in no library so far");
    if (attach->slots.elsewhere_count)
        fprintf(stderr, "cairn: not recorded: %s of other namespaces (dlmopen)\n",
                units_counted((int64_t)attach->slots.elsewhere_count, "module", "modules").text);
    if (isatty(STDERR_FILENO) && !session->record_for_ns)
        fprintf(stderr, "cairn: Ctrl-C leaves %s\n", session->tree.has_children ? "them" : "it");
    fflush(stderr);
}

static bool is_asked_to_leave(struct session *session) {
    if (has_signal(session)) return true;
    for (const struct watched *process = session->watch.list; process; process = process->next) {
        const struct cairn_control *control = &process->memory.header->control;
        if (__atomic_load_n(&control->is_leave_wanted, __ATOMIC_RELAXED)) return true;
    }
    return session->end_ns && clock_now_ns() >= session->end_ns;
}

static void say_left(const struct session *session) {
    const struct attach_tree *tree = &session->tree;
    uint64_t missed = tree->missed_count, unsaid = tree->unsaid_count;
    if (args_has(session->args, OPTION_QUIET)) return;
    if (tree->left_count && !tree->has_children)
        fprintf(stderr, "cairn: detached from %s %d; paused %s in total, longest %s\n",
                session->safe, (int)session->pid, units_duration(tree->pause_ns).text,
                units_duration(tree->longest_pause_ns).text);
    else if (tree->left_count)
        fprintf(stderr, "cairn: detached from %s; longest pause %s\n",
                units_counted((int64_t)tree->left_count, "process", "processes").text,
                units_duration(tree->longest_pause_ns).text);
    if (unsaid)
        fprintf(stderr, "cairn: not recorded: %s more of such programs\n",
                units_counted((int64_t)unsaid, "process", "processes").text);
    if (missed)
        fprintf(stderr, "cairn: not recorded: %s seen for too short a time\n",
                units_counted((int64_t)missed, "process", "processes").text);
}

// Until it is asked to leave, or nothing is left.
static void session_record(struct session *session) {
    for (;;) {
        watch_turn(&session->watch, session->signal_file);
        if (is_asked_to_leave(session)) break;
        if (!attach_tree_turn(&session->tree)) break;
    }
    attach_tree_leave(&session->tree);
    say_left(session);
}

static int session_report(struct session *session) {
    struct error error;
    struct summary_options options = {.by = session->recording.by,
                                      .has_all_frames = args_has(session->args, OPTION_ALL_FRAMES),
                                      .symbols = session->which_symbols};
    uint64_t top = SUMMARY_TOP_DEFAULT;
    name_options_symbols()->held = session->watch.files.list;
    name_options_symbols()->held_count = session->watch.files.count;
    args_number(session->args, OPTION_TOP, top, SIZE_MAX, &top, NULL);
    options.top = (size_t)top;
    struct error *problem = &session->tree.problem;
    if (!session->watch.greeted_count && !problem->text[0])
        error_set(problem, "%s %d: neither it nor a descendant could be recorded", session->safe,
                  (int)session->pid);
    bool is_failed = problem->text[0] || session->watch.problem.text[0];
    bool is_quiet = args_has(session->args, OPTION_QUIET);
    FILE *out = is_failed || is_quiet ? NULL : stderr;
    bool is_reported = finish_print(out, session->store.path, &options, NULL, &error);
    if (!out) finish_say_numbered(&session->store);
    if (problem->text[0]) return command_fail(STATUS_FAILURE, problem);
    if (session->watch.problem.text[0])
        return command_fail(STATUS_FAILURE, &session->watch.problem);
    return is_reported || is_quiet ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}

// The little that the tool does would take many seconds beside threads that want every processor.
// Where that is allowed, and nobody said otherwise by nice(1).
static void come_first(void) {
    const int nicest = -20;
    if (getpriority(PRIO_PROCESS, 0) == 0) setpriority(PRIO_PROCESS, 0, nicest);
}

int cmd_attach(const struct command_args *args) {
    struct session session = {.args = args};
    struct limits old_limits;
    struct error error;
    if (args_has(args, OPTION_CGROUP)) return attach_cgroup(args);
    if (!session_read(&session, &error)) return command_fail(STATUS_USAGE, &error);
    come_first();
    limits_raise(&old_limits);
    take_signals(&session);
    if (!session_prepare(&session, &error) || !session_start(&session, &error)) {
        attach_tree_close(&session.tree);
        return command_fail(STATUS_FAILURE, &error);
    }
    say_started(&session);
    if (session.record_for_ns) session.end_ns = clock_now_ns() + session.record_for_ns;
    session_record(&session);
    watch_finish(&session.watch, 0, 0);
    int status = session_report(&session);
    watch_close(&session.watch);
    attach_tree_close(&session.tree);
    free(session.wrap_rows);
    return status;
}
