// SPDX-License-Identifier: Apache-2.0
// Listening socket for the start-up handshake (struct cairn_hello), in the abstract name space. A
// process blocks for one reply, so a silent or broken client never delays others.
#ifndef TOOL_WATCH_HANDSHAKE_H
#define TOOL_WATCH_HANDSHAKE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/error.h"

#define HANDSHAKE_NAME_MAX 64
#define HANDSHAKE_SILENT_MAX 256  // connections that have sent nothing yet

struct handshake_client {
    int connection;
    pid_t pid;  // by the kernel
    uint64_t since_ns;
};

struct handshake_listener {
    int socket;
    int reserve;  // a descriptor to give up when there is no other, to refuse a client at once
    char name[HANDSHAKE_NAME_MAX];  // for CAIRN_SOCKET
    struct handshake_client silent[HANDSHAKE_SILENT_MAX];
    unsigned silent_count;
};

bool handshake_open(struct handshake_listener *listener, struct error *error);
// Closes the socket and all connections.
void handshake_close(struct handshake_listener *listener);

// Fills a poll set with the listener and the silent clients; returns how many, at most
// HANDSHAKE_SILENT_MAX + 1.
unsigned handshake_poll_set(const struct handshake_listener *listener, struct pollfd *polled);

// Takes the next client with a well-formed message, without waiting; call until it returns false.
// Each has to be answered.
bool handshake_next(struct handshake_listener *listener, uint64_t now_ns,
                    struct handshake_client *client, struct cairn_hello *message);

// Closes the connection without an answer: the process writes its recording itself.
void handshake_dismiss(const struct handshake_client *client);
// Sends a memfd, or -1 for "do not record", and closes the connection.
void handshake_answer(const struct handshake_client *client, int memory_file);

#endif
