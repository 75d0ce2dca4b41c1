// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/watched.h"
#include "tool/proc/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/watch/code_files.h"
#include "tool/watch/program.h"
#include "tool/watch/timeline.h"

enum { SHORT_LIVED_CALLS = 1000, SHORT_LIVED_BYTES = 1 << 20 };

static bool open_memory(const struct watched *process, struct recording *recording) {
    const struct memory *memory = &process->memory;
    if (memory->header->state == CAIRN_STATE_NEW) return false;
    return recording_open_memory(memory->header, memory->bytes, recording, NULL);
}

bool watched_is_short_lived(const struct watched *process) {
    struct recording recording;
    if (!open_memory(process, &recording)) return true;
    struct figures figures = figures_of(&recording);
    struct cairn_guard guard;
    bool has_damage = recording_guard(&recording, &guard) && guard.overrun_blocks;
    recording_close(&recording);
    return figures.allocations < SHORT_LIVED_CALLS && figures.allocated_bytes < SHORT_LIVED_BYTES &&
           !has_damage;
}

bool watched_row(const struct watched *process, struct run_row *row) {
    struct recording recording;
    if (!open_memory(process, &recording)) return false;
    memory_finish(&recording.header, &process->end);
    run_row_of(&recording, row);
    recording_close(&recording);
    snprintf(row->parent, sizeof row->parent, "%s", process->parent);
    return true;
}

uint32_t watched_last_snapshot(const struct watched *process) {
    struct recording recording;
    struct cairn_snapshot snapshot = {0};
    if (!open_memory(process, &recording)) return 0;
    size_t count = recording_count(&recording, CAIRN_SECTION_SNAPSHOTS);
    bool has_any = count && recording_snapshot(&recording, count - 1, &snapshot);
    recording_close(&recording);
    return has_any ? snapshot.epoch : 0;
}

bool watched_is_gone(const struct watched *process) {
    struct pollfd polled = {.fd = process->pid_file, .events = POLLIN};
    if (process->pid_file >= 0) return poll(&polled, 1, 0) > 0;
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

static void look_at_stat(struct watched *process) {
    const uint64_t ns_per_s = 1000000000u;
    struct process_stat stat;
    if (!process_stat(process->pid, &stat)) return;
    if (process_has_ended(stat.state)) memory_end_set_status(&process->end, stat.exit_code);
    uint64_t cpu_ns = stat.ticks * (ns_per_s / (uint64_t)sysconf(_SC_CLK_TCK));
    if (cpu_ns > process->end.cpu_ns) process->end.cpu_ns = cpu_ns;
}

// How a process ended that somebody else has waited for: Linux 6.15 keeps that with its pidfd.
static void ask_exit(struct watched *process) {
    const uint64_t has_exit = 8;  // PIDFD_INFO_EXIT
    struct {
        uint64_t mask, cgroup;
        uint32_t ids[11];
        int32_t exit_code;
    } info = {.mask = has_exit};
    if (process->end.has_exit || process->pid_file < 0) return;
    int result = ioctl(process->pid_file, _IOWR(0xFF, 11, info), &info);  // PIDFD_GET_INFO
    if (result == 0 && (info.mask & has_exit)) memory_end_set_status(&process->end, info.exit_code);
}

void watched_look_at_end(struct watched *process) {
    look_at_stat(process);
    ask_exit(process);
}

void watched_publish_clock(const struct watched *process, uint64_t now_ns) {
    const uint64_t ns_per_ms = 1000000;
    struct cairn_header *header = process->memory.header;
    if (header->state != CAIRN_STATE_RUNNING || now_ns < header->start_clock_ns) return;
    uint32_t ms = (uint32_t)((now_ns - header->start_clock_ns) / ns_per_ms);
    __atomic_store_n(&header->control.clock_ms, ms, __ATOMIC_RELAXED);
}

struct rss_now watched_look(struct watched *process, uint64_t now_ns, uint64_t most_pause_ns) {
    struct rss_now now = rss_look(process->pid);
    if (now.peak_bytes > process->end.rss_peak_bytes) process->end.rss_peak_bytes = now.peak_bytes;
    rss_note(&process->rss, process->pid, &process->memory, &now, now_ns, most_pause_ns);
    code_files_note(&process->memory, process->pid);
    look_at_stat(process);
    timeline_note_totals(&process->memory, now_ns);
    watched_publish_clock(process, now_ns);
    return now;
}

void watched_name(struct watched *process, const char *name, unsigned attempt) {
    enum { NUMBER_BYTES = 24 };
    char image[NUMBER_BYTES] = "", number[NUMBER_BYTES] = "";
    if (process->image) snprintf(image, sizeof image, "-%llu", (unsigned long long)process->image);
    if (attempt) snprintf(number, sizeof number, ".%u", attempt);
    snprintf(process->file_name, sizeof process->file_name, "%.150s.%d%s%s.cairn", name,
             (int)process->pid, image, number);
}

void watched_free(struct watched *process) {
    if (process->pid_file >= 0) close(process->pid_file);
    memory_close(&process->memory);
    rss_free(&process->rss);
    free(process);
}
