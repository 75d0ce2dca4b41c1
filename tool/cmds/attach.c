// SPDX-License-Identifier: Apache-2.0
// cairn attach: records a process that runs already, beside a watch, until it is asked to leave.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tool/attach/attach.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/name_options.h"
#include "tool/cmds/recording_options.h"
#include "tool/cmds/report_summary.h"
#include "tool/cmds/running.h"
#include "tool/watch/launch.h"
#include "tool/watch/program.h"
#include "tool/watch/watch.h"

// How often modules that were loaded meanwhile are looked for.
#define FOLLOW_NS UINT64_C(200000000)

enum { NAME_BYTES = 4 * NAME_MAX, SETTINGS_BYTES = 1536 };

enum leaving { STAYING, LEAVING_ASKED, LEAVING_ENDED, LEAVING_REPLACED, LEAVING_FAILED };

struct session {
    const struct command_args *args;
    pid_t pid;
    char name[NAME_MAX];    // of its program
    char safe[NAME_BYTES];  // the same, safe to print
    struct launch launch;
    struct recording_options recording;
    struct symbol_options symbols;  // for types of blocks from before
    uint64_t record_for_ns, end_ns, next_follow_ns;
    struct attach attach;
    struct store store;
    struct schedule schedule;
    struct watch watch;
    struct watched *process;
    int signal_file;
    struct error problem;  // why it is left before its time
};

static bool find_process(struct session *session, struct error *error) {
    if (!running_find(session->args->words[0], &session->pid, error)) return false;
    if (!watched_program(session->pid, session->name))
        snprintf(session->name, sizeof session->name, "process");
    text_escape(session->safe, sizeof session->safe, session->name);
    return true;
}

// Programs that cairn run would not record either.
static bool check_program(struct session *session, struct error *error) {
    char path[64];
    struct program program;
    struct error unused;
    int status;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)session->pid);
    if (!program_find(path, &program, &status, &unused)) return true;  // told by attach_open
    if (program.records_itself)
        return error_set(error, "cairn is linked into it: it records itself");
    if (program.own_allocator && !session->attach.entries.items.count)
        return error_set(error, "it is linked with %s, whose calls cannot be seen",
                         program.own_allocator);
    if (program.refuses_preload) return error_set(error, "%s", program.obstacle);
    return true;
}

static bool take_memory(void *context, int file, struct error *error) {
    struct session *session = context;
    session->process = watch_adopt(&session->watch, session->pid, file, error);
    if (!session->process) return false;
    session->process->memory.header->is_attached = 1;
    return true;
}

static size_t make_settings(const struct session *session, char settings[SETTINGS_BYTES]) {
    size_t used = 0;
    for (size_t i = 0; i < session->recording.count; i++) {
        const struct launch_variable *variable = &session->recording.variables[i];
        used += (size_t)snprintf(settings + used, SETTINGS_BYTES - used, "%s=%s", variable->name,
                                 variable->value) +
                1;
    }
    settings[used++] = 0;
    return used;
}

static void take_signals(struct session *session) {
    static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t handled;
    sigemptyset(&handled);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) sigaddset(&handled, asking[i]);
    session->signal_file = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&handled, SIGPIPE);
    sigprocmask(SIG_BLOCK, &handled, NULL);
}

static bool has_signal(struct session *session) {
    struct signalfd_siginfo info;
    return read(session->signal_file, &info, sizeof info) == sizeof info;
}

static bool session_read(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    uint64_t unused = 0;
    if (!args->word_count) return error_set(error, "attach: give the pid or name of a process");
    if (args_has(args, OPTION_EXACT) && args_has(args, OPTION_SAMPLE))
        return error_set(error, "attach: either --exact or --sample, which is usual");
    if (args_has(args, OPTION_CENSUS) && args_has(args, OPTION_NO_CENSUS))
        return error_set(error, "attach: either --census or --no-census");
    if (args_has(args, OPTION_GUARD) || args_has(args, OPTION_MMAP))
        return error_set(error,
                         "attach: --guard and --mmap need all calls from the start: cairn run");
    return args_number(args, OPTION_TOP, 0, SIZE_MAX, &unused, error) &&
           args_duration(args, OPTION_RECORD_FOR, &session->record_for_ns, error) &&
           recording_options_read(args, &session->recording, &session->launch, error);
}

// Everything that can be looked at before the process is touched.
static bool session_prepare(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    const char *output = args_text(args, OPTION_OUTPUT, NULL);
    if (!find_process(session, error)) return false;
    bool is_ok = launch_find_library(&session->launch, false, error) &&
                 attach_open(&session->attach, session->pid, session->launch.library,
                             args_has(args, OPTION_ANYWAY), error) &&
                 check_program(session, error);
    if (!is_ok)
        return error_wrap(error, "cannot attach to %s %d", session->safe, (int)session->pid);
    return store_choose(&session->store, output, session->name, (int)session->pid, error) &&
           store_make(&session->store, error) &&
           watch_open(&session->watch, &session->store, &session->schedule, error);
}

static bool session_start(struct session *session, struct error *error) {
    char settings[SETTINGS_BYTES];
    struct error unused;
    struct attach_request request = {
        .settings = settings, .take_memory = take_memory, .context = session};
    request.settings_bytes = make_settings(session, settings);
    session->symbols = *name_options_symbols();
    session->symbols.process = (uint32_t)session->pid;
    request.symbols = &session->symbols;
    request.census = args_has(session->args, OPTION_NO_CENSUS) ? CENSUS_NEVER
                     : args_has(session->args, OPTION_CENSUS)  ? CENSUS_ALWAYS
                                                               : CENSUS_IF_SMALL;
    watch_start(&session->watch, 0, session->name, NULL);
    if (attach_start(&session->attach, &request, error)) return true;
    error_wrap(error, "cannot attach to %s %d", session->safe, (int)session->pid);
    if (session->process) watch_drop(&session->watch, session->process);
    watch_finish(&session->watch, 0, 0);
    store_finish(&session->store, false, &unused);
    return false;
}

static void say_started(const struct session *session) {
    const struct attach *attach = &session->attach;
    char path[NAME_BYTES];
    if (args_has(session->args, OPTION_QUIET)) return;
    text_escape(path, sizeof path, program_base_name(session->store.path));
    fprintf(stderr, "cairn: recording %s %d to %s; it was stopped for %s in all, %s at a time\n",
            session->safe, (int)session->pid, path, units_duration(attach->pause_ns).text,
            units_duration(attach->longest_pause_ns).text);
    if (attach->uncounted_why[0])
        fprintf(stderr, "cairn: blocks from before are not counted: %s\n", attach->uncounted_why);
    if (attach->slots.elsewhere_count)
        fprintf(stderr, "cairn: not recorded: %s of other namespaces (dlmopen)\n",
                units_counted((int64_t)attach->slots.elsewhere_count, "module", "modules").text);
    if (isatty(STDERR_FILENO) && !session->record_for_ns)
        fputs("cairn: Ctrl-C leaves it\n", stderr);
    fflush(stderr);
}

static enum leaving session_turn(struct session *session) {
    struct error error;
    bool has_changed;
    watch_turn(&session->watch, session->signal_file);
    if (!session->watch.list) return LEAVING_ENDED;
    if (has_signal(session)) return LEAVING_ASKED;
    struct cairn_header *header = session->process->memory.header;
    if (__atomic_load_n(&header->control.is_leave_wanted, __ATOMIC_RELAXED)) return LEAVING_ASKED;
    uint64_t now = threads_now_ns();
    if (session->end_ns && now >= session->end_ns) return LEAVING_ASKED;
    if (now < session->next_follow_ns) return STAYING;
    session->next_follow_ns = now + FOLLOW_NS;
    if (!attach_is_there(&session->attach))
        return watched_is_gone(session->process) ? STAYING : LEAVING_REPLACED;
    if (attach_follow(&session->attach, &has_changed, &error)) return STAYING;
    session->problem = error;
    return watched_is_gone(session->process) ? STAYING : LEAVING_FAILED;
}

static void session_leave(struct session *session, enum leaving leaving) {
    struct attach *attach = &session->attach;
    struct error error;
    if (leaving == LEAVING_ENDED) return;
    if (leaving == LEAVING_REPLACED)
        return watch_let_go(&session->watch, session->process, CAIRN_STOP_EXEC);
    attach->pause_ns = attach->longest_pause_ns = 0;
    bool is_left = attach_stop(attach, &error);
    bool is_gone = !is_left && watched_is_gone(session->process);
    if (!is_left && !is_gone) session->problem = error;
    if (is_left && !args_has(session->args, OPTION_QUIET))
        fprintf(stderr, "cairn: left %s %d; it was stopped for %s in all, %s at a time\n",
                session->safe, (int)session->pid, units_duration(attach->pause_ns).text,
                units_duration(attach->longest_pause_ns).text);
    watch_let_go(&session->watch, session->process, CAIRN_STOP_LEFT);
}

static int session_report(struct session *session) {
    struct error error;
    struct summary_options options = {.by = session->recording.by,
                                      .has_all_frames = args_has(session->args, OPTION_ALL_FRAMES)};
    uint64_t top = SUMMARY_TOP_DEFAULT;
    args_number(session->args, OPTION_TOP, top, SIZE_MAX, &top, NULL);
    options.top = (size_t)top;
    name_options_symbols()->is_quick = true;
    if (session->problem.text[0])
        return error_wrap(&session->problem, "%s %d", session->safe, (int)session->pid),
               command_fail(STATUS_FAILURE, &session->problem);
    if (session->watch.problem.text[0])
        return command_fail(STATUS_FAILURE, &session->watch.problem);
    if (args_has(session->args, OPTION_QUIET)) return STATUS_OK;
    if (!report_summary_print(stderr, session->store.path, &options, &error))
        return command_fail(STATUS_FAILURE, &error);
    return STATUS_OK;
}

int cmd_attach(const struct command_args *args) {
    struct session session = {.args = args};
    struct error error;
    enum leaving leaving;
    if (!session_read(&session, &error)) return command_fail(STATUS_USAGE, &error);
    take_signals(&session);
    if (!session_prepare(&session, &error) || !session_start(&session, &error)) {
        attach_close(&session.attach);
        return command_fail(STATUS_FAILURE, &error);
    }
    say_started(&session);
    if (session.record_for_ns) session.end_ns = threads_now_ns() + session.record_for_ns;
    while ((leaving = session_turn(&session)) == STAYING) {
    }
    session_leave(&session, leaving);
    watch_finish(&session.watch, 0, 0);
    int status = session_report(&session);
    watch_close(&session.watch);
    attach_close(&session.attach);
    return status;
}
