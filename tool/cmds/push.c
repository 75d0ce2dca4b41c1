// SPDX-License-Identifier: Apache-2.0
// cairn push: profiles or metrics of recorded processes to an engine that stores them, until Ctrl-C
// or once. What is done is in tool/push; here are options, the clock, signals and what is said.
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/push/pushing.h"

static const uint64_t usual_every_ns = 15 * CLOCK_SECOND_NS;
static const uint64_t queue_usual_bytes = 64u << 20;
// At the end, what still waits has so long to arrive; then it waits for the next cairn.
static const uint64_t farewell_ns = 10 * CLOCK_SECOND_NS;
// Refused requests are told of so often, since they may all be refused.
static const uint64_t telling_ns = 60 * CLOCK_SECOND_NS;

struct session {
    const struct command_args *args;
    const char *recording;  // that is sent once; NULL: processes are
    char *headers_path;     // as a path that curl does not take for something else
    uint64_t every_ns, queue_bytes;
    bool is_once, is_quiet;
    char *label_texts[PUSH_LABELS_MOST];
    struct pushing pushing;
    struct cgroup cgroup;
    struct curl curl;
    int signal_file;
    // what was told last
    bool was_failing;
    uint64_t failures, refused, unmade, sent_before, told_ns;
};

static bool is_label_name(const char *text, size_t length) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (!length || !strchr(letters, *text) || !strncmp(text, "__", 2)) return false;
    for (size_t i = 0; i < length; i++)
        if (!strchr(letters, text[i]) && !strchr("0123456789", text[i])) return false;
    return true;
}

static bool add_label(struct session *session, const char *given, struct error *error) {
    enum { VALUE_MOST = 1024 };
    struct pushing *pushing = &session->pushing;
    size_t length = strcspn(given, "=");
    if (!given[length] || !is_label_name(given, length))
        return error_set(error,
                         "push: --label is NAME=VALUE, the name of letters, digits and _, "
                         "not \"%s\"",
                         given);
    if (strlen(given + length + 1) > VALUE_MOST)
        return error_set(error, "push: --label %.*s: the value is longer than %d bytes",
                         (int)length, given, (int)VALUE_MOST);
    if (pushing->label_count == PUSH_LABELS_MOST)
        return error_set(error, "push: more than %d labels", PUSH_LABELS_MOST);
    size_t room = strlen(given) * 4 + 1;  // bytes that are no UTF-8 are written as \xNN
    char *text = malloc(2 * room);
    if (!text) return error_set(error, "no memory for a label");
    snprintf(text, room, "%.*s", (int)length, given);
    text_escape(text + room, room, given + length + 1);
    session->label_texts[pushing->label_count] = text;
    pushing->labels[pushing->label_count++] = (struct export_label){text, text + room};
    return true;
}

static bool read_labels(struct session *session, struct error *error) {
    size_t index = 0;
    for (const char *given; (given = args_next(session->args, OPTION_LABEL, &index));)
        if (!add_label(session, given, error)) return false;
    return true;
}

static bool read_headers(struct session *session, struct error *error) {
    const char *path = args_text(session->args, OPTION_HEADERS, NULL);
    if (!path) return true;
    session->headers_path = realpath(path, NULL);
    if (!session->headers_path || access(session->headers_path, R_OK))
        return error_set(error, "push: --headers %s: %s", path, strerror(errno));
    return true;
}

static bool read_times(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    if (!args_duration(args, OPTION_EVERY, &session->every_ns, error)) return false;
    if (!session->every_ns) session->every_ns = usual_every_ns;
    if (session->every_ns < CLOCK_SECOND_NS || session->every_ns > 3600 * CLOCK_SECOND_NS)
        return error_set(error, "push: --every is from 1s to 1h");
    if (!args_size(args, OPTION_QUEUE_SIZE, &session->queue_bytes, error)) return false;
    if (!session->queue_bytes) session->queue_bytes = queue_usual_bytes;
    return true;
}

static bool read_subject(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    bool is_all = args_has(args, OPTION_ALL), is_group = args_has(args, OPTION_CGROUP);
    const char *word = args->word_count ? args->words[0] : NULL;
    if (is_all + is_group + (word != NULL) != 1)
        return error_set(error, "push: of what? Give one of a pid, a name, a recording, --all and "
                                "--cgroup PATH");
    if (word && !running_is_number(word) && !running_may_be(word))
        session->recording = word;
    else
        session->pushing.which = word;
    session->is_once = args_has(args, OPTION_ONCE) || session->recording;
    session->is_quiet = args_has(args, OPTION_QUIET);
    return true;
}

static bool session_read(struct session *session, struct error *error) {
    const struct command_args *args = session->args;
    const char *url = args_text(args, OPTION_TO, NULL);
    if (!url) return error_set(error, "push: where to? --to URL, as http://localhost:4040");
    if (!destination_read(url, args_text(args, OPTION_FORMAT, NULL), &session->pushing.destination,
                          error))
        return error_wrap(error, "push");
    return read_subject(session, error) && read_times(session, error) &&
           read_headers(session, error) && read_labels(session, error);
}

static bool find_cgroup(struct session *session, struct error *error) {
    const char *word = args_text(session->args, OPTION_CGROUP, NULL);
    if (!word) return true;
    session->pushing.cgroup = &session->cgroup;
    return cgroup_find(word, &session->cgroup, error) || error_wrap(error, "push: --cgroup");
}

// --- where what has to wait is kept

// By systemd's directory for this unit, or the user's for state.
static bool find_parent(char parent[PATH_MAX], struct error *error) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"STATE_DIRECTORY", "push"},
                  {"XDG_STATE_HOME", "cairn/push"},
                  {"HOME", ".local/state/cairn/push"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *directory = getenv(places[i].variable);
        if (!directory || *directory != '/') continue;
        if (snprintf(parent, PATH_MAX, "%s/%s", directory, places[i].below) < PATH_MAX) return true;
    }
    return error_set(error, "HOME is not set: --queue DIR for what has to wait");
}

// The engine and its host and port, as the name of a directory.
static void queue_name(const struct destination *destination, char *name, size_t size) {
    const char *host = strstr(destination->name, "://");
    host = host ? host + 3 : destination->name;
    snprintf(name, size, "%s-%.*s", destination->engine->name, (int)strcspn(host, "/"), host);
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *c))
            *c = '_';
}

static bool open_queue(struct session *session, struct error *error) {
    const char *directory = args_text(session->args, OPTION_QUEUE, NULL);
    char parent[PATH_MAX], name[NAME_MAX - 8];
    struct queue *queue = &session->pushing.queue;
    if (directory) return queue_open(directory, session->queue_bytes, queue, error);
    if (!find_parent(parent, error)) return false;
    queue_name(&session->pushing.destination, name, sizeof name);
    return queue_open_any(parent, name, session->queue_bytes, queue, error);
}

// --- what is said

__attribute__((format(printf, 2, 3))) static void say(const struct session *session,
                                                      const char *format, ...) {
    if (session->is_quiet) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("cairn: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(stderr);
}

static const char *destination_name(const struct session *session) {
    return session->pushing.destination.name;
}

static void say_dropped(const struct session *session, uint64_t count, const char *why) {
    if (count)
        say(session, "dropped: %s %s", units_counted((int64_t)count, "request", "requests").text,
            why);
}

static void say_start(const struct session *session) {
    const struct pushing *pushing = &session->pushing;
    size_t waiting = pushing->queue.requests.count;
    char what[NAME_MAX];
    text_escape(what, sizeof what,
                pushing->which    ? pushing->which
                : pushing->cgroup ? pushing->cgroup->path
                                  : "all that you record");
    if (session->recording) return;
    say(session, "pushing %s (%s) to %s, %s", what,
        units_counted((int64_t)pushing->process_count, "process", "processes").text,
        destination_name(session), pushing->destination.engine->name);
    if (waiting)
        say(session, "%s of an earlier push will be sent too",
            units_counted((int64_t)waiting, "request", "requests").text);
    say_dropped(session, pushing->queue.damaged, "of an earlier push, whose files are damaged");
}

// The engine went away, or came back.
static void say_state(struct session *session) {
    const struct delivery *delivery = &session->pushing.delivery;
    bool is_failing = delivery->pause_ns != 0 && delivery->failures;
    if (is_failing && !session->was_failing)
        say(session, "%s: %s; it is tried again, what waits is kept", destination_name(session),
            delivery->problem.text);
    if (!is_failing && session->was_failing && delivery->sent > session->sent_before)
        say(session, "%s takes it again", destination_name(session));
    if (is_failing != session->was_failing) session->sent_before = delivery->sent;
    session->was_failing = is_failing;
}

static void say_refusals(struct session *session, uint64_t now_ns) {
    const struct pushing *pushing = &session->pushing;
    bool is_news =
        pushing->delivery.refused > session->refused || pushing->unmade > session->unmade;
    if (!is_news || (session->told_ns && now_ns < session->told_ns + telling_ns)) return;
    if (pushing->delivery.refused > session->refused)
        say(session, "%s does not take a request: %s", destination_name(session),
            pushing->delivery.refusal.text);
    if (pushing->unmade > session->unmade) say(session, "%s", pushing->problem.text);
    session->refused = pushing->delivery.refused;
    session->unmade = pushing->unmade;
    session->told_ns = now_ns;
}

static void say_end(const struct session *session) {
    const struct pushing *pushing = &session->pushing;
    const struct delivery *delivery = &pushing->delivery;
    size_t waiting = pushing->queue.requests.count;
    char why[128];
    say(session, "%s sent to %s, %s",
        units_counted((int64_t)delivery->sent, "request", "requests").text,
        destination_name(session), units_size((int64_t)delivery->sent_bytes).text);
    if (waiting)
        say(session, "%s left in %s for the next push: %s",
            units_counted((int64_t)waiting, "request", "requests").text, pushing->queue.directory,
            delivery->problem.text[0] ? delivery->problem.text : "no time to send them");
    snprintf(why, sizeof why, "older than %s, which %s does not take",
             units_duration(delivery->age_most_ns).text, pushing->destination.engine->name);
    say_dropped(session, delivery->too_old, why);
    say_dropped(session, pushing->queue.crowded_out, "for which the queue had no room");
    say_dropped(session, delivery->refused, "that the engine refused");
    say_dropped(session, pushing->unmade, "that could not be made");
}

// --- the work

static void take_signals(struct session *session) {
    static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t handled;
    sigemptyset(&handled);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) sigaddset(&handled, asking[i]);
    session->signal_file = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&handled, SIGPIPE);
    sigaddset(&handled, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &handled, NULL);
}

static bool has_signal(const struct session *session) {
    struct signalfd_siginfo info;
    return read(session->signal_file, &info, sizeof info) == sizeof info;
}

// Until then, or until curl or a signal has news.
static void wait_until(const struct session *session, uint64_t until_ns) {
    enum { NS_PER_MS = 1000000, LONGEST_MS = 3600000 };
    struct pollfd files[] = {{.fd = session->signal_file, .events = POLLIN},
                             {.fd = session->curl.output, .events = POLLIN}};
    uint64_t now_ns = clock_now_ns();
    uint64_t wait_ms = until_ns > now_ns ? (until_ns - now_ns) / NS_PER_MS + 1 : 0;
    poll(files, 2, wait_ms > LONGEST_MS ? LONGEST_MS : (int)wait_ms);
}

static uint64_t unix_now_ns(void) {
    return clock_ns(CLOCK_REALTIME);
}

static uint64_t deliver(struct session *session) {
    uint64_t now_ns = clock_now_ns();
    uint64_t due_ns = delivery_turn(&session->pushing.delivery, now_ns, unix_now_ns());
    say_state(session);
    say_refusals(session, now_ns);
    return due_ns;
}

// Until nothing waits any more, the engine fails, or the time is over.
static void deliver_rest(struct session *session) {
    struct pushing *pushing = &session->pushing;
    uint64_t end_ns = clock_now_ns() + farewell_ns;
    uint64_t failures = pushing->delivery.failures;
    pushing->delivery.next_ns = 0;  // one more try, whatever the pause
    for (;;) {
        uint64_t due_ns = deliver(session);
        bool is_idle = !pushing->delivery.in_flight;
        if (is_idle && !pushing->queue.requests.count) return;
        if (is_idle && pushing->delivery.failures > failures) return;
        if (clock_now_ns() >= end_ns || has_signal(session)) return;
        wait_until(session, due_ns < end_ns ? due_ns : end_ns);
    }
}

// The clock's steps are counted from the start, so that they do not drift.
static void push_on(struct session *session) {
    uint64_t next_ns = clock_now_ns() + session->every_ns;
    for (;;) {
        uint64_t due_ns = deliver(session);
        wait_until(session, due_ns < next_ns ? due_ns : next_ns);
        bool is_asked = has_signal(session);
        uint64_t now_ns = clock_now_ns();
        if (now_ns < next_ns && !is_asked) continue;
        bool goes_on = pushing_look(&session->pushing, now_ns, unix_now_ns());
        if (is_asked || !goes_on || session->is_once) return;
        while (next_ns <= now_ns) next_ns += session->every_ns;
    }
}

static bool session_run(struct session *session, struct error *error) {
    struct pushing *pushing = &session->pushing;
    bool is_ok = true;
    session->curl = (struct curl){.url = pushing->destination.url,
                                  .headers = pushing->destination.engine->headers,
                                  .headers_path = session->headers_path,
                                  .seconds_most = 30,
                                  .output = -1};
    struct sender sender = curl_sender(&session->curl);
    is_ok = session->recording
                ? pushing_start_recording(pushing, sender, session->recording, unix_now_ns(), error)
                : pushing_start(pushing, sender, clock_now_ns(), unix_now_ns(), error);
    if (!is_ok) return false;
    say_start(session);
    if (pushing->destination.engine->is_of_metrics && session->is_once)
        pushing_look(pushing, clock_now_ns(), unix_now_ns());
    else if (!session->recording)
        push_on(session);
    deliver_rest(session);
    say_end(session);
    return true;
}

static void session_close(struct session *session) {
    pushing_close(&session->pushing);
    curl_close(&session->curl);
    free(session->headers_path);
    for (size_t i = 0; i < session->pushing.label_count; i++) free(session->label_texts[i]);
}

// What --once says by its status: everything has arrived.
static bool has_arrived(const struct pushing *pushing) {
    return !pushing->queue.requests.count && !pushing->delivery.refused && !pushing->unmade &&
           !pushing->delivery.too_old && !pushing->queue.crowded_out;
}

int cmd_push(const struct command_args *args) {
    static struct session session;  // large
    struct error error;
    session = (struct session){.args = args, .signal_file = -1, .curl = {.output = -1}};
    session.pushing.queue.lock = -1;
    if (!session_read(&session, &error)) {
        session_close(&session);
        return command_fail(STATUS_USAGE, &error);
    }
    take_signals(&session);
    bool is_ok = find_cgroup(&session, &error) && curl_find(&error) &&
                 open_queue(&session, &error) && session_run(&session, &error);
    bool is_done = is_ok && (!session.is_once || has_arrived(&session.pushing));
    queue_close(&session.pushing.queue, !args_has(args, OPTION_QUEUE));
    session_close(&session);
    if (!is_ok) return command_fail(STATUS_FAILURE, &error);
    return is_done ? STATUS_OK : STATUS_FAILURE;
}
