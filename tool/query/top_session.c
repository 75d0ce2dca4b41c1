// SPDX-License-Identifier: Apache-2.0
#include "tool/query/top_session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/trust.h"
#include "tool/watch/control.h"
#include "tool/watch/rss.h"

// Looking up names by itself takes a hundredth of the time at most, so names come late rather than
// dear. What is looked up at once is some more than is seen, to be ready when somebody scrolls.
enum { NAMES_SHARE = 100, NAMES_AHEAD = 100 };

static const char *target_name(const struct top_session *session, char *out, size_t size) {
    char name[NAME_MAX];
    text_escape(name, sizeof name, session->process.name);
    snprintf(out, size, "%s %d", *name ? name : "process", session->process.pid);
    return out;
}

// Where the process' program lies, "" if that is not known. A new file in its place is no change.
static void find_program(int pid, char program[PATH_MAX]) {
    static const char deleted[] = " (deleted)";
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t length = readlink(link, program, PATH_MAX - 1);
    size_t size = length > 0 ? (size_t)length : 0, suffix = sizeof deleted - 1;
    program[size] = 0;
    if (size > suffix && !strcmp(program + size - suffix, deleted)) program[size - suffix] = 0;
}

// The old program's recording does not learn of it.
static bool is_another_program(const struct top_session *session) {
    char program[PATH_MAX];
    find_program(session->process.pid, program);
    return *program && *session->program && strcmp(program, session->program) != 0;
}

// How the process ended, if it did.
static void look_whether_over(struct top_session *session, struct top *top,
                              const struct rss_now *resident) {
    const struct cairn_header *header = &session->live.follow.recording.header;
    bool is_gone = !resident->peak_bytes;
    bool has_changed = !is_gone && is_another_program(session);
    if (live_is_running(&session->live) && !is_gone && !has_changed) return;
    struct ending ending = {header->state, header->stop_reason, false, 0, 0};
    if (live_is_running(&session->live)) ending.state = CAIRN_STATE_ENDED;
    if (has_changed) ending = (struct ending){CAIRN_STATE_STOPPED, CAIRN_STOP_EXEC, false, 0, 0};
    if (ending.state == CAIRN_STATE_DIED && header->stop_reason != CAIRN_STOP_EXEC)
        ending.state = CAIRN_STATE_ENDED;
    ending_text(&ending, false, session->over, sizeof session->over);
    top->view.over = session->over;
}

static bool look(void *context, struct top *top, struct error *error) {
    struct top_session *session = context;
    char name[NAME_MAX];
    if (!live_look(&session->live, clock_now_ns(), error)) {
        snprintf(session->over, sizeof session->over, "cannot be read any more");
        top->view.over = session->over;
        return error_wrap(error, "%s", target_name(session, name, sizeof name));
    }
    struct rss_now resident = rss_look(session->process.pid);
    if (resident.rss_bytes) top->view.rss_bytes = resident.rss_bytes;
    look_whether_over(session, top, &resident);
    return true;
}

static bool want_stack(struct top_session *session, uint32_t stack) {
    while (session->are_named.count <= stack) {
        uint8_t *slot = array_push(&session->are_named);
        if (!slot) return false;
        *slot = false;
    }
    if (session->are_named.items[stack]) return false;
    session->are_named.items[stack] = true;
    names_want_stack(session->names, session->live.whole.stacks.items[stack].node, 0);
    return true;
}

static bool is_unnamed(const struct top_session *session, uint32_t stack) {
    return stack >= session->are_named.count || !session->are_named.items[stack];
}

// Whether one of the rows (or of all stacks) has no names.
static bool has_unnamed(const struct top_session *session, const struct top *top, size_t first,
                        size_t count) {
    if (count == SIZE_MAX) return session->are_named.count < session->live.whole.stacks.count;
    for (size_t i = first; i < first + count && i < top->rows.count; i++)
        if (is_unnamed(session, top->rows.items[i].stack)) return true;
    return false;
}

static void want(struct top_session *session, const struct top *top, size_t first, size_t count) {
    if (count == SIZE_MAX) {
        for (uint32_t i = 0; i < session->live.whole.stacks.count; i++) want_stack(session, i);
        return;
    }
    for (size_t i = first; i < first + count + NAMES_AHEAD && i < top->rows.count; i++)
        want_stack(session, top->rows.items[i].stack);
}

static bool find_names(void *context, struct top *top, size_t first, size_t count, bool is_wanted,
                       struct error *error) {
    struct top_session *session = context;
    // what is drawn next may go through places that were not there before
    if (!names_extend(session->names, error)) return false;
    if (live_part_is_of_sets(&session->live.part)) return true;  // rows are no stacks
    uint64_t began_ns = clock_now_ns();
    bool is_missing = has_unnamed(session, top, first, count);
    if (is_missing && !is_wanted && began_ns < session->next_names_ns) return true;
    if (is_missing) {
        want(session, top, first, count);
        if (!names_resolve(session->names, error)) return false;
        session->frame_names = names_frames(session->names);
        uint64_t end_ns = clock_now_ns();
        session->next_names_ns = end_ns + (end_ns - began_ns) * NAMES_SHARE;
    }
    if (count == SIZE_MAX) top->named_nodes = session->live.profile.tree.nodes.count;
    return true;
}

static bool set_mark(struct top_session *session, struct top *top, struct control *control,
                     struct error *error) {
    uint32_t generation = 0;
    // samples are not kept by generation: their growth is known, not which of them are new
    if (!session->live.profile.sampling.is_on) {
        if (!control_take_snapshot(control->header, control->bytes, CAIRN_SNAPSHOT_MARK, "", error))
            return false;
        generation = __atomic_load_n(&control->header->totals.generation, __ATOMIC_ACQUIRE);
    }
    if (!live_look(&session->live, clock_now_ns(), error)) return false;
    live_begin_growth(&session->live, generation);
    top_marked(top);
    snprintf(top->message, sizeof top->message, "mark at %s: growth counts from here%s",
             units_duration(session->live.base_ns).text,
             generation ? "; v shows what came since and still lives" : "");
    return true;
}

static bool snapshot(struct top_session *session, struct top *top, struct control *control,
                     struct error *error) {
    if (!control_take_snapshot(control->header, control->bytes, CAIRN_SNAPSHOT_ASKED, "", error))
        return false;
    snprintf(top->message, sizeof top->message,
             "snapshot at %s, kept in the recording: cairn report --at",
             units_duration(live_now_ns(&session->live)).text);
    return true;
}

static bool set_rate(struct top *top, struct control *control, const char *size,
                     struct error *error) {
    uint64_t bytes;
    if (!units_size_parse(size, &bytes) || !bytes)
        return error_set(error, "give a size as 256KiB, not \"%s\"", size);
    if (!control_set_rate(control, bytes, error)) return false;
    snprintf(top->message, sizeof top->message, "one sample in %s from the next one on",
             units_size((int64_t)bytes).text);
    return true;
}

static bool act_on(struct top_session *session, struct top *top, struct control *control,
                   enum top_action action, const char *argument, struct error *error) {
    bool is_off = cairn_is_off(&control->header->control);
    switch (action) {
    case TOP_MARK:
        return set_mark(session, top, control, error);
    case TOP_SNAPSHOT:
        return snapshot(session, top, control, error);
    case TOP_RATE:
        return set_rate(top, control, argument, error);
    case TOP_SWITCH:
        control_set_off(control->header, !is_off);
        snprintf(top->message, sizeof top->message, "%s",
                 is_off ? "allocations are recorded again"
                        : "allocations are not recorded from now on; o switches on again");
        return true;
    }
    return true;
}

static bool act(void *context, struct top *top, enum top_action action, const char *argument,
                struct error *error) {
    struct top_session *session = context;
    struct control control = {0};
    char name[NAME_MAX];
    bool is_ok = control_open(session->process.path, &control, error) &&
                 act_on(session, top, &control, action, argument, error);
    control_close(&control);
    return is_ok || error_wrap(error, "%s", target_name(session, name, sizeof name));
}

static bool add_process(struct top *top, const struct live_process *process) {
    struct recording recording;
    // one that has ended meanwhile is not listed
    if (!recording_open(process->path, &recording, NULL)) return true;
    const struct cairn_header *header = &recording.header;
    struct figures figures = figures_of(&recording);
    struct top_process *added = array_push(&top->processes);
    uint64_t clock_ns = clock_now_ns(), start_ns = header->start_clock_ns;
    if (added) {
        *added = (struct top_process){.pid = process->pid,
                                      .live = measure_figures(MEASURE_EXIT, &figures),
                                      .peak = measure_figures(MEASURE_PEAK, &figures),
                                      .age_ns = clock_ns > start_ns ? clock_ns - start_ns : 0,
                                      .run = (int)header->control.tool_pid,
                                      .is_off = cairn_is_off(&header->control),
                                      .is_sampled = figures.is_sampled};
        text_escape(added->name, sizeof added->name, process->name);
    }
    recording_close(&recording);
    return added != NULL;
}

bool top_session_list(struct top *top, struct error *error) {
    struct live_list processes;
    top->processes.count = 0;
    bool is_ok = live_list(&processes, error);
    for (size_t i = 0; is_ok && i < processes.processes.count; i++)
        is_ok = add_process(top, &processes.processes.items[i]) ||
                error_set(error, "no memory for the list of processes");
    array_free(&processes.processes);
    return is_ok;
}

static bool list(void *context, struct top *top, struct error *error) {
    (void)context;
    if (!top_session_list(top, error)) return false;
    return top->processes.count || live_tell_absence(NULL, error);
}

void top_session_close(struct top_session *session) {
    if (!session->is_open) return;
    names_close(session->names);
    session->names = NULL;
    live_close(&session->live);
    array_free(&session->are_named);
    *session = (struct top_session){.is_open = false};
}

bool top_session_open(struct top_session *session, struct top *top,
                      const struct live_process *process, struct error *error) {
    static struct follow probe;  // large, and on pages of its own
    if (!follow_open(process->path, &probe, error))
        return error_wrap(error, "process %d", process->pid);
    follow_close(&probe);
    top_session_close(session);
    session->process = *process;
    session->next_names_ns = 0;
    find_program(process->pid, session->program);
    if (!live_open(process->path, &session->live, error))
        return error_wrap(error, "process %d", process->pid);
    session->is_open = true;
    top_attach(top, &session->live, &session->frame_names, process->pid);
    if (!look(session, top, error)) return false;
    if (!names_open(&session->live.profile, &session->names, error)) return false;
    session->frame_names = names_frames(session->names);
    return top_list(top) || error_set(error, "no memory for the list of stacks");
}

static bool show(void *context, struct top *top, enum live_part_kind kind,
                 const struct live_set *of, struct error *error) {
    struct top_session *session = context;
    if (!live_show(&session->live, kind, of, error)) return false;
    top_shown(top);
    return top_list(top) || error_set(error, "no memory for the list of stacks");
}

static bool next_key(void *context, struct top *top, const char *key, char **next,
                     struct error *error) {
    struct top_session *session = context;
    (void)top;
    return live_part_next_key(&session->live.follow.recording, key, next) ||
           error_set(error, "no memory for the contexts of this recording");
}

static bool has_heaps(void *context, struct top *top, bool *has_any, struct error *error) {
    struct top_session *session = context;
    (void)top;
    if (!follow_scopes(&session->live.follow, error)) return false;
    return live_part_has_heap(&session->live.follow.recording, NULL, has_any) ||
           error_set(error, "no memory for the heaps of this recording");
}

static bool attach(void *context, struct top *top, int pid, struct error *error) {
    struct top_session *session = context;
    struct live_process process;
    char which[16];
    snprintf(which, sizeof which, "%d", pid);
    if (!live_choose(which, &process, error)) return false;
    bool is_ok = top_session_open(session, top, &process, error) &&
                 find_names(session, top, 0, NAMES_AHEAD, true, error);
    if (!is_ok && !session->names) {  // there is nothing to show any more
        top_session_close(session);
        top_attach(top, NULL, NULL, 0);
        top->page = TOP_PROCESSES;
    }
    return is_ok;
}

const struct top_host top_session_host = {
    .look = look,
    .find_names = find_names,
    .act = act,
    .list = list,
    .show = show,
    .next_key = next_key,
    .has_heaps = has_heaps,
    .attach = attach,
};
