// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/schedule.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tool/base/units.h"
#include "tool/watch/control.h"

// A rule that was met is met again only after the value fell a little below the limit.
enum { ARMED_PERCENT = 95, PERCENT = 100 };

static const struct {
    const char *name;
    enum schedule_value value;
} values[] = {{"rss", SCHEDULE_RSS}, {"heap", SCHEDULE_HEAP}, {"swap", SCHEDULE_SWAP}};

// "80%" or "1.5G".
static bool read_limit(const char *text, struct schedule_rule *rule) {
    char *end;
    double share = strtod(text, &end);
    if (isdigit((unsigned char)*text) && !strcmp(end, "%")) {
        rule->share = share / PERCENT;
        return share > 0 && share <= PERCENT;
    }
    return units_size_parse(text, &rule->bytes);
}

bool schedule_add_rule(struct schedule *schedule, const char *text, struct error *error) {
    struct schedule_rule rule = {0};
    size_t length = strcspn(text, ">");
    bool is_right = false;
    if (schedule->rule_count == SCHEDULE_RULES_MAX)
        return error_set(error, "--when: more than %d rules", SCHEDULE_RULES_MAX);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strlen(values[i].name) != length || strncmp(values[i].name, text, length) != 0)
            continue;
        rule.value = values[i].value;
        is_right = text[length] == '>' && read_limit(text + length + 1, &rule);
    }
    if (!is_right || strlen(text) >= sizeof rule.text)
        return error_set(error,
                         "--when needs rss, heap or swap and a limit, such as rss>80%% or "
                         "heap>1.5G, not \"%s\"",
                         text);
    snprintf(rule.text, sizeof rule.text, "%s", text);
    schedule->rules[schedule->rule_count++] = rule;
    return true;
}

static uint64_t read_number(const char *path) {
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (!file) return UINT64_MAX;
    char *line = fgets(text, sizeof text, file);
    fclose(file);
    return line && isdigit((unsigned char)*text) ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// The limits of a cgroup and those above it; `path` is changed.
static uint64_t limit_below(const char *root, char *path, const char *name) {
    uint64_t limit = UINT64_MAX;
    for (;;) {
        char file[2 * PATH_MAX];
        snprintf(file, sizeof file, "%s%s/%s", root, path, name);
        limit = least(limit, read_number(file));
        char *slash = strrchr(path, '/');
        if (!slash) return limit;
        *slash = 0;
    }
}

// Lines are "0::/user.slice" (version 2) or "4:memory:/user.slice".
static uint64_t cgroup_limit(void) {
    char line[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *path = strchr(line, '/');
        if (!path) continue;
        if (!strcmp(path, "/")) *path = 0;
        bool is_unified = !strncmp(line, "0::", 3);
        if (is_unified)
            limit = least(limit, limit_below("/sys/fs/cgroup", path, "memory.max"));
        else if (strstr(line, ":memory:"))
            limit =
                least(limit, limit_below("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
    if (file) fclose(file);
    return limit;
}

uint64_t schedule_memory_limit(void) {
    struct rlimit space = {.rlim_cur = RLIM_INFINITY};
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    getrlimit(RLIMIT_AS, &space);
    uint64_t limit = least(machine, cgroup_limit());
    return space.rlim_cur == RLIM_INFINITY ? limit : least(limit, space.rlim_cur);
}

void schedule_start(struct schedule *schedule, uint64_t now_ns) {
    double limit = (double)schedule_memory_limit();
    schedule->start_ns = now_ns;
    schedule->is_off = schedule->is_off_at_start || schedule->start_after_ns;
    if (schedule->start_after_ns) schedule->on_ns = now_ns + schedule->start_after_ns;
    if (!schedule->is_off && schedule->record_for_ns)
        schedule->off_ns = now_ns + schedule->record_for_ns;
    if (schedule->mark_every_ns) schedule->mark_ns = now_ns + schedule->mark_every_ns;
    for (unsigned i = 0; i < schedule->rule_count; i++)
        if (schedule->rules[i].share > 0)
            schedule->rules[i].bytes = (uint64_t)(limit * schedule->rules[i].share);
}

uint64_t schedule_due_ns(const struct schedule *schedule) {
    uint64_t due = UINT64_MAX;
    if (schedule->on_ns) due = least(due, schedule->on_ns);
    if (schedule->off_ns) due = least(due, schedule->off_ns);
    if (schedule->mark_ns) due = least(due, schedule->mark_ns);
    return due;
}

static void switch_all(struct schedule *schedule, struct watched *list, bool is_off) {
    schedule->is_off = is_off;
    for (struct watched *process = list; process; process = process->next)
        control_set_off(process->memory.header, is_off);
}

// The window opens: by time, or by a rule.
static void open_window(struct schedule *schedule, struct watched *list, uint64_t now_ns) {
    switch_all(schedule, list, false);
    schedule->on_ns = 0;
    if (schedule->record_for_ns) schedule->off_ns = now_ns + schedule->record_for_ns;
}

static void take(struct schedule *schedule, struct watched *process,
                 enum cairn_snapshot_reason reason, const char *label) {
    const struct memory *memory = &process->memory;
    struct error error;
    if (memory->header->state != CAIRN_STATE_RUNNING) return;
    if (control_take_snapshot(memory->header, memory->bytes, reason, label, &error)) return;
    if (schedule->problem.text[0]) return;
    error_wrap(&error, "process %d", (int)process->pid);
    schedule->problem = error;
}

static void mark_all(struct schedule *schedule, struct watched *list, uint64_t now_ns) {
    struct unit_text label = units_duration(schedule->mark_ns - schedule->start_ns);
    for (struct watched *process = list; process; process = process->next)
        take(schedule, process, CAIRN_SNAPSHOT_MARK, label.text);
    while (schedule->mark_ns <= now_ns) schedule->mark_ns += schedule->mark_every_ns;
}

void schedule_turn(struct schedule *schedule, struct watched *list, uint64_t now_ns) {
    if (schedule->on_ns && now_ns >= schedule->on_ns) open_window(schedule, list, now_ns);
    if (schedule->off_ns && now_ns >= schedule->off_ns) {
        switch_all(schedule, list, true);
        schedule->off_ns = 0;
        schedule->is_over = true;
    }
    if (schedule->mark_ns && now_ns >= schedule->mark_ns) mark_all(schedule, list, now_ns);
}

static uint64_t value_of(const struct schedule_rule *rule, const struct watched *process,
                         const struct rss_now *now) {
    int64_t live;
    switch (rule->value) {
    case SCHEDULE_RSS:
        return now->rss_bytes;
    case SCHEDULE_SWAP:
        return now->swap_bytes;
    case SCHEDULE_HEAP:
        break;
    }
    live = __atomic_load_n(&process->memory.header->totals.live_bytes, __ATOMIC_RELAXED);
    return live > 0 ? (uint64_t)live : 0;
}

void schedule_look(struct schedule *schedule, struct watched *list, struct watched *process,
                   const struct rss_now *now, uint64_t now_ns) {
    bool is_waiting = schedule->is_off_at_start && schedule->is_off && !schedule->is_over;
    for (unsigned i = 0; i < schedule->rule_count; i++) {
        const struct schedule_rule *rule = &schedule->rules[i];
        uint64_t value = value_of(rule, process, now);
        uint32_t bit = 1u << i;
        if (value <= rule->bytes / PERCENT * ARMED_PERCENT) process->rules_met &= ~bit;
        if (value <= rule->bytes || (process->rules_met & bit)) continue;
        process->rules_met |= bit;
        if (is_waiting) open_window(schedule, list, now_ns);
        take(schedule, process, CAIRN_SNAPSHOT_ASKED, rule->text);
    }
}
