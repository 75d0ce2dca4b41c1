// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/model/follow.h"
#include "tool/proc/cgroup_memory.h"
#include "tool/proc/process.h"
#include "tool/query/live.h"
#include "tool/query/subject.h"
#include "tool/watch/rss.h"

static const uint64_t first_wait_ns = CLOCK_SECOND_NS, most_wait_ns = 64 * CLOCK_SECOND_NS;
// An exec shows in the process' memory alone, which costs more than its pid.
static const uint64_t exec_wait_ns = 8 * CLOCK_SECOND_NS, exec_wait_alone_ns = CLOCK_SECOND_NS;
// Of a name, all processes are looked at.
static const uint64_t successor_wait_ns = 2 * CLOCK_SECOND_NS;

bool processes_are_many(const struct processes *processes) {
    return processes->scope == SERVE_ALL || processes->scope == SERVE_CGROUP;
}

static uint64_t random_of(pid_t pid) {
    uint64_t at = 0;
    return process_auxiliary(pid, AT_RANDOM, &at) ? at : 0;
}

static bool open_recording(struct served *served, const char *path, struct error *error) {
    served->file = open(path, O_RDONLY | O_CLOEXEC);
    if (served->file < 0) return error_set(error, "%s: %s", path, strerror(errno));
    snprintf(served->path, sizeof served->path, "/proc/self/fd/%d", served->file);
    return true;
}

static bool serve_process(struct processes *processes, const struct live_process *process,
                          struct served *served, struct error *error) {
    *served = (struct served){.pid = process->pid,
                              .file = -1,
                              .serial = ++processes->last_serial,
                              .random_at = random_of(process->pid)};
    memcpy(served->name, process->name, sizeof served->name);
    cgroup_place_of(process->pid, &served->place);
    return open_recording(served, process->path, error);
}

static void forget(struct served *served) {
    if (served->file >= 0) close(served->file);
    served->file = -1;
}

static bool push(struct processes *processes, const struct served *served) {
    struct served *slot = array_push(&processes->list);
    if (slot) *slot = *served;
    return slot != NULL;
}

// --- one

static bool choose_one(struct processes *processes, struct served *served, struct error *error) {
    struct live_process process;
    return live_choose(processes->word, &process, error) &&
           serve_process(processes, &process, served, error);
}

static bool is_readable(const char *path, struct error *error) {
    struct recording recording;
    if (!recording_open(path, &recording, error)) return false;
    recording_close(&recording);
    return true;
}

static bool open_file(struct processes *processes, struct error *error) {
    struct subject subject;
    struct served served = {.file = -1, .serial = ++processes->last_serial};
    if (!subject_find(processes->word, &subject, error)) return false;
    if (subject.is_run)
        return error_set(error, "%s: a run of several processes; name the recording of one of them",
                         subject.name);
    if (!is_readable(subject.path, error)) return false;
    snprintf(processes->word, sizeof processes->word, "%s", subject.path);
    snprintf(served.name, sizeof served.name, "%.*s", NAME_MAX - 1, text_base_name(subject.name));
    return push(processes, &served) || error_set(error, "no memory");
}

static bool open_one(struct processes *processes, struct error *error) {
    struct served served;
    if (!running_is_number(processes->word) && !running_may_be(processes->word)) {
        processes->scope = SERVE_FILE;
        return open_file(processes, error);
    }
    return choose_one(processes, &served, error) &&
           (push(processes, &served) || error_set(error, "no memory"));
}

// What has ended stays as it was until another process is called so.
static void follow_one(struct processes *processes, uint64_t now_ns) {
    struct served *now = &processes->list.items[0], next;
    if (processes_is_running(now) || now_ns < now->next_look_ns) return;
    now->next_look_ns = now_ns + successor_wait_ns;
    if (!choose_one(processes, &next, NULL)) return;
    if (next.pid == now->pid && next.random_at == now->random_at) {
        forget(&next);  // it ends just now
        return;
    }
    forget(now);
    *now = next;
}

// --- many

static bool list_all(struct process_pids *list) {
    struct process_list all;
    bool has_memory = true;
    *list = (struct process_pids){0};
    if (!process_list_all(&all)) return false;
    for (pid_t pid; has_memory && (pid = process_list_next(&all));) {
        pid_t *slot = array_push(&list->pids);
        has_memory = slot != NULL;
        if (slot) *slot = pid;
    }
    process_list_close(&all);
    process_pids_sort(list);
    return has_memory;
}

// Whether the process is still the one whose recording is held.
static bool is_same(struct served *served, const struct process_pids *list, uint64_t now_ns) {
    if (!process_pids_has(list, served->pid)) return false;
    if (now_ns < served->next_look_ns) return true;
    served->next_look_ns = now_ns + exec_wait_ns;
    uint64_t random_at = random_of(served->pid);
    return !random_at || !served->random_at || random_at == served->random_at;
}

static void remove_ended(struct processes *processes, const struct process_pids *list,
                         uint64_t now_ns) {
    size_t kept = 0, known = 0;
    for (size_t i = 0; i < processes->list.count; i++) {
        struct served *served = &processes->list.items[i];
        if (is_same(served, list, now_ns))
            processes->list.items[kept++] = *served;
        else
            forget(served);
    }
    processes->list.count = kept;
    for (size_t i = 0; i < processes->unrecorded.count; i++)
        if (process_pids_has(list, processes->unrecorded.items[i].pid))
            processes->unrecorded.items[known++] = processes->unrecorded.items[i];
    processes->unrecorded.count = known;
}

static bool add(struct processes *processes, pid_t pid) {
    struct live_process process;
    struct served served;
    if (!live_describe(pid, &process)) return false;
    if (!serve_process(processes, &process, &served, NULL)) return false;
    if (push(processes, &served)) return true;
    forget(&served);
    return false;
}

static int compare_served(const void *a, const void *b) {
    const struct served *first = a, *second = b;
    return (first->pid > second->pid) - (first->pid < second->pid);
}

static int compare_seen(const void *a, const void *b) {
    const struct seen *first = a, *second = b;
    return (first->pid > second->pid) - (first->pid < second->pid);
}

static bool is_served(const struct processes *processes, size_t count, pid_t pid) {
    const struct served key = {.pid = pid};
    return count && bsearch(&key, processes->list.items, count, sizeof key, compare_served);
}

static void note_unrecorded(struct processes *processes, pid_t pid, uint64_t now_ns) {
    struct seen *slot = array_push(&processes->unrecorded);
    if (slot) *slot = (struct seen){pid, now_ns + first_wait_ns, first_wait_ns};
}

// `count`: of those that are sorted already.
static void look_again(struct processes *processes, struct seen *seen, uint64_t now_ns) {
    if (now_ns < seen->next_ns || add(processes, seen->pid)) return;
    if (seen->wait_ns < most_wait_ns) seen->wait_ns *= 2;
    seen->next_ns = now_ns + seen->wait_ns;
}

static void add_born(struct processes *processes, const struct process_pids *list,
                     uint64_t now_ns) {
    size_t served = processes->list.count, known = processes->unrecorded.count;
    for (size_t i = 0; i < list->pids.count; i++) {
        const struct seen key = {.pid = list->pids.items[i]};
        if (is_served(processes, served, key.pid)) continue;
        struct seen *seen =
            known ? bsearch(&key, processes->unrecorded.items, known, sizeof key, compare_seen)
                  : NULL;
        if (seen)
            look_again(processes, seen, now_ns);
        else if (!add(processes, key.pid))
            note_unrecorded(processes, key.pid, now_ns);
    }
    if (processes->unrecorded.count)
        qsort(processes->unrecorded.items, processes->unrecorded.count,
              sizeof *processes->unrecorded.items, compare_seen);
    if (processes->list.count)
        qsort(processes->list.items, processes->list.count, sizeof *processes->list.items,
              compare_served);
}

static void follow_many(struct processes *processes, uint64_t now_ns) {
    struct process_pids list;
    bool is_whole =
        processes->scope == SERVE_ALL ? list_all(&list) : cgroup_list(&processes->cgroup, &list);
    if (is_whole) {  // without memory, those that are not listed have not ended
        remove_ended(processes, &list, now_ns);
        add_born(processes, &list, now_ns);
    }
    array_free(&list.pids);
}

// --- all of them

bool processes_open(struct processes *processes, enum processes_scope scope, const char *word,
                    struct error *error) {
    *processes = (struct processes){.scope = scope};
    if (word && strlen(word) >= sizeof processes->word)
        return error_set(error, "%.64s...: too long", word);
    if (word) snprintf(processes->word, sizeof processes->word, "%s", word);
    if (scope == SERVE_FILE) return open_file(processes, error);
    if (scope == SERVE_ONE) return open_one(processes, error);
    if (!process_can_look()) return error_set(error, "/proc is not mounted");
    if (scope == SERVE_CGROUP && !cgroup_find(processes->word, &processes->cgroup, error))
        return error_wrap(error, "--cgroup");
    follow_many(processes, clock_now_ns());
    return true;
}

void processes_close(struct processes *processes) {
    for (size_t i = 0; i < processes->list.count; i++) forget(&processes->list.items[i]);
    array_free(&processes->list);
    array_free(&processes->unrecorded);
}

void processes_follow(struct processes *processes, uint64_t now_ns) {
    if (processes->scope == SERVE_ONE)
        follow_one(processes, now_ns);
    else if (processes_are_many(processes))
        follow_many(processes, now_ns);
}

struct served *processes_only(struct processes *processes) {
    return processes_are_many(processes) ? NULL : &processes->list.items[0];
}

struct served *processes_find(struct processes *processes, pid_t pid) {
    const struct served key = {.pid = pid};
    if (!processes->list.count) return NULL;
    return bsearch(&key, processes->list.items, processes->list.count, sizeof key, compare_served);
}

const char *processes_path(const struct processes *processes, const struct served *served) {
    return served->file < 0 ? processes->word : served->path;
}

static bool read_figures(struct follow *follow, struct metrics_process *figures,
                         struct error *error) {
    bool is_ok = follow_figures(follow, error);
    if (is_ok) metrics_read(&follow->recording, figures);
    follow_close(follow);
    return is_ok;
}

static bool read_file(const char *path, struct metrics_process *figures, struct error *error) {
    struct recording recording;
    if (!recording_open(path, &recording, error)) return false;
    metrics_read(&recording, figures);
    figures->pid = (pid_t)recording.header.pid;
    recording_close(&recording);
    return true;
}

bool processes_is_running(struct served *served) {
    uint32_t state = CAIRN_STATE_NEW;
    uint64_t now_ns = clock_now_ns();
    if (served->file < 0 || served->is_over) return false;
    ssize_t got = pread(served->file, &state, sizeof state, offsetof(struct cairn_header, state));
    char kernel = process_state(served->pid, 0);
    bool is_there =
        got == sizeof state && state == CAIRN_STATE_RUNNING && kernel && !process_has_ended(kernel);
    if (is_there && now_ns >= served->next_look_ns) {
        served->next_look_ns = now_ns + exec_wait_alone_ns;
        uint64_t random_at = random_of(served->pid);
        is_there = !random_at || !served->random_at || random_at == served->random_at;
    }
    served->is_over = !is_there;
    return is_there;
}

// Cuts off where cgroups are mounted, as the label of processes has it.
static const char *place_of(const char *path) {
    static const char *const mounts[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        size_t length = strlen(mounts[i]);
        if (!strncmp(path, mounts[i], length) && path[length] == '/') return path + length;
    }
    return path;
}

bool processes_cgroup(const struct processes *processes, struct metrics_cgroup *metrics) {
    static struct cgroup cgroup;
    struct cgroup_parts parts;
    if (processes->scope != SERVE_CGROUP || !cgroup_open(processes->word, &cgroup, NULL) ||
        !cgroup_parts_read(&cgroup, &parts))
        return false;
    *metrics = (struct metrics_cgroup){.path = place_of(cgroup.path),
                                       .used_bytes = parts.used_bytes,
                                       .limit_bytes = parts.limit_bytes,
                                       .swap_bytes = parts.swap_bytes,
                                       .has_swap = parts.has_swap,
                                       .kills = parts.kills};
    for (int part = 0; part < CGROUP_PARTS; part++) {
        if (!parts.is_told[part]) continue;
        metrics->parts[metrics->part_count].name = cgroup_part_key((enum cgroup_part)part);
        metrics->parts[metrics->part_count++].bytes = parts.bytes[part];
    }
    return true;
}

bool processes_figures(const struct processes *processes, struct served *served,
                       struct metrics_process *figures, struct error *error) {
    static struct follow follow;  // large, and on pages of its own
    bool runs = processes_is_running(served);
    const char *path = processes_path(processes, served);
    *figures = (struct metrics_process){.pid = served->pid,
                                        .cgroup = served->place.path,
                                        .container_id = served->place.container_id,
                                        .pod_uid = served->place.pod_uid,
                                        .is_running = runs};
    memcpy(figures->name, served->name, sizeof figures->name);
    bool is_ok = follow_open(path, &follow, NULL) ? read_figures(&follow, figures, error)
                                                  : read_file(path, figures, error);
    if (is_ok && runs) figures->rss_bytes = rss_look(served->pid).rss_bytes;
    if (figures->figures.frees < served->frees_most) figures->figures.frees = served->frees_most;
    served->frees_most = figures->figures.frees;
    return is_ok;
}
