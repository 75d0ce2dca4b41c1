// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// As long as a process waits for its answer.
static const uint64_t patience_ns = 2000000000u;

static int open_reserve(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool hello_open(struct hello_desk *desk, struct error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t random = 0;
    *desk = (struct hello_desk){.listener = -1, .reserve = open_reserve()};
    if (getrandom(&random, sizeof random, 0) != sizeof random) random = (uintptr_t)desk;
    int length = snprintf(desk->name, sizeof desk->name, "cairn-%d-%016llx", (int)getpid(),
                          (unsigned long long)random);
    memcpy(address.sun_path + 1, desk->name, (size_t)length);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    desk->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (desk->listener < 0 || bind(desk->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(desk->listener, SOMAXCONN) != 0)
        return error_set(error, "cannot listen for the program: %s", strerror(errno));
    return true;
}

static void forget(struct hello_desk *desk, unsigned index) {
    desk->silent[index] = desk->silent[--desk->silent_count];
}

static void dismiss(struct hello_desk *desk, unsigned index) {
    close(desk->silent[index].connection);
    forget(desk, index);
}

void hello_close(struct hello_desk *desk) {
    while (desk->silent_count) dismiss(desk, 0);
    if (desk->listener >= 0) close(desk->listener);
    if (desk->reserve >= 0) close(desk->reserve);
    desk->listener = desk->reserve = -1;
}

unsigned hello_poll_set(const struct hello_desk *desk, struct pollfd *polled) {
    polled[0] = (struct pollfd){.fd = desk->listener, .events = POLLIN};
    for (unsigned i = 0; i < desk->silent_count; i++)
        polled[i + 1] = (struct pollfd){.fd = desk->silent[i].connection, .events = POLLIN};
    return desk->silent_count + 1;
}

// Programs may drop privileges between images, so another user is fine if one of both is root.
static bool is_welcome(const struct ucred *peer) {
    bool is_same_user = peer->uid == getuid() || peer->uid == 0 || getuid() == 0;
    return is_same_user && peer->pid > 0;
}

// Without a descriptor for a guest, it is told at once: it writes its recording itself.
static bool turn_away(struct hello_desk *desk) {
    if (desk->reserve < 0) return false;
    close(desk->reserve);
    int connection = accept4(desk->listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection >= 0) close(connection);
    desk->reserve = open_reserve();
    return connection >= 0;
}

// Takes one connection from the listener into the list; false if there is none.
static bool let_in(struct hello_desk *desk, uint64_t now_ns) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int connection = accept4(desk->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0 && (errno == EMFILE || errno == ENFILE)) return turn_away(desk);
    if (connection < 0) return errno == EINTR || errno == ECONNABORTED;
    bool is_known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!is_known || !is_welcome(&peer)) {
        close(connection);
        return true;
    }
    if (desk->silent_count == HELLO_SILENT_MAX) dismiss(desk, 0);
    desk->silent[desk->silent_count++] = (struct hello_guest){connection, peer.pid, now_ns};
    return true;
}

// Looks whether a guest has spoken; it leaves the list if so, or if it never will.
static bool listen_to(struct hello_desk *desk, unsigned index, uint64_t now_ns,
                      struct hello_guest *guest, struct cairn_hello *message) {
    *guest = desk->silent[index];
    ssize_t got = recv(guest->connection, message, sizeof *message, MSG_DONTWAIT | MSG_TRUNC);
    bool is_silent = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (is_silent && now_ns - guest->since_ns < patience_ns) return false;
    bool is_known = message->magic == CAIRN_HELLO_MAGIC || message->magic == CAIRN_HELLO_END_MAGIC;
    if (got == sizeof *message && is_known) {
        forget(desk, index);
        return true;
    }
    dismiss(desk, index);
    return false;
}

bool hello_next(struct hello_desk *desk, uint64_t now_ns, struct hello_guest *guest,
                struct cairn_hello *message) {
    for (unsigned i = desk->silent_count; i-- > 0;)
        if (listen_to(desk, i, now_ns, guest, message)) return true;
    while (desk->listener >= 0 && let_in(desk, now_ns))
        if (desk->silent_count && listen_to(desk, desk->silent_count - 1, now_ns, guest, message))
            return true;
    return false;
}

void hello_dismiss(const struct hello_guest *guest) {
    close(guest->connection);
}

void hello_answer(const struct hello_guest *guest, int memory_file) {
    char byte = 0;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (memory_file >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *attached = CMSG_FIRSTHDR(&message);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(sizeof memory_file);
        memcpy(CMSG_DATA(attached), &memory_file, sizeof memory_file);
    }
    sendmsg(guest->connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(guest->connection);
}
