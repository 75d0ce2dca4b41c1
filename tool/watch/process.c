// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/watch/proc.h"
#include "tool/watch/program.h"

enum { SHORT_LIVED_CALLS = 1000, SHORT_LIVED_BYTES = 1 << 20, PROC_PATH_BYTES = 64 };

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
    bool has_damage = recording_guard(&recording, &guard) && guard.damaged_blocks;
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

uint32_t watched_last_moment(const struct watched *process) {
    struct recording recording;
    struct cairn_moment moment = {0};
    if (!open_memory(process, &recording)) return 0;
    size_t count = recording_count(&recording, CAIRN_SECTION_MOMENTS);
    bool has_any = count && recording_moment(&recording, count - 1, &moment);
    recording_close(&recording);
    return has_any ? moment.epoch : 0;
}

bool watched_is_gone(const struct watched *process) {
    struct pollfd polled = {.fd = process->pid_file, .events = POLLIN};
    if (process->pid_file >= 0) return poll(&polled, 1, 0) > 0;
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

// Fields of /proc/PID/stat, counted behind the name, which may hold anything.
enum { STAT_STATE = 3, STAT_USER_TIME = 14, STAT_SYSTEM_TIME = 15, STAT_EXIT_CODE = 52 };

static void look_at_stat(struct watched *process) {
    const uint64_t ns_per_s = 1000000000u;
    char text[2048];
    proc_read(process->pid, "stat", text, sizeof text);
    char *rest = strrchr(text, ')');
    uint64_t ticks = 0;
    bool is_over = false;
    if (!rest) return;
    rest += 2;
    for (int field = STAT_STATE; field <= STAT_EXIT_CODE; field++) {
        const char *word = strsep(&rest, " ");
        if (!word) break;
        if (field == STAT_STATE) is_over = *word == 'Z' || *word == 'X';
        if (field == STAT_USER_TIME || field == STAT_SYSTEM_TIME) ticks += strtoull(word, NULL, 10);
        if (field == STAT_EXIT_CODE && is_over)
            memory_end_set_status(&process->end, (int)strtol(word, NULL, 10));
    }
    uint64_t cpu_ns = ticks * (ns_per_s / (uint64_t)sysconf(_SC_CLK_TCK));
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

struct resident_now watched_look(struct watched *process, uint64_t now_ns, uint64_t most_pause_ns) {
    struct resident_now now = resident_look(process->pid);
    if (now.peak_bytes > process->end.rss_peak_bytes) process->end.rss_peak_bytes = now.peak_bytes;
    resident_note(&process->resident, process->pid, &process->memory, &now, now_ns, most_pause_ns);
    look_at_stat(process);
    watched_publish_clock(process, now_ns);
    return now;
}

pid_t watched_parent(pid_t pid) {
    char text[2048];
    int parent = 0;
    proc_read(pid, "stat", text, sizeof text);
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest, ") %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

void watched_name(struct watched *process, const char *name, unsigned attempt) {
    enum { NUMBER_BYTES = 24 };
    char image[NUMBER_BYTES] = "", number[NUMBER_BYTES] = "";
    if (process->image) snprintf(image, sizeof image, "-%llu", (unsigned long long)process->image);
    if (attempt) snprintf(number, sizeof number, ".%u", attempt);
    snprintf(process->file_name, sizeof process->file_name, "%.150s.%d%s%s.cairn", name,
             (int)process->pid, image, number);
}

bool watched_program(pid_t pid, char name[NAME_MAX]) {
    char path[PROC_PATH_BYTES], image[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, image, sizeof image - 1);
    if (length <= 0) return false;
    image[length] = 0;
    snprintf(name, NAME_MAX, "%s", program_base_name(image));
    return true;
}

bool watched_called(pid_t pid, char name[NAME_MAX]) {
    char text[PATH_MAX];
    if (!proc_read(pid, "cmdline", text, sizeof text)) return false;
    snprintf(name, NAME_MAX, "%s", program_base_name(text));
    return true;
}

void watched_free(struct watched *process) {
    if (process->pid_file >= 0) close(process->pid_file);
    memory_close(&process->memory);
    resident_free(&process->resident);
    free(process);
}
