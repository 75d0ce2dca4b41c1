// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/oom.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"

extern char **environ;

static const uint64_t attach_needs_bytes = 64 * MEBIBYTE;
static const uint64_t cool_down_ns = 60 * CLOCK_SECOND_NS;
// Of one watch, in its directory.
static const uint64_t kept_most_bytes = 256 * MEBIBYTE;
enum {
    KEPT_MOST = 60,    // files
    TAKEN_MOST = 3,    // processes each time
    SHARE_LEAST = 10,  // of the memory in use, in percent: smaller processes are not its cause
    PERCENT = 100,
    EVIDENCE_SECONDS = 120,
    RECORD_SECONDS = 600,
};

// Returns the largest of those that are large and were not taken lately, nor chosen already; NULL:
// there is none.
static struct oom_process *find_largest(const struct oom_guard *guard, uint64_t now_ns) {
    struct oom_process *largest = NULL;
    for (size_t i = 0; i < guard->processes.count; i++) {
        struct oom_process *one = &guard->processes.items[i];
        bool is_large = one->rss_bytes * PERCENT >= guard->memory.used_bytes * SHARE_LEAST;
        bool is_cool = !one->taken_ns || now_ns >= one->taken_ns + cool_down_ns;
        if (!one->is_seen || one->is_wanted || !is_large || !is_cool) continue;
        if (!largest || one->rss_bytes > largest->rss_bytes) largest = one;
    }
    return largest;
}

// Chooses without memory of its own: there may be none.
void oom_choose(struct oom_guard *guard, uint64_t now_ns) {
    struct oom_process *largest;
    for (int i = 0; i < TAKEN_MOST && (largest = find_largest(guard, now_ns)); i++)
        largest->is_wanted = true;
}

// Oldest first, until a new one has room.
struct kept {
    char name[NAME_MAX + 1];
    struct timespec at;
    uint64_t bytes;
};
struct kept_list {
    ARRAY(struct kept) files;
};

static int compare_kept(const void *a, const void *b) {
    const struct kept *first = a, *second = b;
    if (first->at.tv_sec != second->at.tv_sec) return first->at.tv_sec < second->at.tv_sec ? -1 : 1;
    return (first->at.tv_nsec > second->at.tv_nsec) - (first->at.tv_nsec < second->at.tv_nsec);
}

static void bound_directory(const struct oom_guard *guard) {
    struct kept_list list = {0};
    uint64_t bytes = 0;
    DIR *entries = opendir(guard->directory);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct stat status;
        if (strncmp(entry->d_name, "oom-", 4) != 0) continue;
        if (fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW)) continue;
        struct kept *kept = S_ISREG(status.st_mode) ? array_push(&list.files) : NULL;
        if (!kept) continue;
        *kept = (struct kept){.at = status.st_mtim, .bytes = (uint64_t)status.st_size};
        snprintf(kept->name, sizeof kept->name, "%s", entry->d_name);
        bytes += kept->bytes;
    }
    if (list.files.count)
        qsort(list.files.items, list.files.count, sizeof *list.files.items, compare_kept);
    size_t left = list.files.count;
    for (size_t i = 0; i < list.files.count && (left > KEPT_MOST || bytes > kept_most_bytes); i++) {
        unlinkat(dirfd(entries), list.files.items[i].name, 0);
        bytes -= list.files.items[i].bytes;
        left--;
    }
    array_free(&list.files);
    closedir(entries);
}

static bool make_base(const struct oom_guard *guard, struct oom_process *known) {
    char when[32], name[64];
    time_t now = time(NULL);
    struct tm local;
    strftime(when, sizeof when, "%Y%m%dT%H%M%S", localtime_r(&now, &local));
    snprintf(name, sizeof name, "%.48s", known->name);
    for (char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c <= ' ' || *c == '\\') *c = '_';
    int length = snprintf(known->base, sizeof known->base, "%s/oom-%s-%d-%s", guard->directory,
                          name, (int)known->pid, when);
    return length < (int)sizeof known->base - 16;
}

// A free place; NULL: there is none, or a process is being copied.
struct oom_taking *oom_free_taking(struct oom_guard *guard) {
    struct oom_taking *free = NULL;
    for (size_t i = 0; i < TAKINGS_MOST; i++) {
        const struct evidence *evidence = &guard->takings[i].evidence;
        if (evidence->child && evidence->stage == EVIDENCE_STARTED) return NULL;
        if (!evidence->child) free = &guard->takings[i];
    }
    return free;
}

bool oom_is_taking(const struct oom_guard *guard) {
    for (size_t i = 0; i < TAKINGS_MOST; i++)
        if (guard->takings[i].evidence.child) return true;
    return false;
}

static void start_next(struct oom_guard *guard, uint64_t now_ns) {
    struct evidence_wish wish = {.bytes_most = guard->copied_most,
                                 .seconds_most = EVIDENCE_SECONDS};
    struct error error;
    struct oom_taking *taking = oom_free_taking(guard);
    for (size_t i = 0; taking && i < guard->processes.count; i++) {
        struct oom_process *known = &guard->processes.items[i];
        if (!known->is_wanted) continue;
        known->is_wanted = false;
        if (!make_base(guard, known)) continue;
        known->taken_ns = now_ns;
        wish.pid = taking->pid = known->pid;
        memcpy(wish.base, known->base, sizeof wish.base);
        snprintf(wish.why, sizeof wish.why, "%s: %s of %s in use, %s; the process has %s",
                 guard->schedule.rules[0].text, oom_size(guard->memory.used_bytes).text,
                 oom_size(guard->memory.limit_bytes).text, oom_growth(guard).text,
                 oom_size(known->rss_bytes).text);
        if (evidence_start(&wish, &taking->evidence, &error)) return;
        oom_say(guard, "%s", error.text);
    }
}

// --- recording from then on

static bool has_room_to_attach(const struct oom_guard *guard) {
    return guard->memory.limit_bytes > guard->memory.used_bytes &&
           guard->memory.limit_bytes - guard->memory.used_bytes >= attach_needs_bytes;
}

static void attach_to(struct oom_guard *guard, struct oom_process *known) {
    char own[PATH_MAX], pid[16], output[PATH_MAX + 16], seconds[16];
    struct live_process process;
    pid_t child, *slot;
    if (known->is_attached || live_describe(known->pid, &process)) return;
    if (!has_room_to_attach(guard)) {
        oom_say(guard, "%s %d is not recorded from now on: less than %s are left", known->name,
                (int)known->pid, oom_size(attach_needs_bytes).text);
        return;
    }
    snprintf(pid, sizeof pid, "%d", (int)known->pid);
    snprintf(output, sizeof output, "%s-after.cairn", known->base);
    snprintf(seconds, sizeof seconds, "%ds", (int)RECORD_SECONDS);
    char *words[] = {own,    "attach", "--quiet", "--no-scan-heap", "--record-for", seconds, "-o",
                     output, pid,      NULL};
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    const struct sched_param usual = {0};
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSCHEDULER);
    posix_spawnattr_setschedpolicy(&attributes, SCHED_OTHER);
    posix_spawnattr_setschedparam(&attributes, &usual);
    posix_spawnattr_setsigmask(&attributes, &none);
    bool is_started = process_own_executable(own) && (slot = array_push(&guard->attached)) &&
                      !posix_spawn(&child, own, NULL, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    if (!is_started) return;
    *slot = child;
    known->is_attached = true;
    oom_say(guard, "recording %s %d to %s", known->name, (int)known->pid, output);
}

void oom_reap_attached(struct oom_guard *guard, bool is_end) {
    size_t kept = 0;
    for (size_t i = 0; i < guard->attached.count; i++) {
        pid_t child = guard->attached.items[i];
        if (is_end) kill(child, SIGINT);
        if (waitpid(child, NULL, is_end ? 0 : WNOHANG) == 0) guard->attached.items[kept++] = child;
    }
    guard->attached.count = kept;
}

static void follow_taking(struct oom_guard *guard, struct oom_taking *taking) {
    enum evidence_stage before = taking->evidence.stage;
    bool is_over = evidence_poll(&taking->evidence);
    enum evidence_stage stage = taking->evidence.stage;
    struct oom_process *known = oom_find_process(guard, taking->pid, 0);
    if (known && before == EVIDENCE_STARTED && stage >= EVIDENCE_COPIED) {
        known->has_evidence = stage != EVIDENCE_REFUSED;
        known->is_refused = stage == EVIDENCE_REFUSED;
        oom_say(guard, "%s: %s of %s in use, %s: %s of %s %d in %s.txt",
                guard->schedule.rules[0].text, oom_size(guard->taken_used_bytes).text,
                oom_size(guard->memory.limit_bytes).text, oom_growth(guard).text,
                stage == EVIDENCE_REFUSED ? "what little can be known" : "evidence", known->name,
                (int)known->pid, known->base);
        if (stage != EVIDENCE_REFUSED && !oom_is_gone(known)) attach_to(guard, known);
    }
    if (is_over && stage == EVIDENCE_STARTED && known)
        oom_say(guard, "%s %d ended, or could not be copied, before there was evidence",
                known->name, (int)known->pid);
    if (is_over) bound_directory(guard);
}

void oom_follow_evidence(struct oom_guard *guard, uint64_t now_ns) {
    for (size_t i = 0; i < TAKINGS_MOST; i++)
        if (guard->takings[i].evidence.child) follow_taking(guard, &guard->takings[i]);
    start_next(guard, now_ns);
}
