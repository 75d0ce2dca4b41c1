// SPDX-License-Identifier: Apache-2.0
#include "tool/push/pushing.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/aligned.h"
#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/base/version.h"
#include "tool/export/metrics.h"
#include "tool/model/all_heaps.h"
#include "tool/proc/cgroup.h"
#include "tool/query/exported.h"
#include "tool/watch/rss.h"

// Fewer stacks than these say little; what they take is below every engine's limit.
enum { STACKS_LEAST = 64, PID_BYTES = 16 };

// --- labels

struct labels {
    struct export_label list[PUSH_LABELS_MOST + 8];
    size_t count;
    char name[NAME_MAX];
    char pid[PID_BYTES];
    struct cgroup_place place;
};

static void set_label(struct labels *labels, const char *name, const char *value) {
    size_t at = 0;
    while (at < labels->count && strcmp(labels->list[at].name, name) != 0) at++;
    if (at == labels->count) labels->count++;
    labels->list[at] = (struct export_label){name, value};
}

static int compare_labels(const void *a, const void *b) {
    const struct export_label *first = a, *second = b;
    return strcmp(first->name, second->name);
}

// What was given comes over what is usual; what is empty goes.
static void finish_labels(const struct pushing *pushing, struct labels *labels) {
    size_t kept = 0;
    for (size_t i = 0; i < pushing->label_count; i++)
        set_label(labels, pushing->labels[i].name, pushing->labels[i].value);
    for (size_t i = 0; i < labels->count; i++)
        if (*labels->list[i].value) labels->list[kept++] = labels->list[i];
    labels->count = kept;
    qsort(labels->list, kept, sizeof *labels->list, compare_labels);
}

// `runs`: the process is there, and the kernel says where it belongs.
static void labels_of_profile(const struct pushing *pushing, const char *name, int pid, bool runs,
                              struct labels *labels) {
    labels->count = 0;
    labels->place = (struct cgroup_place){.path = ""};
    if (runs) cgroup_place_of(pid, &labels->place);
    text_escape(labels->name, sizeof labels->name, *name ? name : "process");
    snprintf(labels->pid, sizeof labels->pid, "%d", pid);
    set_label(labels, "service_name", labels->name);
    set_label(labels, "instance", pushing->host);
    if (pid) set_label(labels, "pid", labels->pid);
    set_label(labels, "cgroup", labels->place.path);
    set_label(labels, "container_id", labels->place.container_id);
    set_label(labels, "pod_uid", labels->place.pod_uid);
    finish_labels(pushing, labels);
}

// Names and pids of processes are labels of the metrics' rows.
static void labels_of_metrics(const struct pushing *pushing, struct labels *labels) {
    labels->count = 0;
    set_label(labels, "job", "cairn");
    set_label(labels, "instance", pushing->host);
    finish_labels(pushing, labels);
}

// --- requests

static bool add_request(struct pushing *pushing, const struct parcel *parcel, size_t *plain_bytes,
                        struct error *error) {
    const struct engine *engine = pushing->destination.engine;
    struct byte_buffer body = {0};
    char query[ENGINE_QUERY_BYTES];
    if (!engine->encode(parcel, &body, query, sizeof query, plain_bytes, error)) return false;
    bool is_small = !engine->bytes_most || *plain_bytes <= engine->bytes_most;
    bool is_ok = !is_small || queue_add(&pushing->queue, pushing->delivery.in_flight,
                                        parcel->end_unix_ns, query, &body, error);
    byte_buffer_free(&body);
    return is_ok;
}

static void note_problem(struct pushing *pushing, const struct error *error) {
    pushing->problem = *error;
    pushing->unmade++;
}

static bool tell_too_large(const struct pushing *pushing, struct error *error) {
    return error_set(error, "its profile is larger than %s takes",
                     pushing->destination.engine->name);
}

// One try with so many stacks. `is_small`: the request was made.
static bool try_target(struct pushing *pushing, struct target *target, size_t stacks,
                       uint64_t unix_ns, bool *is_small, struct error *error) {
    const struct engine *engine = pushing->destination.engine;
    struct taken taken;
    struct labels labels;
    size_t plain_bytes = 0;
    *is_small = true;
    if (!target_take(target, stacks, unix_ns, &taken, error)) return false;
    const struct frame_names names = names_frames(target->names);
    char *trust = exported_trust_text(&taken.profile, NULL);
    labels_of_profile(pushing, target->process.name, target->process.pid, true, &labels);
    const struct export_interval interval = {taken.end_unix_ns,
                                             taken.end_unix_ns - taken.start_unix_ns,
                                             taken.folded_count ? &taken.folded : NULL};
    const struct export export = {.profile = &taken.profile,
                                  .interval = &interval,
                                  .names = &names,
                                  .process_count = 1,
                                  .trust = trust ? trust : "",
                                  .tool_version = CAIRN_TOOL_VERSION,
                                  .labels = labels.list,
                                  .label_count = labels.count};
    const struct parcel parcel = {.export = &export,
                                  .labels = labels.list,
                                  .label_count = labels.count,
                                  .start_unix_ns = taken.start_unix_ns,
                                  .end_unix_ns = taken.end_unix_ns};
    bool is_ok = !taken.profile.stack_count || add_request(pushing, &parcel, &plain_bytes, error);
    *is_small = !engine->bytes_most || plain_bytes <= engine->bytes_most;
    free(trust);
    target_taken_free(&taken);
    return is_ok;
}

// With fewer and fewer stacks, until it is within what the engine takes.
bool pushing_add_target(struct pushing *pushing, struct target *target, uint64_t unix_ns,
                        struct error *error) {
    size_t stacks = pushing->destination.engine->stacks_most - 1;  // one for what is folded
    for (; stacks >= STACKS_LEAST; stacks /= 2) {
        bool is_small;
        if (!try_target(pushing, target, stacks, unix_ns, &is_small, error)) return false;
        if (is_small)
            return target_advance(target, unix_ns) || error_set(error, "no memory for its stacks");
    }
    return tell_too_large(pushing, error);
}

// --- processes

// `group` (NULL: any): where it has to be.
static bool is_pushed(const struct live_process *process, const struct process_pids *group) {
    return (process->is_own || !geteuid()) && (!group || process_pids_has(group, process->pid));
}

static bool list_processes(struct pushing *pushing, struct live_list *list, struct error *error) {
    struct process_pids group = {0};
    size_t kept = 0;
    if (pushing->which) return live_select(pushing->which, list, error);
    bool is_ok = !pushing->cgroup || cgroup_list(pushing->cgroup, &group) ||
                 error_set(error, "no memory for the list of processes");
    is_ok = is_ok && live_list(list, error);
    for (size_t i = 0; is_ok && i < list->processes.count; i++)
        if (is_pushed(&list->processes.items[i], pushing->cgroup ? &group : NULL))
            list->processes.items[kept++] = list->processes.items[i];
    list->processes.count = kept;
    array_free(&group.pids);
    return is_ok;
}

static bool has_process(const struct live_list *list, const struct target *target) {
    for (size_t i = 0; i < list->processes.count; i++)
        if (target_is_of(target, &list->processes.items[i])) return true;
    return false;
}

static bool has_target(const struct pushing *pushing, const struct live_process *process) {
    for (size_t i = 0; i < pushing->targets.count; i++)
        if (target_is_of(pushing->targets.items[i], process)) return true;
    return false;
}

static bool add_process(struct pushing *pushing, const struct live_process *process,
                        uint64_t clock_ns, uint64_t unix_ns, struct error *error) {
    struct target *target = aligned_zeros(_Alignof(struct target), sizeof *target);
    struct target **slot = target ? array_push(&pushing->targets) : NULL;
    if (!slot) {
        free(target);
        return error_set(error, "no memory for another process");
    }
    *slot = target;
    if (target_open(process, pushing->has_looked, clock_ns, unix_ns, target, error)) {
        target_rest(target);
        return true;
    }
    pushing->targets.count--;
    free(target);
    return false;
}

// Processes that are new. One that ended just now is left out.
static void add_processes(struct pushing *pushing, const struct live_list *list, uint64_t clock_ns,
                          uint64_t unix_ns) {
    struct error error;
    for (size_t i = 0; i < list->processes.count; i++)
        if (!has_target(pushing, &list->processes.items[i]))
            add_process(pushing, &list->processes.items[i], clock_ns, unix_ns, &error);
}

static void remove_target(struct pushing *pushing, size_t index) {
    struct target *target = pushing->targets.items[index];
    target_close(target);
    free(target);
    pushing->targets.items[index] = pushing->targets.items[--pushing->targets.count];
}

// Its last interval, if it is over, is what it did until its end.
static void look_at_targets(struct pushing *pushing, const struct live_list *list,
                            uint64_t clock_ns, uint64_t unix_ns) {
    bool has_removed = false;
    for (size_t i = pushing->targets.count; i-- > 0;) {
        struct target *target = pushing->targets.items[i];
        struct error error;
        bool is_over = !has_process(list, target);
        bool is_seen = target_look(target, clock_ns, &error);
        bool is_ok = is_seen && pushing_add_target(pushing, target, unix_ns, &error);
        if (!is_ok) {
            error_wrap(&error, "process %d", target->process.pid);
            note_problem(pushing, &error);
        }
        has_removed |= is_over || target->is_over || !is_seen;
        if (is_over || target->is_over || !is_seen)
            remove_target(pushing, i);
        else
            target_rest(target);
    }
    // what they took lies between what others have: most of it goes back only if asked to
    if (has_removed) malloc_trim(0);
}

// --- metrics

static bool read_metrics(const struct live_process *process, struct cgroup_place *place,
                         struct metrics_process *read) {
    static struct follow follow;  // large, and on pages of its own
    cgroup_place_of(process->pid, place);
    *read = (struct metrics_process){.pid = process->pid,
                                     .cgroup = place->path,
                                     .container_id = place->container_id,
                                     .pod_uid = place->pod_uid,
                                     .is_running = true};
    snprintf(read->name, sizeof read->name, "%s", process->name);
    read->rss_bytes = rss_look(process->pid).rss_bytes;
    if (!follow_open(process->path, &follow, NULL)) return false;
    bool is_read = follow_figures(&follow, NULL);
    if (is_read) metrics_read(&follow.recording, read);
    follow_close(&follow);
    return is_read;
}

// For free(); NULL without memory.
static char *metrics_text(const struct live_list *list) {
    struct metrics_process *processes = calloc(list->processes.count + 1, sizeof *processes);
    struct cgroup_place *places = calloc(list->processes.count + 1, sizeof *places);
    size_t count = 0, size = 0;
    char *text = NULL;
    bool has_memory = processes && places;
    for (size_t i = 0; has_memory && i < list->processes.count; i++)
        count += read_metrics(&list->processes.items[i], &places[count], &processes[count]);
    FILE *out = has_memory ? open_memstream(&text, &size) : NULL;
    if (out) metrics_print(out, processes, count, true, NULL, METRICS_PROMETHEUS);
    bool is_ok = out && !fclose(out);
    free(processes);
    free(places);
    if (is_ok) return text;
    free(text);
    return NULL;
}

static void add_metrics(struct pushing *pushing, const struct live_list *list, uint64_t unix_ns) {
    struct labels labels;
    struct error error;
    size_t plain_bytes;
    labels_of_metrics(pushing, &labels);
    char *text = metrics_text(list);
    const struct parcel parcel = {.metrics = text,
                                  .labels = labels.list,
                                  .label_count = labels.count,
                                  .start_unix_ns = unix_ns,
                                  .end_unix_ns = unix_ns};
    bool is_ok = text ? add_request(pushing, &parcel, &plain_bytes, &error)
                      : error_set(&error, "no memory for metrics");
    free(text);
    if (!is_ok) note_problem(pushing, &error);
}

// --- all of it

bool pushing_look(struct pushing *pushing, uint64_t clock_ns, uint64_t unix_ns) {
    struct live_list list = {0};
    struct error error;
    bool is_listed = list_processes(pushing, &list, &error);
    if (!is_listed) list.processes.count = 0;
    pushing->process_count = list.processes.count;
    if (pushing->destination.engine->is_of_metrics) {
        if (list.processes.count) add_metrics(pushing, &list, unix_ns);
    } else {
        look_at_targets(pushing, &list, clock_ns, unix_ns);
        add_processes(pushing, &list, clock_ns, unix_ns);
    }
    array_free(&list.processes);
    return is_listed || !pushing->which || !running_is_number(pushing->which);
}

static void find_host(struct pushing *pushing) {
    char name[sizeof pushing->host / 4] = "";
    if (gethostname(name, sizeof name - 1)) snprintf(name, sizeof name, "localhost");
    text_escape(pushing->host, sizeof pushing->host, name);
}

static void prepare(struct pushing *pushing, struct sender sender) {
    find_host(pushing);
    pushing->delivery = (struct delivery){.queue = &pushing->queue,
                                          .sender = sender,
                                          .age_most_ns = pushing->destination.engine->age_most_ns};
}

bool pushing_start(struct pushing *pushing, struct sender sender, uint64_t clock_ns,
                   uint64_t unix_ns, struct error *error) {
    struct live_list list = {0};
    prepare(pushing, sender);
    bool is_ok = list_processes(pushing, &list, error);
    pushing->process_count = is_ok ? list.processes.count : 0;
    if (is_ok && !pushing->destination.engine->is_of_metrics)
        add_processes(pushing, &list, clock_ns, unix_ns);
    pushing->has_looked = true;
    array_free(&list.processes);
    return is_ok;
}

void pushing_close(struct pushing *pushing) {
    while (pushing->targets.count) remove_target(pushing, pushing->targets.count - 1);
    array_free(&pushing->targets);
}

// Older than the engine takes: that is said before anything is sent.
static bool check_age(const struct pushing *pushing, uint64_t end_unix_ns, uint64_t unix_ns,
                      struct error *error) {
    const struct engine *engine = pushing->destination.engine;
    if (end_unix_ns + engine->age_most_ns >= unix_ns) return true;
    return error_set(error, "it ended %s ago, and %s takes nothing older than %s",
                     units_duration(unix_ns - end_unix_ns).text, engine->name,
                     units_duration(engine->age_most_ns).text);
}

// One try with so many stacks. `is_small`: the request was made.
static bool try_opened(struct pushing *pushing, const struct export *whole, size_t stacks,
                       const struct labels *labels, bool *is_small, struct error *error) {
    const struct engine *engine = pushing->destination.engine;
    const struct recording *recording = whole->profile->recording;
    struct export export = *whole;
    struct taken taken;
    size_t plain_bytes = 0;
    if (!taken_make(whole->profile, stacks, &taken, error)) return false;
    export.profile = &taken.profile;
    const struct export_interval interval = {
        recording->header.start_unix_ns + recording_last_ns(recording),
        recording_last_ns(recording), taken.folded_count ? &taken.folded : NULL};
    export.interval = &interval;
    const struct parcel parcel = {.export = &export,
                                  .labels = labels->list,
                                  .label_count = labels->count,
                                  .start_unix_ns = recording->header.start_unix_ns,
                                  .end_unix_ns = recording->header.start_unix_ns +
                                                 recording_last_ns(recording)};
    bool is_ok = add_request(pushing, &parcel, &plain_bytes, error);
    *is_small = plain_bytes <= engine->bytes_most;
    target_taken_free(&taken);
    return is_ok;
}

static bool add_opened(struct pushing *pushing, struct opened *opened, uint64_t unix_ns,
                       struct error *error) {
    const struct cairn_header *header = &opened->recording.header;
    struct exported exported = {0};
    struct labels labels;
    bool is_small = false;
    uint64_t end_unix_ns = header->start_unix_ns + recording_last_ns(&opened->recording);
    if (!check_age(pushing, end_unix_ns, unix_ns, error)) return false;
    bool is_ok = profile_show_all_heaps(&opened->profile, error) &&
                 exported_prepare(opened, &exported, error);
    labels_of_profile(pushing, exported.program, (int)header->pid, false, &labels);
    exported.export.command = NULL;  // its arguments are nobody else's business
    exported.export.labels = labels.list;
    exported.export.label_count = labels.count;
    size_t stacks = pushing->destination.engine->stacks_most - 1;
    for (; is_ok && !is_small && stacks >= STACKS_LEAST; stacks /= 2)
        is_ok = try_opened(pushing, &exported.export, stacks, &labels, &is_small, error);
    if (is_ok && !is_small) is_ok = tell_too_large(pushing, error);
    exported_free(&exported);
    return is_ok;
}

bool pushing_start_recording(struct pushing *pushing, struct sender sender, const char *path,
                             uint64_t unix_ns, struct error *error) {
    struct opened opened;
    prepare(pushing, sender);
    if (pushing->destination.engine->is_of_metrics)
        return error_set(error, "%s: metrics are of processes that run", path);
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok = add_opened(pushing, &opened, unix_ns, error);
    opened_close(&opened);
    return is_ok || error_wrap(error, "%s", path);
}
