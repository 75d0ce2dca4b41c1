// SPDX-License-Identifier: Apache-2.0
// Where `cairn serve` listens: an address of this machine, a Unix socket, or the socket that a
// service manager opened (sd_listen_fds(3): LISTEN_PID, LISTEN_FDS).
#ifndef TOOL_SERVE_LISTEN_H
#define TOOL_SERVE_LISTEN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "tool/base/error.h"

struct listen_address {
    struct sockaddr_storage address;
    socklen_t length;
    bool is_local;  // a Unix socket, or a loopback address
};

// "127.0.0.1:6060", "localhost:0", "[::1]:6060", ":6060" (every address), "6060" (loopback),
// "unix:/path". Names other than localhost are not looked up.
bool listen_address_parse(const char *text, struct listen_address *address, struct error *error);

struct listener {
    int socket;
    bool is_local, is_unix;
    char url[PATH_MAX];          // for people: "http://127.0.0.1:6060/", "unix:/run/cairn.sock"
    char socket_path[PATH_MAX];  // that it made and removes again; "": none
};

// Takes over the one socket that a service manager hands on; `is_given` false: there is none.
bool listener_inherit(struct listener *listener, bool *is_given, struct error *error);
// `text` as above. A Unix socket is its user's alone; one that nobody listens on any more is
// replaced.
bool listener_open(struct listener *listener, const char *text, struct error *error);
void listener_close(struct listener *listener);

#endif
