// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/handshake.h"

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

bool handshake_open(struct handshake_listener *listener, struct error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t random = 0;
    *listener = (struct handshake_listener){.socket = -1, .reserve = open_reserve()};
    if (getrandom(&random, sizeof random, 0) != sizeof random) random = (uintptr_t)listener;
    int length = snprintf(listener->name, sizeof listener->name, "cairn-%d-%016llx", (int)getpid(),
                          (unsigned long long)random);
    memcpy(address.sun_path + 1, listener->name, (size_t)length);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    listener->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->socket < 0 || bind(listener->socket, (struct sockaddr *)&address, size) != 0 ||
        listen(listener->socket, SOMAXCONN) != 0)
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
    bool is_known = message->magic == CAIRN_HELLO_MAGIC || message->magic == CAIRN_HELLO_END_MAGIC;
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

void handshake_answer(const struct handshake_client *client, int memory_file) {
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
    sendmsg(client->connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(client->connection);
}
