// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/watched.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/run_mark.h"
#include "format/sample.h"
#include "tool/base/clock.h"
#include "tool/model/figures.h"
#include "tool/proc/process.h"
#include "tool/watch/code_files.h"
#include "tool/watch/memory.h"
#include "tool/watch/program.h"

// As long as a process waits for its answer.
static const uint64_t patience_ns = 2000000000u;

static int open_reserve(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

// Chooses a name, and binds the socket to it.
static bool bind_to_number(struct handshake_listener *listener) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid() << 16 ^ (uintptr_t)listener;
    listener->number = random & ((UINT64_C(1) << CAIRN_MARK_RUN_BITS) - 1);
    cairn_mark_socket(listener->name, listener->number);
    size_t length = strlen(listener->name);
    memcpy(address.sun_path + 1, listener->name, length);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return bind(listener->socket, (struct sockaddr *)&address, size) == 0;
}

bool handshake_open(struct handshake_listener *listener, struct error *error) {
    enum { NAMES_TRIED = 16 };
    *listener = (struct handshake_listener){.socket = -1, .reserve = open_reserve()};
    listener->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_bound = listener->socket >= 0 && bind_to_number(listener);
    for (int i = 1; i < NAMES_TRIED && !is_bound && errno == EADDRINUSE; i++)
        is_bound = bind_to_number(listener);
    if (!is_bound || listen(listener->socket, SOMAXCONN) != 0)
        return error_set(error, "cannot listen for the program: %s", strerror(errno));
    return true;
}

static void forget(struct handshake_listener *listener, unsigned index) {
    listener->silent[index] = listener->silent[--listener->silent_count];
}

static void dismiss(struct handshake_listener *listener, unsigned index) {
    close(listener->silent[index].connection);
    forget(listener, index);
}

void handshake_close(struct handshake_listener *listener) {
    while (listener->silent_count) dismiss(listener, 0);
    if (listener->socket >= 0) close(listener->socket);
    if (listener->reserve >= 0) close(listener->reserve);
    listener->socket = listener->reserve = -1;
}

unsigned handshake_poll_set(const struct handshake_listener *listener, struct pollfd *polled) {
    polled[0] = (struct pollfd){.fd = listener->socket, .events = POLLIN};
    for (unsigned i = 0; i < listener->silent_count; i++)
        polled[i + 1] = (struct pollfd){.fd = listener->silent[i].connection, .events = POLLIN};
    return listener->silent_count + 1;
}

// Programs may drop privileges between images, so another user is fine if one of both is root.
static bool is_welcome(const struct ucred *peer) {
    bool is_same_user = peer->uid == getuid() || peer->uid == 0 || getuid() == 0;
    return is_same_user && peer->pid > 0;
}

// Without a descriptor for a client, its connection is closed at once: it writes its recording
// itself.
static bool turn_away(struct handshake_listener *listener) {
    if (listener->reserve < 0) return false;
    close(listener->reserve);
    int connection = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC);
    if (connection >= 0) close(connection);
    listener->reserve = open_reserve();
    return connection >= 0;
}

// Takes one connection from the listener into the list; false if there is none.
static bool let_in(struct handshake_listener *listener, uint64_t now_ns) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int connection = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0 && (errno == EMFILE || errno == ENFILE)) return turn_away(listener);
    if (connection < 0) return errno == EINTR || errno == ECONNABORTED;
    bool is_known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!is_known || !is_welcome(&peer)) {
        close(connection);
        return true;
    }
    if (listener->silent_count == HANDSHAKE_SILENT_MAX) dismiss(listener, 0);
    listener->silent[listener->silent_count++] =
        (struct handshake_client){connection, peer.pid, now_ns};
    return true;
}

// Receives a client's message. The client leaves the list then, or if none can come any more.
static bool listen_to(struct handshake_listener *listener, unsigned index, uint64_t now_ns,
                      struct handshake_client *client, struct cairn_hello *message) {
    *client = listener->silent[index];
    ssize_t got = recv(client->connection, message, sizeof *message, MSG_DONTWAIT | MSG_TRUNC);
    bool is_silent = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (is_silent && now_ns - client->since_ns < patience_ns) return false;
    bool is_known = message->magic == CAIRN_HELLO_MAGIC ||
                    message->magic == CAIRN_HELLO_END_MAGIC ||
                    message->magic == CAIRN_HELLO_VARIABLES_MAGIC;
    if (got == sizeof *message && is_known) {
        forget(listener, index);
        return true;
    }
    dismiss(listener, index);
    return false;
}

bool handshake_next(struct handshake_listener *listener, uint64_t now_ns,
                    struct handshake_client *client, struct cairn_hello *message) {
    for (unsigned i = listener->silent_count; i-- > 0;)
        if (listen_to(listener, i, now_ns, client, message)) return true;
    while (listener->socket >= 0 && let_in(listener, now_ns))
        if (listener->silent_count &&
            listen_to(listener, listener->silent_count - 1, now_ns, client, message))
            return true;
    return false;
}

void handshake_dismiss(const struct handshake_client *client) {
    close(client->connection);
}

void handshake_answer_text(const struct handshake_client *client, const char *text, size_t bytes) {
    send(client->connection, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(client->connection);
}

// A file with a name, by which recorded programs cover address space (runtime/sys/veil.h).
static int own_executable(void) {
    static int file = -1;
    if (file < 0) file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return file;
}

void handshake_answer(const struct handshake_client *client, int memory_file, bool has_executable) {
    char byte = 0;
    const int files[] = {memory_file, has_executable ? own_executable() : -1};
    const size_t bytes = files[1] < 0 ? sizeof memory_file : sizeof files;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof files)];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (memory_file >= 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(bytes);
        struct cmsghdr *attached = CMSG_FIRSTHDR(&message);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(attached), files, bytes);
    }
    sendmsg(client->connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(client->connection);
}

// --- the timeline from outside

// A thread whose live total does not move notes no point,
// however much it allocates and frees: each time the tool checks the process, it writes the sums of
// all threads into the current point. So rates are known to a tenth of a second, and the program
// pays nothing.

// What all threads did so far, as their entries have it now.
static void sum_threads(const struct memory *memory, const struct cairn_section *section,
                        struct cairn_point *sum) {
    const struct cairn_thread *threads =
        (const void *)((const uint8_t *)memory->header + section->offset);
    uint64_t count = __atomic_load_n(&section->used_bytes, __ATOMIC_ACQUIRE) / sizeof *threads;
    uint64_t room = (memory->bytes - section->offset) / sizeof *threads;
    if (count > room) count = room;
    if (count > FIGURES_THREADS_MAX) count = FIGURES_THREADS_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const struct cairn_thread *thread = &threads[i];
        int64_t blocks = (int64_t)(thread->allocations - cairn_thread_frees(thread));
        sum->last_bytes = figures_add(sum->last_bytes, thread->net_bytes);
        sum->last_blocks = figures_add(sum->last_blocks, blocks);
        if (figures_is_inherited(thread)) continue;
        sum->allocated_bytes += thread->allocated_bytes;
        sum->allocations += thread->allocations;
    }
    sum->min_bytes = sum->max_bytes = sum->last_bytes;
}

// Makes the points up to the end of this one exist, so that the process meets no hole in them.
static bool reach(const struct memory *memory, struct cairn_section *section, uint64_t end) {
    uint64_t used = __atomic_load_n(&section->used_bytes, __ATOMIC_ACQUIRE);
    if (used >= end) return true;
    if (posix_fallocate(memory->file, (off_t)(section->offset + used), (off_t)(end - used)))
        return false;
    while (used < end && !__atomic_compare_exchange_n(&section->used_bytes, &used, end, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return true;
}

// By writes, not through the mapping: where no memory is left that is an error, not a signal. A
// point that the process noted itself gets newer sums alone.
static void write_point(const struct memory *memory, const struct cairn_section *section,
                        uint64_t index, const struct cairn_point *point) {
    const size_t sums_at = offsetof(struct cairn_point, allocated_bytes);
    const size_t sums_end = offsetof(struct cairn_point, is_used);
    off_t at = (off_t)(section->offset + index * sizeof *point);
    struct cairn_point there;
    if (pread(memory->file, &there, sizeof there, at) != (ssize_t)sizeof there) return;
    bool is_newer = point->allocated_bytes > there.allocated_bytes;
    if (there.is_used && !is_newer) return;
    const char *from = (const char *)point + (there.is_used ? sums_at : 0);
    size_t length = there.is_used ? sums_end - sums_at : sizeof *point;
    ssize_t written = pwrite(memory->file, from, length, at + (there.is_used ? (off_t)sums_at : 0));
    (void)written;  // a note less
}

// Of two neighbours one: the later one's last values count if it has any.
static struct cairn_point merged(const struct cairn_point *first,
                                 const struct cairn_point *second) {
    struct cairn_point both = second->is_used ? *second : *first;
    if (!first->is_used || !second->is_used) return both;
    if (first->min_bytes < both.min_bytes) both.min_bytes = first->min_bytes;
    if (first->max_bytes > both.max_bytes) both.max_bytes = first->max_bytes;
    return both;
}

// Intervals become so much longer that `at_ns` is in one of them, as the process does it with its
// own next note, for which it may take its time.
static bool thin(const struct memory *memory, struct cairn_section *section, uint64_t at_ns) {
    struct cairn_totals *totals = &memory->header->totals;
    const size_t bytes = CAIRN_POINT_LIMIT * sizeof(struct cairn_point);
    struct cairn_point *points = calloc(CAIRN_POINT_LIMIT, sizeof *points);
    uint64_t interval_ns = totals->point_ns;
    bool is_read = points && reach(memory, section, bytes) &&
                   pread(memory->file, points, bytes, (off_t)section->offset) == (ssize_t)bytes;
    for (; is_read && at_ns / interval_ns >= CAIRN_POINT_LIMIT; interval_ns *= 2) {
        for (size_t i = 0; i < CAIRN_POINT_LIMIT / 2; i++)
            points[i] = merged(&points[2 * i], &points[2 * i + 1]);
        memset(points + CAIRN_POINT_LIMIT / 2, 0, bytes / 2);
    }
    bool is_ok =
        is_read && pwrite(memory->file, points, bytes, (off_t)section->offset) == (ssize_t)bytes;
    if (is_ok) totals->point_ns = interval_ns;
    free(points);
    return is_ok;
}

// `now_ns`: CLOCK_MONOTONIC. What the process wrote is not believed: a note less at worst.
static void timeline_note_totals(const struct memory *memory, uint64_t now_ns) {
    struct cairn_header *header = memory->header;
    struct cairn_section *threads = memory_section(memory, CAIRN_SECTION_THREADS, 0);
    struct cairn_section *points = memory_section(memory, CAIRN_SECTION_POINTS,
                                                  CAIRN_POINT_LIMIT * sizeof(struct cairn_point));
    uint32_t nobody = 0;
    if (header->state != CAIRN_STATE_RUNNING || now_ns < header->start_clock_ns) return;
    if (!threads || !points || points->entry_bytes != sizeof(struct cairn_point)) return;
    // while it is held the process leaves out its notes, and merges no points
    if (!__atomic_compare_exchange_n(&header->totals.point_lock, &nobody, CAIRN_PACE_TOOL, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    struct cairn_point point = {.is_used = 1};
    const uint64_t at_ns = now_ns - header->start_clock_ns, longest_ns = UINT64_MAX / 2;
    uint64_t interval_ns = header->totals.point_ns;
    bool has_room = interval_ns && at_ns < longest_ns &&
                    (at_ns / interval_ns < CAIRN_POINT_LIMIT || thin(memory, points, at_ns));
    uint64_t index = has_room ? at_ns / header->totals.point_ns : 0;
    sum_threads(memory, threads, &point);
    if (has_room && index < CAIRN_POINT_LIMIT && reach(memory, points, (index + 1) * sizeof point))
        write_point(memory, points, index, &point);
    __atomic_store_n(&header->totals.point_lock, 0, __ATOMIC_RELEASE);
}

enum { SHORT_LIVED_CALLS = 1000, SHORT_LIVED_BYTES = 1 << 20 };

static bool open_memory(const struct watched *process, struct recording *recording) {
    const struct memory *memory = &process->memory;
    if (memory->header->state == CAIRN_STATE_NEW) return false;
    return recording_open_memory(memory->header, memory->bytes, recording, NULL);
}

// Returns the bytes of mappings that hold something and that it made itself, or by stacks by which
// it inherited others.
static uint64_t bytes_mapped(const struct recording *recording) {
    uint64_t bytes = 0;
    struct cairn_mapper mapper;
    size_t count = recording_count(recording, CAIRN_SECTION_MAPPERS);
    for (size_t i = 0; i < count; i++) {
        bool is_counted = recording_mapper(recording, i, &mapper) && mapper.calls &&
                          mapper.kind != CAIRN_MAPPING_RESERVED &&
                          mapper.kind != CAIRN_MAPPING_ALLOCATOR;
        if (is_counted) bytes += mapper.mapped_bytes;
    }
    return bytes;
}

bool watched_is_short_lived(const struct watched *process) {
    struct recording recording;
    if (!open_memory(process, &recording)) return true;
    struct figures figures = figures_of(&recording);
    struct cairn_guard guard;
    bool has_damage = recording_guard(&recording, &guard) && guard.overrun_blocks;
    bool has_unrecorded = recording.header.lost[CAIRN_LOST_PROCESSES] != 0;
    uint64_t bytes = figures.allocated_bytes + bytes_mapped(&recording);
    recording_close(&recording);
    return figures.allocations < SHORT_LIVED_CALLS && bytes < SHORT_LIVED_BYTES && !has_damage &&
           !has_unrecorded;
}

bool watched_is_worthless(const struct watched *process, bool is_replaced) {
    bool is_forked = process->memory.header->forked_from != 0;
    return (is_replaced || is_forked) && !process->memory.header->left_out.count &&
           watched_is_short_lived(process);
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
    // that of a first thread which ends before the others is not the process'
    bool has_ended = process_has_ended(stat.state) && stat.thread_count <= 1;
    if (has_ended) memory_end_set_status(&process->end, stat.exit_code);
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
    uint32_t before_ms = __atomic_exchange_n(&header->control.clock_ms, ms, __ATOMIC_ACQ_REL);
    // up to now somebody may have read what was there before
    uint32_t moved_ms = (uint32_t)((clock_now_ns() - header->start_clock_ns) / ns_per_ms) + 1;
    if (moved_ms - before_ms > header->control.clock_error_ms)
        header->control.clock_error_ms = moved_ms - before_ms;
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

void handshake_answer_variables(const struct handshake_client *client, const char *variables) {
    const char *end = variables;
    while (end && *end) end += strlen(end) + 1;
    if (end)
        handshake_answer_text(client, variables, (size_t)(end - variables) + 1);
    else
        handshake_dismiss(client);
}

// In so short a time no machine gives as many numbers to processes as there are (32,768 at least).
#define NUMBERS_LAST_NS UINT64_C(400000000)

bool handshake_has_orphans(const struct handshake_listener *listener, uint64_t start_ns,
                           pid_t main_pid) {
    char variable[sizeof "CAIRN_SOCKET=" + HANDSHAKE_NAME_MAX];
    snprintf(variable, sizeof variable, "CAIRN_SOCKET=%s", listener->name);
    // a machine may have thousands of processes, and most were there before a short run
    bool is_short = clock_now_ns() - start_ns < NUMBERS_LAST_NS;
    return process_any_with_variable(variable, is_short ? main_pid : 0);
}
