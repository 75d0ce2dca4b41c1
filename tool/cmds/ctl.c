// SPDX-License-Identifier: Apache-2.0
// cairn ctl: asks something of processes that are being recorded, through the control words of
// their recordings. It returns when that is written: nobody has to answer, so that a process which
// waits for something is served like any other. Only `check` waits for an answer, for the blink of
// an eye.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/model/measure.h"
#include "tool/query/live.h"
#include "tool/render/interval.h"
#include "tool/render/terminal.h"
#include "tool/watch/bands.h"
#include "tool/watch/control.h"

enum { NAME_BYTES = 4 * NAME_MAX, LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES };

// What an action works on.
struct target {
    const struct live_process *process;
    struct control control;
    const char *argument;    // "" if none was given
    uint64_t events_for_ms;  // 0: until it is said
    char name[NAME_BYTES];   // "redis-server 4242", safe to print
};

struct action {
    const char *name;
    bool has_argument;  // takes one word more
    bool is_look;       // changes nothing
    bool (*run)(const struct target *target, struct error *error);
};

static void print_snapshots(const struct terminal *terminal, const struct recording *recording) {
    unsigned marks = 0, snapshots = 0;
    struct cairn_snapshot snapshot, last = {0};
    for (size_t i = 0; i < CAIRN_SNAPSHOT_LIMIT && recording_snapshot(recording, i, &snapshot);
         i++) {
        marks += snapshot.reason == CAIRN_SNAPSHOT_MARK;
        snapshots += snapshot.reason != CAIRN_SNAPSHOT_MARK;
        if (*snapshot.label) last = snapshot;
    }
    fprintf(terminal->out, ", %s, %s", units_counted(marks, "mark", "marks").text,
            units_counted(snapshots, "snapshot", "snapshots").text);
    char label[LABEL_TEXT_BYTES];
    last.label[sizeof last.label - 1] = 0;
    text_escape(label, sizeof label, last.label);
    if (*label)
        fprintf(terminal->out, ", last label \"%s\" at %s", label,
                units_duration(last.time_ns).text);
}

static bool show_status(const struct target *target, struct error *error) {
    struct terminal terminal = terminal_of(stdout);
    const struct cairn_header *header = target->control.header;
    struct recording recording;
    if (!recording_open_memory(header, target->control.bytes, &recording, error)) return false;
    struct figures figures = figures_of(&recording);
    bool is_off = cairn_is_off(&header->control);
    terminal_print(&terminal, STYLE_STRONG, "%s", target->name);
    terminal_print(&terminal, is_off ? STYLE_WARNING : STYLE_PLAIN, " %s",
                   is_off ? "not recording" : "recording");
    struct measured left = measure_figures(MEASURE_EXIT, &figures);
    struct measured peak = measure_figures(MEASURE_PEAK, &figures);
    printf(", %s: %s%s live%s, peak %s%s%s, %s", units_duration(control_age_ns(header)).text,
           units_size(measured_shown(left)).text, interval_amount(left, true, false).text,
           interval_samples(left).text, units_size(measured_shown(peak)).text,
           interval_amount(peak, true, false).text, interval_samples(peak).text,
           units_counted((int64_t)figures.allocations, "call", "calls").text);
    print_snapshots(&terminal, &recording);
    fputc('\n', stdout);
    recording_close(&recording);
    return true;
}

static bool set_off(const struct target *target, bool is_off) {
    bool was_off = control_set_off(target->control.header, is_off);
    const char *word = is_off ? "off" : "on";
    printf("%s %s %s at %s\n", target->name, was_off == is_off ? "was" : "is now", word,
           units_duration(control_age_ns(target->control.header)).text);
    return true;
}

static bool switch_on(const struct target *target, struct error *error) {
    (void)error;
    return set_off(target, false);
}

static bool switch_off(const struct target *target, struct error *error) {
    (void)error;
    return set_off(target, true);
}

static bool take_snapshot(const struct target *target, enum cairn_snapshot_reason reason,
                          const char *what, struct error *error) {
    const struct control *control = &target->control;
    char label[LABEL_TEXT_BYTES];
    if (!control_take_snapshot(control->header, control->bytes, reason, target->argument, error))
        return false;
    text_escape(label, sizeof label, target->argument);
    printf("%s: %s%s%s%s at %s\n", target->name, what, *label ? " \"" : "", label,
           *label ? "\"" : "", units_duration(control_age_ns(control->header)).text);
    return true;
}

static bool mark(const struct target *target, struct error *error) {
    return take_snapshot(target, CAIRN_SNAPSHOT_MARK, "mark", error);
}

static bool snapshot(const struct target *target, struct error *error) {
    return take_snapshot(target, CAIRN_SNAPSHOT_ASKED, "snapshot", error);
}

static bool rate_read(const char *text, uint64_t *bytes, struct error *error) {
    return (units_size_parse(text, bytes) && *bytes) ||
           error_set(error, "ctl: rate: give a size as 256KiB, not \"%s\"", text);
}

static bool set_rate(const struct target *target, struct error *error) {
    uint64_t bytes;
    if (!rate_read(target->argument, &bytes, error)) return false;
    if (!control_set_rate(&target->control, bytes, error)) return false;
    printf("%s: one sample in %s from the next one on\n", target->name,
           units_size((int64_t)bytes).text);
    return true;
}

static bool events_read(const char *text, bool *is_on, struct error *error) {
    *is_on = !strcmp(text, "on");
    return *is_on || !strcmp(text, "off") ||
           error_set(error, "ctl: events: on or off, not \"%s\"", text);
}

static bool set_events(const struct target *target, struct error *error) {
    const struct control *control = &target->control;
    bool is_on, is_done;
    if (!events_read(target->argument, &is_on, error)) return false;
    if (!(is_on ? control_begin_log(control, target->events_for_ms, &is_done, error)
                : control_stop_log(control, &is_done, error)))
        return false;
    const char *what = is_on ? "events are logged from" : "the log ends at";
    if (is_done)
        printf("%s: %s %s%s\n", target->name, what,
               units_duration(control_age_ns(control->header)).text, is_on ? " on" : "");
    else
        printf("%s: %s its next allocation%s\n", target->name, what, is_on ? " on" : "");
    return true;
}

static bool check(const struct target *target, struct error *error) {
    struct bands_check found;
    if (!bands_check(&target->control, target->process->pid, &found, error)) return false;
    uint64_t overruns = found.overrun_blocks, checked = found.checked_blocks;
    printf("%s: %s live %s looked at, ", target->name, units_count((int64_t)checked).text,
           checked == 1 ? "block" : "blocks");
    if (overruns)
        printf("%s found overrun so far: cairn report %d --view overruns\n",
               units_count((int64_t)overruns).text, target->process->pid);
    else
        puts("none is overrun");
    return true;
}

static bool detach(const struct target *target, struct error *error) {
    struct cairn_header *header = target->control.header;
    if (!header->is_attached)
        return error_set(error, "it was started by cairn run, which cannot leave it");
    __atomic_store_n(&header->control.is_leave_wanted, 1, __ATOMIC_RELAXED);
    printf("%s: cairn attach leaves it\n", target->name);
    return true;
}

static const struct action actions[] = {
    {"status", false, true, show_status}, {"on", false, false, switch_on},
    {"off", false, false, switch_off},    {"mark", true, false, mark},
    {"snapshot", true, false, snapshot},  {"rate", true, false, set_rate},
    {"events", true, false, set_events},  {"check", false, false, check},
    {"detach", false, false, detach},
};
enum { ACTION_COUNT = sizeof actions / sizeof *actions };

static const struct action *action_find(const char *name) {
    for (size_t i = 0; name && i < ACTION_COUNT; i++)
        if (!strcmp(actions[i].name, name)) return &actions[i];
    return NULL;
}

// What the words ask for: [TARGET] ACTION [ARGUMENT].
struct wish {
    const struct action *action;
    const char *which;  // PID or NAME; NULL: all
    const char *argument;
    uint64_t events_for_ns;  // 0: not said
    bool is_for_all;
};

static void tell_actions(const char *wrong, struct error *error) {
    error_set(error,
              "ctl: %s%s%sgive what to do: status, on, off, mark [LABEL], snapshot [LABEL], "
              "rate SIZE, events on, events off, check or detach",
              wrong ? "\"" : "", wrong ? wrong : "", wrong ? "\" is unknown, " : "");
}

static bool wish_read(const struct command_args *args, struct wish *wish, struct error *error) {
    char **words = args->words;
    int count = args->word_count, at = 0;
    *wish = (struct wish){.argument = "", .is_for_all = args_has(args, OPTION_ALL)};
    // a process may be called like an action: then an action follows
    bool is_named = count && (!action_find(words[0]) || (count > 1 && action_find(words[1]) &&
                                                         !action_find(words[0])->has_argument));
    if (is_named) wish->which = words[at++];
    wish->action = at < count ? action_find(words[at]) : NULL;
    if (!wish->action) {
        tell_actions(at < count ? words[at] : NULL, error);
        return false;
    }
    at++;
    if (at < count && wish->action->has_argument) wish->argument = words[at++];
    if (at < count) return error_set(error, "ctl: \"%s\" is one word too many", words[at]);
    if (wish->which && wish->is_for_all)
        return error_set(error, "ctl: either --all or \"%s\"", wish->which);
    if (!wish->which && !wish->is_for_all && !wish->action->is_look)
        return error_set(error, "ctl: %s: of which process? Give its PID or NAME, or --all",
                         wish->action->name);
    uint64_t bytes;
    bool is_on = false;
    bool has_time = args_has(args, OPTION_EVENTS_FOR);
    if (!args_duration(args, OPTION_EVENTS_FOR, &wish->events_for_ns, error)) return false;
    if (wish->action->run == set_events && !events_read(wish->argument, &is_on, error))
        return false;
    if (has_time && (wish->action->run != set_events || !is_on))
        return error_set(error, "ctl: --events-for goes with: events on");
    if (wish->action->run == set_rate) return rate_read(wish->argument, &bytes, error);
    if (strlen(wish->argument) >= CAIRN_LABEL_BYTES)
        return error_set(error, "ctl: a label has %u bytes at most", CAIRN_LABEL_BYTES - 1);
    return true;
}

static bool act(const struct wish *wish, const struct live_process *process, struct error *error) {
    struct target target = {.process = process, .argument = wish->argument};
    const uint64_t ns_per_ms = 1000000;
    target.events_for_ms = (wish->events_for_ns + ns_per_ms - 1) / ns_per_ms;
    char name[NAME_BYTES - 16];
    text_escape(name, sizeof name, *process->name ? process->name : "process");
    snprintf(target.name, sizeof target.name, "%s %d", name, process->pid);
    bool is_ok =
        control_open(process->path, &target.control, error) && wish->action->run(&target, error);
    control_close(&target.control);
    return is_ok || error_wrap(error, "%s", target.name);
}

// Leaves out what others record: words that change something mean them by their pids only.
static void leave_out_others(struct live_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->processes.count; i++)
        if (list->processes.items[i].is_own)
            list->processes.items[kept++] = list->processes.items[i];
    list->processes.count = kept;
}

static bool choose_targets(const struct wish *wish, struct live_list *list, struct error *error) {
    bool is_name = wish->which && !running_is_number(wish->which);
    bool is_ok = wish->which ? live_select(wish->which, list, error) : live_list(list, error);
    if (!is_ok) return false;
    if (wish->action->is_look) return list->processes.count || live_tell_absence(NULL, error);
    if (is_name || wish->is_for_all) leave_out_others(list);
    if (is_name && list->processes.count > 1) return live_tell_several(wish->which, list, error);
    if (list->processes.count) return true;
    if (!is_name) return live_tell_absence(NULL, error);
    return error_set(error, "\"%s\" is recorded by another user: give its pid", wish->which);
}

static bool act_on_all(const struct wish *wish, const struct live_list *list, struct error *error) {
    bool is_ok = true;
    for (size_t i = 0; i < list->processes.count; i++) {
        struct error problem;
        if (act(wish, &list->processes.items[i], &problem)) continue;
        if (is_ok) *error = problem;
        is_ok = false;
    }
    return is_ok;
}

int cmd_ctl(const struct command_args *args) {
    struct wish wish;
    struct live_list list = {0};
    struct error error;
    if (!wish_read(args, &wish, &error)) return command_fail(STATUS_USAGE, &error);
    bool is_ok = choose_targets(&wish, &list, &error) && act_on_all(&wish, &list, &error);
    array_free(&list.processes);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
