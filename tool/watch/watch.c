// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/watch/program.h"

#define SECOND_NS UINT64_C(1000000000)
#define CHECKPOINT_NS (10 * SECOND_NS)

// A program image that was replaced (exec) or a forked child before that leaves a recording only
// from this many allocations or bytes on: shells and compilers' drivers would leave hundreds.
enum { SHORT_LIVED_CALLS = 1000, SHORT_LIVED_BYTES = 1 << 20 };

uint64_t watch_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

bool watch_open(struct watch *watch, struct store *store, struct error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t random = 0;
    *watch = (struct watch){.store = store, .listener = -1, .start_ns = watch_now_ns()};
    watch->next_checkpoint_ns = watch->start_ns + CHECKPOINT_NS;
    if (getrandom(&random, sizeof random, 0) != sizeof random) random = watch->start_ns;
    int length = snprintf(watch->socket_name, sizeof watch->socket_name, "cairn-%d-%016llx",
                          (int)getpid(), (unsigned long long)random);
    memcpy(address.sun_path + 1, watch->socket_name, (size_t)length);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    watch->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (watch->listener < 0 || bind(watch->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(watch->listener, SOMAXCONN) != 0)
        return error_set(error, "cannot listen for the program: %s", strerror(errno));
    return true;
}

static uint64_t section_used(const struct cairn_header *header, uint32_t kind, uint64_t *offset) {
    for (uint32_t i = 0; i < header->section_count && i < CAIRN_SECTION_MAX; i++)
        if (header->sections[i].kind == kind) {
            *offset = header->sections[i].offset;
            return header->sections[i].used_bytes;
        }
    return 0;
}

// True if the recording says hardly anything: see SHORT_LIVED_CALLS.
static bool is_short_lived(const struct memory *memory) {
    uint64_t offset = 0, calls = 0, bytes = 0;
    uint64_t used = section_used(memory->header, CAIRN_SECTION_THREADS, &offset);
    if (offset > memory->bytes || used > memory->bytes - offset) return false;
    const struct cairn_thread *threads =
        (const struct cairn_thread *)((const char *)memory->header + offset);
    for (uint64_t i = 0; i < used / sizeof *threads; i++) {
        if (threads[i].tid == 0) continue;  // what a forked child inherited
        calls += threads[i].allocations;
        bytes += threads[i].allocated_bytes;
    }
    return calls < SHORT_LIVED_CALLS && bytes < SHORT_LIVED_BYTES;
}

static void watch_save(struct watch *watch, struct watched *process) {
    struct error error;
    if (process->memory.header->state == CAIRN_STATE_NEW) return;
    if (store_save(watch->store, &process->memory, &process->end, process->file_name,
                   process->is_first, &error))
        return;
    if (!watch->problem.text[0]) watch->problem = error;
}

static void watched_forget(struct watch *watch, struct watched *process) {
    struct watched **link = &watch->list;
    while (*link != process) link = &(*link)->next;
    *link = process->next;
    if (process->pid_file >= 0) close(process->pid_file);
    memory_close(&process->memory);
    free(process);
}

// The process, or the image, is over: keep what it recorded.
static void watched_ended(struct watch *watch, struct watched *process, bool is_replaced) {
    bool is_forked = process->memory.header->forked_from != 0;
    process->end.is_over = true;
    if (!process->end.end_ns) process->end.end_ns = watch_now_ns();
    if (is_replaced) process->memory.header->stop_reason = CAIRN_STOP_EXEC;
    bool is_dropped = (is_replaced || is_forked) && is_short_lived(&process->memory);
    if (!is_dropped) {
        watch_save(watch, process);
        watch->saved_count++;
    }
    watched_forget(watch, process);
}

static struct watched *watched_find(const struct watch *watch, pid_t pid) {
    struct watched *process = watch->list;
    while (process && process->pid != pid) process = process->next;
    return process;
}

static void watched_name(const struct watch *watch, struct watched *process) {
    char path[64], image[PATH_MAX];
    const char *name = watch->name;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    ssize_t length = readlink(path, image, sizeof image - 1);
    if (length > 0 && !process->is_first) {
        image[length] = 0;
        name = program_base_name(image);
    }
    if (process->image)
        snprintf(process->file_name, sizeof process->file_name, "%.200s.%d-%llu.cairn", name,
                 (int)process->pid, (unsigned long long)process->image);
    else
        snprintf(process->file_name, sizeof process->file_name, "%.200s.%d.cairn", name,
                 (int)process->pid);
}

static struct watched *watched_add(struct watch *watch, pid_t pid, uint64_t image, bool is_first) {
    struct watched *process = calloc(1, sizeof *process);
    struct error error;
    if (!process) return NULL;
    if (!memory_make(&process->memory, &error)) {
        if (!watch->problem.text[0]) watch->problem = error;
        free(process);
        return NULL;
    }
    process->pid = pid;
    process->image = image;
    process->is_first = is_first;
    process->pid_file = (int)syscall(SYS_pidfd_open, pid, 0);
    watched_name(watch, process);
    struct cairn_header *header = process->memory.header;
    header->control.tool_pid = (uint32_t)getpid();
    store_path_of(watch->store, process->file_name, header->destination,
                  sizeof header->destination);
    process->next = watch->list;
    watch->list = process;
    return process;
}

static void send_answer(int connection, int file) {
    char byte = 0;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *attached = CMSG_FIRSTHDR(&message);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(attached), &file, sizeof file);
    }
    sendmsg(connection, &message, MSG_NOSIGNAL);
}

// A process says hello: the same pid again means that it replaced its program.
static void watch_greet(struct watch *watch, int connection, pid_t pid,
                        const struct cairn_hello *hello) {
    struct watched *older = watched_find(watch, pid);
    uint64_t image = 0;
    bool is_first = pid == watch->main_pid && !hello->forked_from;
    if (hello->version != CAIRN_VERSION) {
        send_answer(connection, -1);
        return;
    }
    if (older) {
        image = older->image + 1;
        is_first = older->is_first && is_short_lived(&older->memory);
        if (is_first) image = 0;
        watched_ended(watch, older, true);
    }
    struct watched *process = watched_add(watch, pid, image, is_first);
    send_answer(connection, process ? process->memory.file : -1);
}

static void watch_accept(struct watch *watch) {
    const struct timeval patience = {.tv_sec = 1};
    int connection = accept4(watch->listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    struct cairn_hello hello = {0};
    if (connection < 0) return;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool is_known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    // Programs may drop privileges between images, so a different user is fine if we are root.
    bool is_allowed = is_known && (peer.uid == getuid() || getuid() == 0 || peer.uid == 0);
    if (is_allowed && recv(connection, &hello, sizeof hello, 0) == sizeof hello &&
        hello.magic == CAIRN_HELLO_MAGIC)
        watch_greet(watch, connection, peer.pid, &hello);
    close(connection);
}

// "VmHWM:   1234 kB" of /proc/PID/status, in bytes; 0 if the process is gone.
static uint64_t resident_peak(pid_t pid) {
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
    fclose(file);
    return kib * 1024;
}

static void watch_sample(struct watch *watch) {
    for (struct watched *process = watch->list; process; process = process->next) {
        uint64_t peak = resident_peak(process->pid);
        if (peak > process->end.rss_peak_bytes) process->end.rss_peak_bytes = peak;
    }
}

static void watch_checkpoint(struct watch *watch) {
    if (watch_now_ns() < watch->next_checkpoint_ns) return;
    for (struct watched *process = watch->list; process; process = process->next)
        if (process->is_first || watch->store->is_directory) watch_save(watch, process);
    watch->next_checkpoint_ns = watch_now_ns() + CHECKPOINT_NS;
}

enum { POLL_MAX = 4096, POLL_FIXED = 2 };

static void watch_reap(struct watch *watch, const struct pollfd *polled, nfds_t count) {
    for (nfds_t i = POLL_FIXED; i < count; i++) {
        if (!polled[i].revents) continue;
        struct watched *process = watch->list;
        while (process && process->pid_file != polled[i].fd) process = process->next;
        if (process && process->pid != watch->main_pid) watched_ended(watch, process, false);
    }
}

void watch_turn(struct watch *watch, int signal_file, int timeout_ms) {
    static struct pollfd polled[POLL_MAX];
    nfds_t count = POLL_FIXED;
    polled[0] = (struct pollfd){.fd = watch->listener, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = signal_file, .events = POLLIN};
    for (struct watched *process = watch->list; process && count < POLL_MAX;
         process = process->next)
        if (process->pid_file >= 0 && process->pid != watch->main_pid)
            polled[count++] = (struct pollfd){.fd = process->pid_file, .events = POLLIN};
    if (poll(polled, count, timeout_ms) > 0) {
        if (polled[0].revents) watch_accept(watch);
        watch_reap(watch, polled, count);
    }
    watch_sample(watch);
    watch_checkpoint(watch);
}

static void set_exit(struct watched *process, int status) {
    process->end.has_exit = true;
    if (WIFSIGNALED(status)) process->end.exit_signal = WTERMSIG(status);
    if (WIFEXITED(status)) process->end.exit_status = WEXITSTATUS(status);
}

static bool is_gone(const struct watched *process) {
    struct pollfd polled = {.fd = process->pid_file, .events = POLLIN};
    return process->pid_file >= 0 ? poll(&polled, 1, 0) > 0 : kill(process->pid, 0) != 0;
}

// The process goes on without us: it saves its recording itself when it ends.
static void watched_release(struct watch *watch, struct watched *process) {
    struct cairn_header *header = process->memory.header;
    if (!is_short_lived(&process->memory)) {
        watch_save(watch, process);
        watch->saved_count++;
    }
    store_path_of(watch->store, process->file_name, header->destination,
                  sizeof header->destination);
    __atomic_store_n(&header->control.is_tool_gone, 1, __ATOMIC_RELEASE);
    watched_forget(watch, process);
}

void watch_finish(struct watch *watch, int status, uint64_t rusage_peak_bytes) {
    struct watched *first = watched_find(watch, watch->main_pid);
    bool is_alone = first && !watch->list->next && !watch->saved_count;
    if (first) {
        set_exit(first, status);
        if (is_alone && rusage_peak_bytes > first->end.rss_peak_bytes)
            first->end.rss_peak_bytes = rusage_peak_bytes;
    }
    if (first) watched_ended(watch, first, false);
    while (watch->list) {
        if (is_gone(watch->list))
            watched_ended(watch, watch->list, false);
        else
            watched_release(watch, watch->list);
    }
}

void watch_close(struct watch *watch) {
    while (watch->list) watched_forget(watch, watch->list);
    if (watch->listener >= 0) close(watch->listener);
}
