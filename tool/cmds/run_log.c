// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/run_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/array.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/measure.h"
#include "tool/model/snapshots.h"
#include "tool/query/merged.h"
#include "tool/render/trust.h"

enum {
    LABEL_TEXT_BYTES = 4 * CAIRN_LABEL_BYTES,
    LABEL_COLUMNS = 200,
    PATH_BYTES = 64,
    OTHERS_BYTES = 32
};

// What a stack had done when its process' last block was written.
struct logged_stack {
    uint64_t id, allocated_bytes, freed_bytes;
};

struct logged_process {
    pid_t pid;
    uint64_t image;
    struct logged_stack *stacks;  // by id
    size_t count;
    uint64_t churn_bytes;
    uint32_t epoch;  // of the last snapshot that it was written for
};

struct run_log {
    FILE *file;
    unsigned block_count;
    ARRAY(struct logged_process) processes;
};

bool run_log_open(const char *path, struct run_log **log, struct error *error) {
    *log = calloc(1, sizeof **log);
    if (!*log) return error_set(error, "no memory for the log");
    (*log)->file = fopen(path, "ae");
    if ((*log)->file) return true;
    error_set(error, "%s: %s", path, strerror(errno));
    free(*log);
    *log = NULL;
    return false;
}

void run_log_close(struct run_log *log) {
    if (!log) return;
    for (size_t i = 0; i < log->processes.count; i++) free(log->processes.items[i].stacks);
    array_free(&log->processes);
    fclose(log->file);
    free(log);
}

static struct logged_process *find_process(struct run_log *log, const struct watched *process) {
    for (size_t i = 0; i < log->processes.count; i++) {
        struct logged_process *logged = &log->processes.items[i];
        if (logged->pid == process->pid && logged->image == process->image) return logged;
    }
    struct logged_process *logged = array_push(&log->processes);
    if (logged) *logged = (struct logged_process){.pid = process->pid, .image = process->image};
    return logged;
}

static int compare_ids(const void *a, const void *b) {
    const struct logged_stack *first = a, *second = b;
    return (first->id > second->id) - (first->id < second->id);
}

static struct logged_stack before(const struct logged_process *logged, uint64_t id) {
    struct logged_stack key = {.id = id};
    const struct logged_stack *found =
        logged->count ? bsearch(&key, logged->stacks, logged->count, sizeof key, compare_ids)
                      : NULL;
    return found ? *found : key;
}

// How many snapshots are newer than those of the last block; the newest of all.
static unsigned new_snapshots(struct opened *opened, const struct logged_process *logged,
                              struct cairn_snapshot *last) {
    struct cairn_snapshot snapshot;
    unsigned count = 0;
    for (size_t i = 0; recording_snapshot(&opened->recording, i, &snapshot); i++) {
        count += snapshot.epoch > logged->epoch;
        *last = snapshot;
    }
    return count;
}

static void print_heading(struct run_log *log, const struct opened *opened,
                          struct logged_process *logged, const struct cairn_snapshot *newest,
                          unsigned snapshots, uint64_t churn_bytes) {
    const struct cairn_header *header = &opened->recording.header;
    struct cairn_snapshot last = *newest;
    char name[FRAME_TEXT_BYTES], label[LABEL_TEXT_BYTES], raw[CAIRN_LABEL_BYTES + 1] = "";
    char others[OTHERS_BYTES] = "";
    logged->epoch = last.epoch;
    if (snapshots > 1) snprintf(others, sizeof others, ", %u snapshots since", snapshots);
    memcpy(raw, last.label, CAIRN_LABEL_BYTES);
    text_escape(label, sizeof label, raw);
    program_name(&opened->profile, name, sizeof name);
    enum cairn_snapshot_reason reason = last.reason < CAIRN_SNAPSHOT_REASONS
                                            ? (enum cairn_snapshot_reason)last.reason
                                            : CAIRN_SNAPSHOT_NONE;
    fprintf(log->file, "[%4u]==== %s %d at %s, %s%s%s%s%s\nchurn=%" PRIu64 "/%" PRIu64 "\n",
            ++log->block_count, name, (int)logged->pid, units_duration(last.time_ns).text,
            reason ? snapshot_reason_name(reason) : "end", *label ? " \"" : "", label,
            *label ? "\"" : "", others, churn_bytes - logged->churn_bytes,
            header->pace.every_bytes);
}

static bool print_stack(FILE *file, const struct opened *opened, const struct frame_names *names,
                        const struct stack *stack, const struct logged_stack *old) {
    struct frame_list frames = {.are_all_shown = true};
    bool is_ok = frame_list_fill(&frames, &opened->profile, names, stack->node, 0);
    const struct frame *frame;
    size_t index = 0;
    fprintf(file,
            "{%016" PRIx64 "} live:%" PRId64 ", alloc:%" PRIu64 "/%" PRIu64 ", free:%" PRIu64
            "/%" PRIu64 "\n",
            stack->id, stack->exit_bytes, stack->allocated_bytes - old->allocated_bytes,
            stack->allocated_bytes, stack->freed_bytes - old->freed_bytes, stack->freed_bytes);
    for (unsigned i = 0; is_ok && (frame = frame_list_next(&frames, &index)); i++) {
        char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
        frame_label(frame, label, sizeof label, LABEL_COLUMNS);
        frame_location(frame, location, sizeof location);
        fprintf(file, "  {%u} %s%s%s\n", i, label, *location ? " " : "", location);
    }
    frame_list_free(&frames);
    return is_ok;
}

// Stacks that did something since the last block, those that allocated most first.
static bool print_stacks(struct run_log *log, struct opened *opened,
                         const struct logged_process *logged, struct error *error) {
    const struct profile *profile = &opened->profile;
    size_t count;
    uint32_t *ranking = measure_rank_all(MEASURE_EXIT, profile, &count);
    bool is_ok = ranking != NULL;
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(opened->names, profile->stacks[i].node, 0);
    is_ok = is_ok && names_resolve(opened->names, error);
    struct frame_names names = names_frames(opened->names);
    for (size_t i = 0; is_ok && i < count; i++) {
        const struct stack *stack = &profile->stacks[ranking[i]];
        struct logged_stack old = before(logged, stack->id);
        bool is_same =
            stack->allocated_bytes == old.allocated_bytes && stack->freed_bytes == old.freed_bytes;
        if (!is_same) is_ok = print_stack(log->file, opened, &names, stack, &old);
    }
    free(ranking);
    return is_ok;
}

// What the next block is compared with.
static bool remember(struct logged_process *logged, const struct profile *profile) {
    struct logged_stack *stacks = calloc(profile->stack_count + 1, sizeof *stacks);
    if (!stacks) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        stacks[i] = (struct logged_stack){.id = profile->stacks[i].id,
                                          .allocated_bytes = profile->stacks[i].allocated_bytes,
                                          .freed_bytes = profile->stacks[i].freed_bytes};
    qsort(stacks, profile->stack_count, sizeof *stacks, compare_ids);
    free(logged->stacks);
    logged->stacks = stacks;
    logged->count = profile->stack_count;
    return true;
}

bool run_log_write(void *context, const struct watched *process, bool is_last,
                   struct error *error) {
    struct run_log *log = context;
    struct opened opened;
    char path[PATH_BYTES];
    struct logged_process *logged = find_process(log, process);
    if (!logged) return error_set(error, "no memory for the log");
    snprintf(path, sizeof path, "/proc/self/fd/%d", process->memory.file);
    if (!opened_open(path, &opened, error)) return false;
    uint64_t churn = opened.profile.totals.allocated_bytes + opened.profile.totals.freed_bytes;
    struct cairn_snapshot last = {0};
    unsigned snapshots = new_snapshots(&opened, logged, &last);
    if (!snapshots && !is_last) {  // the last block has it already: it was written a little later
        opened_close(&opened);
        return true;
    }
    print_heading(log, &opened, logged, &last, snapshots, churn);
    bool is_ok = print_stacks(log, &opened, logged, error) && remember(logged, &opened.profile);
    logged->churn_bytes = churn;
    opened_close(&opened);
    if (is_ok && !fflush(log->file) && !ferror(log->file)) return true;
    return error_set(error, "the log cannot be written: %s", strerror(errno));
}
