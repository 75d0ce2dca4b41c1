// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/control.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/events.h"
#include "format/sample.h"
#include "format/snapshots.h"
#include "tool/base/clock.h"
#include "tool/base/units.h"

static bool check(const struct control *control, struct error *error) {
    const struct cairn_header *header = control->header;
    if (memcmp(header->magic, CAIRN_MAGIC, CAIRN_MAGIC_BYTES) != 0)
        return error_set(error, "is not a cairn recording");
    if (header->version != CAIRN_VERSION)
        return error_set(error, "is recorded by another version of cairn (format %u, not %u)",
                         header->version, CAIRN_VERSION);
    if (header->state == CAIRN_STATE_STOPPED)
        return error_set(error, "is not recorded any more: cairn switched itself off in it");
    return header->state == CAIRN_STATE_RUNNING || error_set(error, "has ended");
}

bool control_open(const char *path, struct control *control, struct error *error) {
    struct stat status;
    *control = (struct control){0};
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (file < 0 && (errno == EACCES || errno == EPERM))
        return error_set(error, "belongs to somebody else: only its user and root may");
    if (file < 0) return error_set(error, "cannot be reached: %s", strerror(errno));
    bool is_whole = fstat(file, &status) == 0 && status.st_size >= (off_t)CAIRN_HEADER_BYTES;
    void *mapping = MAP_FAILED;
    control->bytes = is_whole ? (uint64_t)status.st_size : 0;
    if (is_whole)
        mapping =
            mmap(NULL, control->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (!is_whole) return error_set(error, "is not a cairn recording");
    if (mapping == MAP_FAILED) return error_set(error, "cannot be mapped: %s", strerror(errno));
    control->header = mapping;
    if (check(control, error)) return true;
    control_close(control);
    return false;
}

void control_close(struct control *control) {
    if (control->header) munmap(control->header, control->bytes);
    *control = (struct control){0};
}

bool control_set_off(struct cairn_header *header, bool is_off) {
    return cairn_switch(header, is_off);
}

uint64_t control_age_ns(const struct cairn_header *header) {
    uint64_t now = clock_now_ns();
    return now > header->start_clock_ns ? now - header->start_clock_ns : 0;
}

struct cairn_section *control_section(const struct control *control, uint32_t kind) {
    struct cairn_header *header = control->header;
    uint32_t count = header->section_count;
    if (count > CAIRN_SECTION_MAX) count = CAIRN_SECTION_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (header->sections[i].kind == kind) return &header->sections[i];
    return NULL;
}

void *control_entry(const struct control *control, uint32_t kind, size_t entry_bytes) {
    const struct cairn_section *section = control_section(control, kind);
    uint64_t offset = section && section->used_bytes ? section->offset : 0;
    bool has_room = offset && offset % sizeof(uint64_t) == 0 && offset < control->bytes &&
                    control->bytes - offset >= entry_bytes;
    return has_room ? (uint8_t *)control->header + offset : NULL;
}

bool control_set_rate(const struct control *control, uint64_t rate_bytes, struct error *error) {
    struct cairn_sampling *sampling =
        control_entry(control, CAIRN_SECTION_SAMPLING, sizeof *sampling);
    if (!sampling || !__atomic_load_n(&sampling->is_on, __ATOMIC_RELAXED))
        return error_set(error, "it records every block, not samples (cairn run --sample)");
    __atomic_store_n(&sampling->wanted_bytes, rate_bytes, __ATOMIC_RELAXED);
    return true;
}

enum { ATTEMPTS = 200 };
static const struct timespec pause_ns = {.tv_nsec = 1000000};

// --- the event log

// Logs that are switched on have numbers from 3 on: 1 is one from the start.
enum { LOG_FIRST_LATE = 3 };

bool control_log_is_due(const struct cairn_header *header) {
    const struct cairn_control *control = &header->control;
    uint32_t wanted = __atomic_load_n(&control->events_wanted, __ATOMIC_RELAXED);
    return header->state == CAIRN_STATE_RUNNING &&
           wanted != __atomic_load_n(&control->events_state, __ATOMIC_ACQUIRE) &&
           wanted != __atomic_load_n(&control->events_refused, __ATOMIC_RELAXED);
}

static void want_log(struct cairn_header *header, uint32_t number) {
    __atomic_store_n(&header->control.events_wanted, number, __ATOMIC_RELEASE);
}

void control_end_log(struct cairn_header *header) {
    uint32_t wanted = __atomic_load_n(&header->control.events_wanted, __ATOMIC_RELAXED);
    if (wanted & 1) want_log(header, wanted + 1);
}

// True: both sides did it, or refused.
static bool wait_for_log(struct cairn_header *header, uint32_t wanted) {
    struct cairn_control *control = &header->control;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint32_t taken = __atomic_load_n(&control->events_taken, __ATOMIC_ACQUIRE);
        if (taken == wanted ||
            __atomic_load_n(&control->events_refused, __ATOMIC_ACQUIRE) == wanted)
            return true;
        nanosleep(&pause_ns, NULL);
    }
    return false;
}

bool control_begin_log(const struct control *control, uint64_t for_ms, bool *is_done,
                       struct error *error) {
    struct cairn_header *header = control->header;
    struct cairn_control *words = &header->control;
    uint32_t wanted = __atomic_load_n(&words->events_wanted, __ATOMIC_RELAXED);
    if (!words->has_event_taker)
        return error_set(error,
                         "has nobody beside it who takes a log: cairn run or attach is gone");
    if (!control_section(control, CAIRN_SECTION_EVENTS))
        return error_set(error, "does not record every block with its stack, which a log needs");
    if (wanted & 1) return error_set(error, "writes a log of its events already");
    if (wanted && !wait_for_log(header, wanted))
        return error_set(error, "has not ended its last log: that comes with its next allocation");
    cairn_set_events_for_ms(words, for_ms);
    wanted = wanted + 1 < LOG_FIRST_LATE ? LOG_FIRST_LATE : wanted + 1;
    want_log(header, wanted);
    *is_done = wait_for_log(header, wanted);
    if (__atomic_load_n(&words->events_refused, __ATOMIC_ACQUIRE) != wanted) return true;
    __atomic_store_n(&words->events_wanted, wanted + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&words->events_state, wanted + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&words->events_taken, wanted + 1, __ATOMIC_RELAXED);
    return error_set(error, "has no memory for a log");
}

bool control_stop_log(const struct control *control, bool *is_done, struct error *error) {
    struct cairn_header *header = control->header;
    uint32_t wanted = __atomic_load_n(&header->control.events_wanted, __ATOMIC_RELAXED);
    if (!(wanted & 1)) return error_set(error, "writes no log of its events");
    want_log(header, wanted + 1);
    *is_done = wait_for_log(header, wanted + 1);
    return true;
}

// --- snapshots

// The process wrote the section table; it is not believed beyond the mapping.
static bool find_table(struct cairn_header *header, uint64_t mapped_bytes,
                       struct cairn_snapshot_table *table) {
    const uint64_t needed = CAIRN_SNAPSHOT_LIMIT * sizeof(struct cairn_snapshot);
    uint32_t count = header->section_count;
    for (uint32_t i = 0; i < count && i < CAIRN_SECTION_MAX; i++) {
        struct cairn_section *section = &header->sections[i];
        uint64_t offset = section->offset;
        if (section->kind != CAIRN_SECTION_SNAPSHOTS) continue;
        if (section->capacity_bytes < needed || section->entry_bytes != sizeof *table->snapshots ||
            mapped_bytes < needed || offset < CAIRN_HEADER_BYTES ||
            offset > mapped_bytes - needed || offset % _Alignof(struct cairn_snapshot))
            return false;
        *table = (struct cairn_snapshot_table){
            .header = header,
            .snapshots = (struct cairn_snapshot *)((uint8_t *)header + offset),
            .used_bytes = &section->used_bytes};
        return true;
    }
    return false;
}

static struct cairn_snapshot describe(const struct cairn_header *header,
                                      enum cairn_snapshot_reason reason, const char *label) {
    const struct cairn_totals *totals = &header->totals;
    uint64_t now = clock_now_ns();
    struct cairn_snapshot snapshot = {
        .reason = reason,
        .time_ns = now > header->start_clock_ns ? now - header->start_clock_ns : 0,
        .live_bytes = __atomic_load_n(&totals->live_bytes, __ATOMIC_RELAXED),
        .live_blocks = __atomic_load_n(&totals->live_blocks, __ATOMIC_RELAXED),
        .allocated_bytes = __atomic_load_n(&totals->allocated_bytes, __ATOMIC_RELAXED),
        .allocations = __atomic_load_n(&totals->allocations, __ATOMIC_RELAXED)};
    snprintf(snapshot.label, sizeof snapshot.label, "%s", label);
    return snapshot;
}

bool control_take_snapshot(struct cairn_header *header, uint64_t mapped_bytes,
                           enum cairn_snapshot_reason reason, const char *label,
                           struct error *error) {
    struct cairn_snapshot_table table;
    if (header->is_compact || !find_table(header, mapped_bytes, &table))
        return error_set(error, "is not a running recording that can remember snapshots");
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct cairn_snapshot wanted = describe(header, reason, label);
        switch (cairn_snapshot_take(&table, &wanted, CAIRN_PACE_TOOL)) {
        case CAIRN_SNAPSHOT_TAKEN:
            return true;
        case CAIRN_SNAPSHOT_FULL:
            return error_set(error,
                             "has no room for another snapshot: it remembers %u that were "
                             "asked for",
                             CAIRN_SNAPSHOT_LIMIT);
        case CAIRN_SNAPSHOT_BUSY:
            nanosleep(&pause_ns, NULL);
        }
    }
    return error_set(error, "cannot take a snapshot: the process takes one itself, and is stopped");
}

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

// The memory that the process of the tool and its children may take: the least of the limits of its
// cgroups, RLIMIT_AS and the machine's memory.
static uint64_t schedule_memory_limit(void) {
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
