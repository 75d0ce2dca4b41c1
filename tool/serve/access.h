// SPDX-License-Identifier: Apache-2.0
// Who may ask: with a token, whoever has it; without, whoever can reach the socket. A page of
// another site that a browser on this machine shows cannot: it has no name of this server that
// counts (DNS rebinding).
#ifndef TOOL_SERVE_ACCESS_H
#define TOOL_SERVE_ACCESS_H

#include <stdbool.h>

#include "tool/base/error.h"

#define ACCESS_TOKEN_MIN 16
#define ACCESS_TOKEN_MAX 512

struct access_rule {
    char token[ACCESS_TOKEN_MAX + 1];  // "": none is asked for
    bool is_unix;                      // no browser gets there
};

// The first line of a file, of ACCESS_TOKEN_MIN printable characters or more.
bool access_read_token(struct access_rule *rule, const char *path, struct error *error);

// A request's header Authorization: "Bearer TOKEN", or "Basic" with the token as the password, as
// browsers and go tool pprof send it. How long it takes says nothing of the token. NULL: no header.
bool access_is_allowed(const struct access_rule *rule, const char *authorization);

// The name by which the client called this server is one that no other site can have: an address,
// localhost, or none. With a token it does not matter.
bool access_host_is_right(const struct access_rule *rule, const char *host);

#endif
