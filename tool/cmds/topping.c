// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/topping.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/trust.h"
#include "tool/watch/control.h"
#include "tool/watch/moment.h"
#include "tool/watch/resident.h"

// Looking up names by itself takes a hundredth of the time at most, so names come late rather than
// dear. What is looked up at once is some more than is seen, to be ready when somebody scrolls.
enum { NAMES_SHARE = 100, NAMES_AHEAD = 100 };

static uint64_t now_ns(void) {
    const uint64_t ns_per_s = 1000000000u;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * ns_per_s + (uint64_t)now.tv_nsec;
}

// As it was called: a script's interpreter, or a program of many names, says more so.
static const char *name_of(const struct live_process *process) {
    return *process->called ? process->called : process->program;
}

static const char *target_name(const struct topping *topping, char *out, size_t size) {
    char name[NAME_MAX];
    text_escape(name, sizeof name, name_of(&topping->process));
    snprintf(out, size, "%s %d", *name ? name : "process", topping->process.pid);
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
static bool is_another_program(const struct topping *topping) {
    char program[PATH_MAX];
    find_program(topping->process.pid, program);
    return *program && *topping->program && strcmp(program, topping->program) != 0;
}

// How the process ended, if it did.
static void look_whether_over(struct topping *topping, struct top *top,
                              const struct resident_now *resident) {
    const struct cairn_header *header = &topping->live.follow.recording.header;
    bool is_gone = !resident->peak_bytes;
    bool has_changed = !is_gone && is_another_program(topping);
    if (live_is_running(&topping->live) && !is_gone && !has_changed) return;
    struct ending ending = {header->state, header->stop_reason, false, 0, 0};
    if (live_is_running(&topping->live)) ending.state = CAIRN_STATE_ENDED;
    if (has_changed) ending = (struct ending){CAIRN_STATE_STOPPED, CAIRN_STOP_EXEC, false, 0, 0};
    if (ending.state == CAIRN_STATE_DIED && header->stop_reason != CAIRN_STOP_EXEC)
        ending.state = CAIRN_STATE_ENDED;
    ending_text(&ending, false, topping->over, sizeof topping->over);
    top->view.over = topping->over;
}

static bool look(void *context, struct top *top, struct error *error) {
    struct topping *topping = context;
    char name[NAME_MAX];
    if (!live_look(&topping->live, now_ns(), error)) {
        snprintf(topping->over, sizeof topping->over, "cannot be read any more");
        top->view.over = topping->over;
        return error_wrap(error, "%s", target_name(topping, name, sizeof name));
    }
    struct resident_now resident = resident_look(topping->process.pid);
    if (resident.rss_bytes) top->view.rss_bytes = resident.rss_bytes;
    look_whether_over(topping, top, &resident);
    return true;
}

static bool want_stack(struct topping *topping, uint32_t stack) {
    while (topping->are_named.count <= stack) {
        uint8_t *slot = array_push(&topping->are_named);
        if (!slot) return false;
        *slot = false;
    }
    if (topping->are_named.items[stack]) return false;
    topping->are_named.items[stack] = true;
    names_want_stack(topping->names, topping->live.stacks.items[stack].node, 0);
    return true;
}

static bool is_unnamed(const struct topping *topping, uint32_t stack) {
    return stack >= topping->are_named.count || !topping->are_named.items[stack];
}

// Whether one of the rows (or of all stacks) has no names.
static bool has_unnamed(const struct topping *topping, const struct top *top, size_t first,
                        size_t count) {
    if (count == SIZE_MAX) return topping->are_named.count < topping->live.stacks.count;
    for (size_t i = first; i < first + count && i < top->rows.count; i++)
        if (is_unnamed(topping, top->rows.items[i].stack)) return true;
    return false;
}

static void want(struct topping *topping, const struct top *top, size_t first, size_t count) {
    if (count == SIZE_MAX) {
        for (uint32_t i = 0; i < topping->live.stacks.count; i++) want_stack(topping, i);
        return;
    }
    for (size_t i = first; i < first + count + NAMES_AHEAD && i < top->rows.count; i++)
        want_stack(topping, top->rows.items[i].stack);
}

static bool find_names(void *context, struct top *top, size_t first, size_t count, bool is_wanted,
                       struct error *error) {
    struct topping *topping = context;
    // what is drawn next may go through places that were not there before
    if (!names_extend(topping->names, error)) return false;
    uint64_t began_ns = now_ns();
    bool is_missing = has_unnamed(topping, top, first, count);
    if (is_missing && !is_wanted && began_ns < topping->next_names_ns) return true;
    if (is_missing) {
        want(topping, top, first, count);
        if (!names_resolve(topping->names, error)) return false;
        topping->frame_names = names_frames(topping->names);
        uint64_t end_ns = now_ns();
        topping->next_names_ns = end_ns + (end_ns - began_ns) * NAMES_SHARE;
    }
    if (count == SIZE_MAX) top->named_nodes = topping->live.profile.tree.nodes.count;
    return true;
}

static bool set_mark(struct topping *topping, struct top *top, struct control *control,
                     struct error *error) {
    uint32_t generation = 0;
    // samples are not kept by generation: their growth can be told, not which of them are new
    if (!topping->live.profile.sampling.is_on) {
        if (!moment_ask(control->header, control->bytes, CAIRN_MOMENT_MARK, "", error))
            return false;
        generation = __atomic_load_n(&control->header->totals.generation, __ATOMIC_ACQUIRE);
    }
    if (!live_look(&topping->live, now_ns(), error)) return false;
    live_begin_growth(&topping->live, generation);
    top_marked(top);
    snprintf(top->message, sizeof top->message, "mark at %s: growth counts from here%s",
             units_duration(topping->live.base_ns).text,
             generation ? "; v shows what came since and still lives" : "");
    return true;
}

static bool snapshot(struct topping *topping, struct top *top, struct control *control,
                     struct error *error) {
    if (!moment_ask(control->header, control->bytes, CAIRN_MOMENT_ASKED, "", error)) return false;
    snprintf(top->message, sizeof top->message,
             "snapshot at %s, kept in the recording: cairn report --at",
             units_duration(live_now_ns(&topping->live)).text);
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

static bool act_on(struct topping *topping, struct top *top, struct control *control,
                   enum top_action action, const char *argument, struct error *error) {
    bool is_off = __atomic_load_n(&control->header->control.is_off, __ATOMIC_RELAXED) != 0;
    switch (action) {
    case TOP_MARK:
        return set_mark(topping, top, control, error);
    case TOP_SNAPSHOT:
        return snapshot(topping, top, control, error);
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
    struct topping *topping = context;
    struct control control = {0};
    char name[NAME_MAX];
    bool is_ok = control_open(topping->process.path, &control, error) &&
                 act_on(topping, top, &control, action, argument, error);
    control_close(&control);
    return is_ok || error_wrap(error, "%s", target_name(topping, name, sizeof name));
}

static bool add_process(struct top *top, const struct live_process *process) {
    struct recording recording;
    // one that has ended meanwhile is not listed
    if (!recording_open(process->path, &recording, NULL)) return true;
    const struct cairn_header *header = &recording.header;
    struct figures figures = figures_of(&recording);
    struct top_process *added = array_push(&top->processes);
    uint64_t clock_ns = now_ns(), start_ns = header->start_clock_ns;
    if (added) {
        *added = (struct top_process){.pid = process->pid,
                                      .live = measure_figures(MEASURE_EXIT, &figures),
                                      .peak = measure_figures(MEASURE_PEAK, &figures),
                                      .age_ns = clock_ns > start_ns ? clock_ns - start_ns : 0,
                                      .run = (int)header->control.tool_pid,
                                      .is_off = header->control.is_off != 0,
                                      .is_sampled = figures.is_sampled};
        text_escape(added->name, sizeof added->name, name_of(process));
    }
    recording_close(&recording);
    return added != NULL;
}

bool topping_list(struct top *top, struct error *error) {
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
    if (!topping_list(top, error)) return false;
    return top->processes.count || live_tell_absence(NULL, error);
}

void topping_close(struct topping *topping) {
    if (!topping->is_open) return;
    names_close(topping->names);
    topping->names = NULL;
    live_close(&topping->live);
    array_free(&topping->are_named);
    *topping = (struct topping){.is_open = false};
}

bool topping_open(struct topping *topping, struct top *top, const struct live_process *process,
                  struct error *error) {
    static struct follow probe;  // large, and on pages of its own
    if (!follow_open(process->path, &probe, error))
        return error_wrap(error, "process %d", process->pid);
    follow_close(&probe);
    topping_close(topping);
    topping->process = *process;
    topping->next_names_ns = 0;
    find_program(process->pid, topping->program);
    if (!live_open(process->path, &topping->live, error))
        return error_wrap(error, "process %d", process->pid);
    topping->is_open = true;
    top_attach(top, &topping->live, &topping->frame_names, process->pid);
    if (!look(topping, top, error)) return false;
    if (!names_open(&topping->live.profile, &topping->names, error)) return false;
    topping->frame_names = names_frames(topping->names);
    return top_list(top) || error_set(error, "no memory for the list of stacks");
}

static bool attach(void *context, struct top *top, int pid, struct error *error) {
    struct topping *topping = context;
    struct live_process process;
    char which[16];
    snprintf(which, sizeof which, "%d", pid);
    if (!live_choose(which, &process, error)) return false;
    bool is_ok = topping_open(topping, top, &process, error) &&
                 find_names(topping, top, 0, NAMES_AHEAD, true, error);
    if (!is_ok && !topping->names) {  // there is nothing to show any more
        topping_close(topping);
        top_attach(top, NULL, NULL, 0);
        top->page = TOP_PROCESSES;
    }
    return is_ok;
}

const struct top_host topping_host = {
    .look = look, .find_names = find_names, .act = act, .list = list, .attach = attach};
