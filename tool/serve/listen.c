// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, PORT_DIGITS = 5, HOST_BYTES = 64, FIRST_GIVEN = 3 };

static bool is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_UNIX) return true;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
        return ntohl(four->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static bool parse_port(const char *text, in_port_t *port) {
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > PORT_DIGITS || text[digits]) return false;
    unsigned long number = strtoul(text, NULL, 10);
    *port = htons((uint16_t)number);
    return number <= UINT16_MAX;
}

static bool parse_unix(const char *path, struct listen_address *address, struct error *error) {
    struct sockaddr_un *local = (struct sockaddr_un *)&address->address;
    size_t length = strlen(path);
    if (*path != '/') return error_set(error, "unix:%s: give an absolute path", path);
    if (length >= sizeof local->sun_path)
        return error_set(error, "unix:%s: longer than the %zu bytes that a socket's path may have",
                         path, sizeof local->sun_path - 1);
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, length + 1);
    address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    address->is_local = true;
    return true;
}

// `host`: "" is every address of the machine.
static bool parse_host(const char *host, in_port_t port, struct listen_address *address) {
    struct sockaddr_in *four = (struct sockaddr_in *)&address->address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->address;
    if (!strcmp(host, "localhost")) host = "127.0.0.1";
    if (!*host || inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = port;
        address->length = sizeof *four;
    } else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = port;
        address->length = sizeof *six;
    } else {
        return false;
    }
    address->is_local = is_loopback((struct sockaddr *)&address->address);
    return true;
}

bool listen_address_parse(const char *text, struct listen_address *address, struct error *error) {
    static const char unix_prefix[] = "unix:";
    char host[HOST_BYTES];
    in_port_t port;
    memset(address, 0, sizeof *address);
    if (!strncmp(text, unix_prefix, strlen(unix_prefix)))
        return parse_unix(text + strlen(unix_prefix), address, error);
    const char *colon = strrchr(text, ':'), *from = text;
    size_t length = colon ? (size_t)(colon - text) : strlen("127.0.0.1");
    if (!colon) from = "127.0.0.1";
    if (colon && *text == '[' && length > 2 && text[length - 1] == ']') {
        from++;
        length -= 2;
    } else if (colon && memchr(text, ':', length)) {
        length = HOST_BYTES;  // an IPv6 address without its brackets
    }
    bool is_right = length < sizeof host && parse_port(colon ? colon + 1 : text, &port);
    if (is_right) snprintf(host, sizeof host, "%.*s", (int)length, from);
    if (is_right && parse_host(host, port, address)) return true;
    return error_set(error,
                     "cannot listen on \"%s\": give an address as 127.0.0.1:6060, [::1]:6060 or "
                     "unix:/path",
                     text);
}

static bool describe(struct listener *listener, struct error *error) {
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof name;
    char host[INET6_ADDRSTRLEN] = "";
    if (getsockname(listener->socket, (struct sockaddr *)&name, &length))
        return error_set(error, "%s", strerror(errno));
    listener->is_local = is_loopback((struct sockaddr *)&name);
    listener->is_unix = name.ss_family == AF_UNIX;
    if (name.ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&name;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(listener->url, sizeof listener->url, "http://%s:%u/", host, ntohs(four->sin_port));
    } else if (name.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&name;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(listener->url, sizeof listener->url, "http://[%s]:%u/", host,
                 ntohs(six->sin6_port));
    } else if (listener->is_unix) {
        const struct sockaddr_un *local = (const struct sockaddr_un *)&name;
        snprintf(listener->url, sizeof listener->url, "unix:%.*s", (int)sizeof local->sun_path,
                 local->sun_path);
    }
    return true;
}

static bool is_listening(int socket) {
    int accepts = 0, kind = 0;
    socklen_t size = sizeof accepts;
    bool is_one = !getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) && accepts;
    size = sizeof kind;
    return is_one && !getsockopt(socket, SOL_SOCKET, SO_TYPE, &kind, &size) && kind == SOCK_STREAM;
}

bool listener_inherit(struct listener *listener, bool *is_given, struct error *error) {
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    *listener = (struct listener){.socket = -1};
    *is_given = pid && count && strtol(pid, NULL, 10) == (long)getpid();
    if (!*is_given) return true;
    if (strcmp(count, "1") != 0)
        return error_set(error, "LISTEN_FDS=%s: cairn serve takes one socket", count);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!is_listening(FIRST_GIVEN))
        return error_set(error, "LISTEN_FDS: descriptor %d is no listening socket", FIRST_GIVEN);
    listener->socket = FIRST_GIVEN;
    fcntl(listener->socket, F_SETFD, FD_CLOEXEC);
    return describe(listener, error);
}

// Removes what a server left behind that was killed. Nothing else is ever removed.
static bool clear_path(const struct listen_address *address, const char *text,
                       struct error *error) {
    const struct sockaddr_un *local = (const struct sockaddr_un *)&address->address;
    struct stat status;
    if (address->address.ss_family != AF_UNIX || lstat(local->sun_path, &status)) return true;
    if (!S_ISSOCK(status.st_mode))
        return error_set(error, "%s: there is a file of this name, which is no socket", text);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return error_set(error, "%s", strerror(errno));
    bool is_refused =
        connect(probe, (const struct sockaddr *)local, address->length) && errno == ECONNREFUSED;
    close(probe);
    if (!is_refused) return error_set(error, "%s: another program listens there", text);
    return !unlink(local->sun_path) || error_set(error, "%s: %s", text, strerror(errno));
}

static bool bind_socket(int socket, const struct listen_address *address, const char *text,
                        struct error *error) {
    const mode_t mine_alone = 077;
    const int on = 1;
    bool is_unix = address->address.ss_family == AF_UNIX;
    if (!is_unix) setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    mode_t mask = umask(mine_alone);
    bool is_bound = !bind(socket, (const struct sockaddr *)&address->address, address->length);
    int why = errno;
    umask(mask);
    if (is_bound && !listen(socket, BACKLOG)) return true;
    if (is_bound) why = errno;
    if (why == EADDRINUSE && !is_unix)
        return error_set(error,
                         "%s: another program listens there; --listen 127.0.0.1:0 takes a free "
                         "port",
                         text);
    return error_set(error, "%s: %s", text, strerror(why));
}

bool listener_open(struct listener *listener, const char *text, struct error *error) {
    struct listen_address address;
    *listener = (struct listener){.socket = -1};
    if (!listen_address_parse(text, &address, error) || !clear_path(&address, text, error))
        return false;
    bool is_unix = address.address.ss_family == AF_UNIX;
    listener->socket =
        socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->socket < 0) return error_set(error, "%s: %s", text, strerror(errno));
    bool is_ok = bind_socket(listener->socket, &address, text, error);
    if (is_ok && is_unix)
        snprintf(listener->socket_path, sizeof listener->socket_path, "%s",
                 ((struct sockaddr_un *)&address.address)->sun_path);
    if (is_ok && describe(listener, error)) return true;
    listener_close(listener);
    return false;
}

void listener_close(struct listener *listener) {
    if (listener->socket >= 0) close(listener->socket);
    if (*listener->socket_path) unlink(listener->socket_path);
    *listener = (struct listener){.socket = -1};
}
