// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/oom.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/proc/process.h"
#include "tool/watch/rss.h"

static const uint64_t listing_ns = CLOCK_SECOND_NS;
static const uint64_t telling_ns = 3 * CLOCK_SECOND_NS;

// --- what is said, and written down in oom.log

void oom_say(const struct oom_guard *guard, const char *format, ...) {
    char text[3 * PATH_MAX], when[64], line[sizeof text + sizeof when + 4];
    time_t now = time(NULL);
    struct tm local;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!args_has(guard->args, OPTION_QUIET)) fprintf(stderr, "cairn: %s\n", text);
    strftime(when, sizeof when, "%F %T", localtime_r(&now, &local));
    int length = snprintf(line, sizeof line, "%s %s\n", when, text);
    struct stat status;
    bool has_room = !fstat(guard->log, &status) && status.st_size < (off_t)MEBIBYTE;
    if (has_room && length > 0) (void)!write(guard->log, line, (size_t)length);
}

struct unit_text oom_size(uint64_t bytes) {
    return units_size(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
}

struct unit_text oom_growth(const struct oom_guard *guard) {
    struct unit_text text;
    snprintf(text.text, sizeof text.text, "%s%s/s", guard->taken_growth > 0 ? "+" : "",
             units_size((int64_t)guard->taken_growth).text);
    return text;
}

// --- processes

struct oom_process *oom_find_process(const struct oom_guard *guard, pid_t pid, uint64_t born) {
    for (size_t i = 0; i < guard->processes.count; i++) {
        struct oom_process *known = &guard->processes.items[i];
        if (known->pid == pid && (!born || known->born == born)) return known;
    }
    return NULL;
}

// Returns false without memory.
static bool note_process(struct oom_guard *guard, pid_t pid) {
    struct process_stat stat;
    char name[NAME_MAX];
    if (!process_stat(pid, &stat) || process_has_ended(stat.state)) return true;
    struct oom_process *known = oom_find_process(guard, pid, stat.born);
    if (!known) {
        known = array_push(&guard->processes);
        if (!known) return false;
        *known = (struct oom_process){.pid = pid, .born = stat.born};
    }
    known->is_seen = true;
    uint64_t rss_bytes = rss_look(pid).rss_bytes;
    if (rss_bytes) known->rss_bytes = rss_bytes;
    if (process_name(pid, name)) text_escape(known->name, sizeof known->name, name);
    return true;
}

bool oom_list_processes(struct oom_guard *guard, uint64_t now_ns) {
    struct process_pids list;
    for (size_t i = 0; i < guard->processes.count; i++) guard->processes.items[i].is_seen = false;
    bool is_listed = cgroup_list(&guard->cgroup, &list);
    for (size_t i = 0; is_listed && i < list.pids.count; i++)
        is_listed = note_process(guard, list.pids.items[i]);
    array_free(&list.pids);
    guard->next_listing_ns = now_ns + listing_ns;
    return is_listed;
}

bool oom_is_gone(const struct oom_process *known) {
    struct process_stat stat;
    return !process_stat(known->pid, &stat) || stat.born != known->born ||
           process_has_ended(stat.state);
}

// Those that are gone stay for a while: a kill and its process' end are not noticed at one time.
void oom_forget_gone(struct oom_guard *guard, uint64_t now_ns) {
    size_t kept = 0;
    for (size_t i = 0; i < guard->processes.count; i++) {
        struct oom_process *known = &guard->processes.items[i];
        if (oom_is_gone(known) && !known->gone_ns) known->gone_ns = now_ns;
        bool is_past = known->gone_ns && (known->is_told || now_ns >= known->gone_ns + telling_ns);
        if (!is_past) guard->processes.items[kept++] = *known;
    }
    guard->processes.count = kept;
}

// --- kills

static void say_missed(const struct oom_guard *guard, const struct oom_process *known) {
    const struct measured_at *seen = &guard->before_kill;
    char text[128];
    if (guard->crossed_before_ns)
        snprintf(text, sizeof text, "the rule was met %s before",
                 units_duration(guard->killed_ns - guard->crossed_before_ns).text);
    else
        snprintf(text, sizeof text, "%s of %s were in use when looked at %s before",
                 oom_size(seen->used_bytes).text, oom_size(guard->memory.limit_bytes).text,
                 units_duration(guard->killed_ns - seen->at_ns).text);
    oom_say(guard,
            "%s %d was killed before its heap could be taken: %s; a lower --when leaves more time",
            known->name, (int)known->pid, text);
}

static void say_kill(struct oom_guard *guard, struct oom_process *known) {
    known->is_told = true;
    guard->untold_kills--;
    if (known->has_evidence)
        oom_say(guard, "%s %d was killed; what it had is in %s.txt", known->name, (int)known->pid,
                known->base);
    else if (known->is_refused)
        oom_say(guard, "%s %d was killed; why its heap could not be taken is in %s.txt",
                known->name, (int)known->pid, known->base);
    else
        say_missed(guard, known);
}

// The kernel kills the largest as a rule, and counts a kill before its process is gone: one that
// ended by itself meanwhile is not taken for it, unless no larger one is gone in time.
static struct oom_process *find_victim(const struct oom_guard *guard, bool is_late) {
    struct oom_process *largest = NULL;
    for (size_t i = 0; i < guard->processes.count; i++) {
        struct oom_process *known = &guard->processes.items[i];
        bool is_candidate = !known->is_told && (!is_late || oom_is_gone(known));
        if (is_candidate && (!largest || known->rss_bytes > largest->rss_bytes)) largest = known;
    }
    return largest && oom_is_gone(largest) ? largest : NULL;
}

void oom_say_kills(struct oom_guard *guard, uint64_t now_ns) {
    if (guard->memory.kills > guard->kills) {
        guard->untold_kills += guard->memory.kills - guard->kills;
        guard->killed_ns = now_ns;
        guard->before_kill = guard->seen;
        guard->crossed_before_ns = guard->crossed_seen_ns;
        guard->kills = guard->memory.kills;
    }
    if (!guard->untold_kills) return;
    bool is_late = now_ns >= guard->killed_ns + telling_ns;
    for (struct oom_process *victim; guard->untold_kills && (victim = find_victim(guard, is_late));)
        say_kill(guard, victim);
    if (!guard->untold_kills || !is_late) return;
    oom_say(
        guard, "%s that had not been seen yet",
        units_counted((int64_t)guard->untold_kills, "process was killed", "processes were killed")
            .text);
    guard->untold_kills = 0;
}
