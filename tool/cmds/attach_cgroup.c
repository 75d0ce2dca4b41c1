// SPDX-License-Identifier: Apache-2.0
// Memory is looked at ever more often the closer it is to the rule's limit: by how fast it grows,
// and as if it might begin to grow by 100 MiB/s at any time. One process at a time is stopped and
// copied; what follows from a copy is worked out beside the next one.
//
// A process is not taken again within a minute, and then only if the cgroup has fallen below the
// limit or uses more than it did: one that lives above it is not stopped again and again.
#include "tool/cmds/attach_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/oom.h"

// The process is about to be killed: a second's pause of it is no harm, an endless one would be.
static const uint64_t copied_usual_bytes = 16 * 1024 * MEBIBYTE;
static const uint64_t growth_span_ns = CLOCK_SECOND_NS / 2;
static const uint64_t shortest_ns = CLOCK_SECOND_NS / 100, longest_ns = CLOCK_SECOND_NS / 5;
static const double sudden_growth = 100.0 * (double)MEBIBYTE;  // bytes a second
enum {
    ARMED_PERCENT = 95,
    GROWN_PERCENT = 5,  // of the limit: more than when evidence was taken last
    PERCENT = 100,
};

static void note_growth(struct oom_guard *guard, uint64_t now_ns) {
    uint64_t past_ns = now_ns - guard->before.at_ns;
    if (past_ns < growth_span_ns / 4) return;
    guard->growth = ((double)guard->memory.used_bytes - (double)guard->before.used_bytes) *
                    (double)CLOCK_SECOND_NS / (double)past_ns;
    if (past_ns >= growth_span_ns)
        guard->before = (struct measured_at){now_ns, guard->memory.used_bytes};
}

// Whether memory runs short, and evidence is due.
static bool is_due(struct oom_guard *guard, uint64_t now_ns) {
    uint64_t used = guard->memory.used_bytes;
    if (used * PERCENT < guard->limit_bytes * ARMED_PERCENT) {
        guard->is_armed = true;
        guard->crossed_ns = 0;
    }
    if (used <= guard->limit_bytes) return false;
    if (!guard->crossed_ns) guard->crossed_ns = now_ns;
    uint64_t limit = guard->memory.limit_bytes;
    uint64_t more = (limit < UINT64_MAX ? limit : guard->limit_bytes) / PERCENT * GROWN_PERCENT;
    return guard->is_armed || used > guard->taken_used_bytes + more;
}

static uint64_t wait_ns(const struct oom_guard *guard) {
    const double looks = 4;
    if (oom_is_taking(guard)) return shortest_ns;
    if (guard->memory.used_bytes >= guard->limit_bytes) return longest_ns / 2;
    double left = (double)(guard->limit_bytes - guard->memory.used_bytes);
    double fastest = guard->growth * looks > sudden_growth ? guard->growth * looks : sudden_growth;
    double wait = left / fastest * (double)CLOCK_SECOND_NS;
    if (wait < (double)shortest_ns) return shortest_ns;
    return wait > (double)longest_ns ? longest_ns : (uint64_t)wait;
}

// False: it was asked to end.
static bool pause_for(const struct oom_guard *guard, uint64_t ns) {
    struct pollfd file = {.fd = guard->signal_file, .events = POLLIN};
    const struct timespec time = {.tv_sec = (time_t)(ns / CLOCK_SECOND_NS),
                                  .tv_nsec = (long)(ns % CLOCK_SECOND_NS)};
    return ppoll(&file, 1, &time, NULL) <= 0;
}

static void take(struct oom_guard *guard, uint64_t now_ns) {
    oom_choose(guard, now_ns);
    guard->is_armed = false;
    guard->taken_growth = guard->growth;
    guard->taken_used_bytes = guard->memory.used_bytes;
}

// Takes evidence where it is due; without memory the next turn tries again.
static void turn(struct oom_guard *guard, uint64_t now_ns) {
    note_growth(guard, now_ns);
    oom_say_kills(guard, now_ns);
    bool is_short = is_due(guard, now_ns);
    guard->seen = (struct measured_at){now_ns, guard->memory.used_bytes};
    guard->crossed_seen_ns = guard->crossed_ns;
    if (is_short && oom_free_taking(guard)) {
        if (oom_list_processes(guard, now_ns)) take(guard, now_ns);
    } else if (now_ns >= guard->next_listing_ns) {
        oom_list_processes(guard, now_ns);
        oom_forget_gone(guard, now_ns);
        oom_reap_attached(guard, false);
    }
    oom_follow_evidence(guard, now_ns);
}

// A share is of the limit as it is now: it may be changed meanwhile.
static bool find_limit(struct oom_guard *guard) {
    const struct schedule_rule *rule = &guard->schedule.rules[0];
    guard->limit_bytes = rule->bytes;
    if (!rule->share) return true;
    if (guard->memory.limit_bytes == UINT64_MAX) return false;
    guard->limit_bytes = (uint64_t)((double)guard->memory.limit_bytes * rule->share);
    return true;
}

// What has been copied is worked out to its end, unless that is not waited for.
static void finish_evidence(struct oom_guard *guard) {
    bool is_awaited = true;
    while (oom_is_taking(guard)) {
        for (size_t i = 0; i < TAKINGS_MOST; i++) {
            struct evidence *evidence = &guard->takings[i].evidence;
            if (evidence->child && evidence->stage != EVIDENCE_STARTED && is_awaited)
                evidence_poll(evidence);
            else
                evidence_stop(evidence);
        }
        struct signalfd_siginfo info;
        if (oom_is_taking(guard)) pause_for(guard, longest_ns);
        is_awaited = is_awaited && read(guard->signal_file, &info, sizeof info) != sizeof info;
    }
}

static void watch(struct oom_guard *guard) {
    do {
        if (!cgroup_look(&guard->cgroup, guard->limit_bytes / 2, &guard->memory)) {
            oom_say(guard, "the cgroup is gone");
            break;
        }
        if (find_limit(guard)) turn(guard, clock_now_ns());
    } while (pause_for(guard, wait_ns(guard)));
    struct signalfd_siginfo info;
    while (read(guard->signal_file, &info, sizeof info) == sizeof info) continue;
    finish_evidence(guard);
    oom_reap_attached(guard, true);
}

// --- beginning and end

static bool read_rule(struct oom_guard *guard, struct error *error) {
    size_t index = 0;
    const char *rule = args_next(guard->args, OPTION_WHEN, &index);
    if (!schedule_add_rule(&guard->schedule, rule ? rule : "rss>85%", error))
        return error_wrap(error, "attach");
    if (args_next(guard->args, OPTION_WHEN, &index))
        return error_set(error, "attach: --cgroup takes one --when");
    if (guard->schedule.rules[0].value != SCHEDULE_RSS)
        return error_set(error, "attach: of a cgroup --when is about rss, such as rss>85%%");
    return true;
}

// What is recorded is cairn's to choose here.
static bool check_options(const struct command_args *args, struct error *error) {
    static const enum option_id taken[] = {OPTION_CGROUP, OPTION_WHEN, OPTION_KEEP,
                                           OPTION_NO_COPY_LIMIT, OPTION_QUIET};
    for (size_t i = 0; i < args->given_count; i++) {
        bool is_taken = false;
        for (size_t j = 0; j < sizeof taken / sizeof *taken; j++)
            is_taken |= args->given[i].id == taken[j];
        if (!is_taken)
            return error_set(error, "attach: --cgroup and --%s exclude each other",
                             option_row_of(args->command, args->given[i].id)->name);
    }
    return true;
}

static bool guard_read(struct oom_guard *guard, struct error *error) {
    const struct command_args *args = guard->args;
    guard->directory = args_text(args, OPTION_KEEP, NULL);
    guard->copied_most = args_has(args, OPTION_NO_COPY_LIMIT) ? UINT64_MAX : copied_usual_bytes;
    if (args->word_count)
        return error_set(error, "attach: --cgroup or \"%s\", not both", args->words[0]);
    if (!guard->directory) return error_set(error, "attach: where to? --keep DIR");
    if (strlen(guard->directory) > PATH_MAX / 2)
        return error_set(error, "attach: --keep: the path is too long");
    return check_options(args, error) && read_rule(guard, error);
}

static bool guard_open(struct oom_guard *guard, struct error *error) {
    char path[PATH_MAX];
    if (!cgroup_open(args_text(guard->args, OPTION_CGROUP, ""), &guard->cgroup, error))
        return error_wrap(error, "--cgroup");
    if (!cgroup_look(&guard->cgroup, 0, &guard->memory) || !find_limit(guard))
        return error_set(error,
                         "--cgroup %s: it has no limit of memory to take a share of: "
                         "--when 'rss>2G'",
                         guard->cgroup.path);
    if (mkdir(guard->directory, 0700) && errno != EEXIST)
        return error_set(error, "--keep %s: %s", guard->directory, strerror(errno));
    snprintf(path, sizeof path, "%s/oom.log", guard->directory);
    guard->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (guard->log < 0) return error_set(error, "%s: %s", path, strerror(errno));
    guard->kills = guard->memory.kills;
    guard->before = (struct measured_at){clock_now_ns(), guard->memory.used_bytes};
    guard->is_armed = true;
    return true;
}

static void take_signals(struct oom_guard *guard) {
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGHUP);
    guard->signal_file = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&handled, SIGPIPE);
    sigprocmask(SIG_BLOCK, &handled, NULL);
}

// It has to act while others want every processor: before all of them where that is allowed, and
// in short turns. A child keeps that until its process is copied (evidence.c).
static void come_first(void) {
    const int nicest = -20;
    const struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    if (!sched_setscheduler(0, SCHED_RR, &least)) return;
    if (getpriority(PRIO_PROCESS, 0) == 0) setpriority(PRIO_PROCESS, 0, nicest);
}

int attach_cgroup(const struct command_args *args) {
    static struct oom_guard guard;
    struct error error;
    guard = (struct oom_guard){.args = args, .log = -1, .signal_file = -1};
    if (!guard_read(&guard, &error)) return command_fail(STATUS_USAGE, &error);
    if (!guard_open(&guard, &error)) {
        error_wrap(&error, "attach");
        return command_fail(STATUS_FAILURE, &error);
    }
    take_signals(&guard);
    come_first();
    oom_list_processes(&guard, clock_now_ns());
    oom_say(&guard, "watching %s: %s, %s of %s in use; evidence goes to %s when %s",
            guard.cgroup.path,
            units_counted((int64_t)guard.processes.count, "process", "processes").text,
            oom_size(guard.memory.used_bytes).text,
            guard.memory.limit_bytes == UINT64_MAX ? "no limit"
                                                   : oom_size(guard.memory.limit_bytes).text,
            guard.directory, guard.schedule.rules[0].text);
    watch(&guard);
    array_free(&guard.processes);
    array_free(&guard.attached);
    close(guard.log);
    return STATUS_OK;
}
