// SPDX-License-Identifier: Apache-2.0
#include "tool/mcp/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/mcp/server.h"

enum {
    RUNNING_MAX = 2,           // of each kind: questions, and commands that are recorded
    UNSENT_BYTES = 256 << 10,  // more than this: no further message is read
    READ_BYTES = 64 << 10,
    POLLS_MAX = 2 + 3 * SERVER_QUESTIONS_MAX,
    WITHOUT_PIDFD_MS = 20,
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    FAREWELL_SECONDS = 5,  // for questions, when the client has closed its end
};

struct loop {
    const struct loop_options *options;
    struct server server;
    struct job jobs[SERVER_QUESTIONS_MAX];  // question NULL: free
    char *line;
    size_t line_bytes;
    bool is_skipping;  // the rest of a line that was too long
    bool is_at_end;    // the client has closed its end
    bool is_broken;    // it does not listen any more
    uint64_t end_ns;   // at_end: when questions are given up
    char *unsent;
    size_t unsent_from, unsent_bytes, unsent_room;
};

static void send_line(void *context, char *line) {
    struct loop *loop = context;
    size_t length = line ? strlen(line) : 0;
    size_t wanted = loop->unsent_bytes + length + 1;
    if (line && wanted > loop->unsent_room) {
        char *grown = realloc(loop->unsent, 2 * wanted);
        loop->unsent_room = grown ? 2 * wanted : loop->unsent_room;
        loop->unsent = grown ? grown : loop->unsent;
    }
    // without memory an answer is lost, and the client's own time limit has to help
    if (line && wanted <= loop->unsent_room) {
        memcpy(loop->unsent + loop->unsent_bytes, line, length);
        loop->unsent[loop->unsent_bytes + length] = '\n';
        loop->unsent_bytes = wanted;
    }
    free(line);
}

static struct job *job_of(struct loop *loop, const struct question *question) {
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++)
        if (loop->jobs[i].question == question) return &loop->jobs[i];
    return NULL;
}

// There is one for each question that the server can have.
static void start_question(void *context, struct question *question) {
    struct job *job = job_of(context, NULL);
    *job =
        (struct job){.question = question, .process = -1, .out = -1, .errors = -1, .summary = -1};
}

static void end_job(struct loop *loop, struct job *job, const struct outcome *outcome) {
    struct question *question = job->question;
    server_question_ended(&loop->server, question, outcome);
    job_free(job);
}

static void cancel_question(void *context, struct question *question) {
    struct loop *loop = context;
    struct job *job = job_of(loop, question);
    if (!job) return;
    job->is_cancelled = true;
    if (job->pid)
        job_end(job);
    else
        end_job(loop, job, NULL);
}

static size_t count_running(const struct loop *loop, bool is_run) {
    size_t count = 0;
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++) {
        const struct job *job = &loop->jobs[i];
        count += job->question && job->pid && job->question->tool->is_run == is_run;
    }
    return count;
}

static void begin_waiting(struct loop *loop) {
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++) {
        struct job *job = &loop->jobs[i];
        if (!job->question || job->pid) continue;
        if (count_running(loop, job->question->tool->is_run) == RUNNING_MAX) continue;
        if (job_begin(job, &loop->options->roots, loop->options->run)) {
            server_question_goes_on(&loop->server, job->question, 0);
            continue;
        }
        const char *problem = "no process or memory for a command";
        struct outcome outcome = {
            .out = "", .errors = problem, .errors_bytes = strlen(problem), .status = 1};
        end_job(loop, job, &outcome);
    }
}

static void go_on_with(struct loop *loop, struct job *job) {
    int status;
    uint64_t now = clock_now_ns(), seconds = (now - job->start_ns) / CLOCK_SECOND_NS;
    if (job_go_on(job, &status)) {
        struct outcome outcome;
        job_outcome(job, status, &outcome);
        end_job(loop, job, job->is_cancelled ? NULL : &outcome);
        return;
    }
    if (job->kill_ns && now >= job->kill_ns) job_kill(job);
    if (!job->kill_ns && seconds >= (uint64_t)job->question->seconds) {
        job->is_late = true;
        job_end(job);
    }
    if (seconds > job->told_s && !job->is_cancelled) {
        job->told_s = seconds;
        server_question_goes_on(&loop->server, job->question, (int)seconds);
    }
}

static void read_lines(struct loop *loop, const char *bytes, size_t count) {
    while (count) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end ? (size_t)(end - bytes) : count;
        size_t room = SERVER_LINE_BYTES - loop->line_bytes;
        size_t kept = length < room ? length : room;
        memcpy(loop->line + loop->line_bytes, bytes, kept);
        loop->line_bytes += kept;
        if (kept < length && !loop->is_skipping) {
            loop->is_skipping = true;
            server_read_too_long(&loop->server);
        }
        if (end && !loop->is_skipping) server_read(&loop->server, loop->line, loop->line_bytes);
        if (end) {
            loop->line_bytes = 0;
            loop->is_skipping = false;
        }
        bytes += length + (end != NULL);
        count -= length + (end != NULL);
    }
}

// What is recorded ends now, and is saved; questions have a while.
static void begin_end(struct loop *loop) {
    loop->is_at_end = true;
    loop->end_ns = clock_now_ns() + FAREWELL_SECONDS * CLOCK_SECOND_NS;
    if (loop->line_bytes && !loop->is_skipping)
        server_read(&loop->server, loop->line, loop->line_bytes);
    server_end_streams(&loop->server);
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++) {
        struct job *job = &loop->jobs[i];
        if (job->question && job->question->tool->is_run) cancel_question(loop, job->question);
    }
}

static void read_input(struct loop *loop) {
    static char bytes[READ_BYTES];
    ssize_t count = read(loop->options->in, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count > 0)
        read_lines(loop, bytes, (size_t)count);
    else
        begin_end(loop);
}

// Never waits: of a pipe that poll calls writable, so much is free.
static void write_output(struct loop *loop) {
    size_t count = loop->unsent_bytes - loop->unsent_from;
    const char *from = loop->unsent + loop->unsent_from;
    ssize_t sent = send(loop->options->out, from, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK)
        sent = write(loop->options->out, from, count < PIPE_BUF ? count : PIPE_BUF);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) return;
    loop->is_broken = sent < 0;
    if (sent > 0) loop->unsent_from += (size_t)sent;
    if (loop->unsent_from < loop->unsent_bytes) return;
    loop->unsent_from = loop->unsent_bytes = 0;
}

struct polls {
    struct pollfd items[POLLS_MAX];
    size_t count;
    int timeout_ms;
};

static void poll_for(struct polls *polls, int descriptor, short events) {
    polls->items[polls->count++] = (struct pollfd){descriptor, events, 0};
}

static void wait_at_most(struct polls *polls, uint64_t now, uint64_t then) {
    int64_t ms = then > now ? (int64_t)((then - now) / NS_PER_MS + 1) : 0;
    if (ms < INT_MAX && (polls->timeout_ms < 0 || ms < polls->timeout_ms))
        polls->timeout_ms = (int)ms;
}

static void poll_for_job(struct polls *polls, const struct job *job, uint64_t now) {
    if (job->out >= 0) poll_for(polls, job->out, POLLIN);
    if (job->errors >= 0) poll_for(polls, job->errors, POLLIN);
    if (job->process >= 0)
        poll_for(polls, job->process, POLLIN);
    else
        wait_at_most(polls, now, now + (uint64_t)WITHOUT_PIDFD_MS * NS_PER_MS);
    wait_at_most(polls, now, job->start_ns + (job->told_s + 1) * CLOCK_SECOND_NS);
    if (job->kill_ns) wait_at_most(polls, now, job->kill_ns);
}

static void wait_for_something(struct loop *loop, struct polls *polls) {
    uint64_t now = clock_now_ns();
    size_t unsent = loop->unsent_bytes - loop->unsent_from;
    *polls = (struct polls){.timeout_ms = -1};
    bool can_read = !loop->is_at_end && unsent < UNSENT_BYTES;
    poll_for(polls, can_read ? loop->options->in : -1, POLLIN);
    poll_for(polls, loop->is_broken ? -1 : loop->options->out, unsent ? POLLOUT : 0);
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++)
        if (loop->jobs[i].question && loop->jobs[i].pid) poll_for_job(polls, &loop->jobs[i], now);
    if (loop->is_at_end) wait_at_most(polls, now, loop->end_ns);
    poll(polls->items, polls->count, polls->timeout_ms);
}

static bool is_over(struct loop *loop) {
    size_t runs = count_running(loop, true), left = 0;
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++) left += loop->jobs[i].question != NULL;
    bool is_heard = loop->is_broken || loop->unsent_from == loop->unsent_bytes;
    // a recording that is being saved has its own time: job_kill
    bool is_late = clock_now_ns() >= loop->end_ns && !runs;
    return loop->is_at_end && ((!left && is_heard) || is_late);
}

static void turn(struct loop *loop) {
    struct polls polls;
    begin_waiting(loop);
    wait_for_something(loop, &polls);
    const short gone = POLLERR | POLLHUP | POLLNVAL;
    if (polls.items[0].revents) read_input(loop);
    if (polls.items[1].revents & POLLOUT)
        write_output(loop);
    else if (polls.items[1].revents & gone)
        loop->is_broken = true;
    if (loop->is_broken && !loop->is_at_end) begin_end(loop);
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++)
        if (loop->jobs[i].question && loop->jobs[i].pid) go_on_with(loop, &loop->jobs[i]);
}

// Questions for which there is no time any more.
static void end_all(struct loop *loop) {
    for (size_t i = 0; i < SERVER_QUESTIONS_MAX; i++) {
        struct job *job = &loop->jobs[i];
        if (!job->question) continue;
        if (job->pid) job_kill(job);
        job_free(job);
    }
}

bool loop_run(const struct loop_options *options, struct error *error) {
    struct loop *loop = calloc(1, sizeof *loop);
    char *line = malloc(SERVER_LINE_BYTES);
    if (!loop || !line) {
        free(loop);
        free(line);
        return error_set(error, "mcp: no memory");
    }
    signal(SIGPIPE, SIG_IGN);
    loop->options = options;
    loop->line = line;
    loop->server = (struct server){.host = {loop, send_line, start_question, cancel_question},
                                   .roots = &options->roots,
                                   .can_run = options->can_run,
                                   .make_page = options->make_page};
    for (bool goes_on = true; goes_on; goes_on = !is_over(loop)) turn(loop);
    end_all(loop);
    server_free(&loop->server);
    free(loop->unsent);
    free(loop->line);
    free(loop);
    return true;
}
