// SPDX-License-Identifier: Apache-2.0
// The desk at which processes say hello: a socket in the abstract name space. A program waits there
// for one answer, so whoever connects and then says nothing, or anything else, never keeps others
// waiting.
#ifndef TOOL_WATCH_HELLO_H
#define TOOL_WATCH_HELLO_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"
#include "tool/base/error.h"

#define HELLO_NAME_MAX 64
#define HELLO_SILENT_MAX 256  // connections that have said nothing yet

struct hello_guest {
    int connection;
    pid_t pid;  // as the kernel says it
    uint64_t since_ns;
};

struct hello_desk {
    int listener;
    int reserve;  // a descriptor to give up when there is no other, so that nobody waits in vain
    char name[HELLO_NAME_MAX];  // for CAIRN_SOCKET
    struct hello_guest silent[HELLO_SILENT_MAX];
    unsigned silent_count;
};

bool hello_open(struct hello_desk *desk, struct error *error);
// Nobody can connect any more.
void hello_close(struct hello_desk *desk);

// Entries of a poll set: the listener and the silent ones; returns how many, HELLO_SILENT_MAX + 1
// at most.
unsigned hello_poll_set(const struct hello_desk *desk, struct pollfd *polled);

// The next guest with a well-formed message, without waiting; call until it returns false. Each has
// to be answered.
bool hello_next(struct hello_desk *desk, uint64_t now_ns, struct hello_guest *guest,
                struct cairn_hello *message);

// No answer: the process writes its recording itself.
void hello_dismiss(const struct hello_guest *guest);
// The answer: a memfd, or -1 for "do not record". Closes the connection.
void hello_answer(const struct hello_guest *guest, int memory_file);

#endif
