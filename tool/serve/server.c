// SPDX-License-Identifier: Apache-2.0
#include "tool/serve/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tool/base/clock.h"
#include "tool/serve/exchange.h"

// A request has to be there so long after its connection, and so long after the one before it; an
// answer has to be taken within that time, however slowly.
static const uint64_t first_request_ns = 15 * CLOCK_SECOND_NS,
                      next_request_ns = 75 * CLOCK_SECOND_NS, answer_ns = 600 * CLOCK_SECOND_NS;
enum { IDLE_SECONDS = 60, HEADER_BYTES = 32 << 10, TURN_MS = 1000 };

// --- connections

static struct peer peer_of(struct MHD_Connection *http) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    struct peer peer = {{0}};
    if (address && address->sa_family == AF_INET)
        memcpy(peer.address, &((const struct sockaddr_in *)address)->sin_addr,
               sizeof(struct in_addr));
    if (address && address->sa_family == AF_INET6)
        memcpy(peer.address, &((const struct sockaddr_in6 *)address)->sin6_addr,
               sizeof(struct in6_addr));
    return peer;
}

// It waits for a request, and none that it sent was allowed; `is_all`: or it is merely kept open.
static bool is_idle(const struct connection *connection, bool is_all) {
    return connection->state == CONNECTION_READS && connection->socket >= 0 &&
           !connection->is_leaving && (is_all || !connection->is_allowed);
}

static unsigned count_idle(const struct server *server, const struct peer *peer, bool is_all) {
    unsigned count = 0;
    for (const struct connection *one = server->connections; one; one = one->next)
        count += is_idle(one, is_all) && (!peer || !memcmp(&one->peer, peer, sizeof *peer));
    return count;
}

// Ends the oldest of the peer that has the most. The newest come first in the list.
static void end_oldest_idle(struct server *server, bool is_all) {
    struct connection *chosen = NULL;
    unsigned most = 0;
    for (struct connection *one = server->connections; one; one = one->next) {
        if (!is_idle(one, is_all)) continue;
        unsigned count = count_idle(server, &one->peer, is_all);
        if (count < most) continue;
        most = count;
        chosen = one;
    }
    if (!chosen) return;
    chosen->is_leaving = true;
    shutdown(chosen->socket, SHUT_RDWR);
}

// The new one is in the list.
static void keep_room(struct server *server) {
    unsigned all = 0;
    for (const struct connection *one = server->connections; one; one = one->next)
        all += !one->is_leaving;
    if (count_idle(server, NULL, false) > CONNECTIONS_UNPROVEN_MAX)
        end_oldest_idle(server, false);
    else if (all > CONNECTIONS_MAX - CONNECTIONS_UNPROVEN_MAX / 4)
        end_oldest_idle(server, true);
}

static void note_connection(void *context, struct MHD_Connection *http, void **socket_context,
                            enum MHD_ConnectionNotificationCode what) {
    struct server *server = context;
    struct connection *connection = *socket_context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        connection = calloc(1, sizeof *connection);
        *socket_context = connection;
        if (!connection) return;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
        *connection = (struct connection){.socket = info ? info->connect_fd : -1,
                                          .since_ns = clock_now_ns(),
                                          .peer = peer_of(http),
                                          .next = server->connections,
                                          .link = &server->connections};
        if (connection->next) connection->next->link = &connection->next;
        server->connections = connection;
        keep_room(server);
    } else if (connection) {
        *connection->link = connection->next;
        if (connection->next) connection->next->link = connection->link;
        free(connection);
        *socket_context = NULL;
    }
}

static bool is_overdue(const struct connection *connection, uint64_t now_ns) {
    uint64_t age_ns = now_ns > connection->since_ns ? now_ns - connection->since_ns : 0;
    switch (connection->state) {
    case CONNECTION_READS:
        return age_ns > (connection->was_used ? next_request_ns : first_request_ns);
    case CONNECTION_WRITES:
        return age_ns > answer_ns;
    default:
        return false;
    }
}

// libmicrohttpd's own limit starts anew with each byte.
static void end_overdue(struct server *server, uint64_t now_ns) {
    for (struct connection *one = server->connections; one; one = one->next)
        if (one->socket >= 0 && is_overdue(one, now_ns)) shutdown(one->socket, SHUT_RDWR);
}

// --- requests

static struct exchange *begin_exchange(struct server *server, struct MHD_Connection *http) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info ? info->socket_context : NULL;
    struct exchange *exchange = connection ? calloc(1, sizeof *exchange) : NULL;
    if (exchange)
        *exchange = (struct exchange){.server = server, .connection = connection, .http = http};
    return exchange;
}

static void take_body(struct exchange *exchange, const char *bytes, size_t size) {
    if (exchange->is_too_large || size > BODY_MAX_BYTES - exchange->body_size) {
        exchange->is_too_large = true;
        return;
    }
    char *grown = realloc(exchange->body, exchange->body_size + size);
    if (!grown) {
        exchange->is_too_large = true;
        return;
    }
    memcpy(grown + exchange->body_size, bytes, size);
    exchange->body = grown;
    exchange->body_size += size;
}

// Called when the headers are there, with each part of the body, when all is there, and again when
// an answer is there that was waited for.
static enum MHD_Result handle(void *context, struct MHD_Connection *http, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request) {
    struct exchange *exchange = *request;
    (void)version;
    if (!exchange) {
        *request = begin_exchange(context, http);
        return *request ? MHD_YES : MHD_NO;
    }
    if (*upload_size) {
        take_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    enum MHD_Result result =
        exchange->job ? routes_answer_job(exchange) : routes_answer(exchange, method, url);
    exchange->connection->since_ns = clock_now_ns();
    return result;
}

static void forget_waiting(struct server *server, const struct exchange *exchange) {
    size_t kept = 0;
    for (size_t i = 0; i < server->waiting_count; i++)
        if (server->waiting[i] != exchange) server->waiting[kept++] = server->waiting[i];
    server->waiting_count = kept;
}

static void complete(void *context, struct MHD_Connection *http, void **request,
                     enum MHD_RequestTerminationCode how) {
    struct exchange *exchange = *request;
    (void)http;
    (void)how;
    if (!exchange) return;
    forget_waiting(context, exchange);
    if (exchange->job) jobs_leave(exchange->job);
    exchange->connection->state = CONNECTION_READS;
    exchange->connection->was_used = true;
    exchange->connection->since_ns = clock_now_ns();
    free(exchange->body);
    free(exchange);
    *request = NULL;
}

// Those whose answer is there, or that will get none (`is_end`).
static void wake_waiting(struct server *server, bool is_end) {
    size_t kept = 0;
    for (size_t i = 0; i < server->waiting_count; i++) {
        struct exchange *exchange = server->waiting[i];
        if (exchange->job->state == JOB_RUNS && !is_end)
            server->waiting[kept++] = exchange;
        else
            MHD_resume_connection(exchange->http);
    }
    server->waiting_count = kept;
}

// --- the daemon

static bool start(struct server *server, const struct listener *listener, struct error *error) {
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server, MHD_OPTION_LISTEN_SOCKET, listener->socket,
        MHD_OPTION_NOTIFY_CONNECTION, note_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
        complete, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    return server->daemon ||
           error_set(error, "%s: cannot serve: %s", listener->url, strerror(errno));
}

static int epoll_of(const struct server *server) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->listen_fd : -1;
}

static int open_signals(void) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGCHLD);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

// True if it is to end.
static bool read_signals(int signals) {
    struct signalfd_siginfo one;
    bool is_end = false;
    while (read(signals, &one, sizeof one) == sizeof one)
        is_end |= one.ssi_signo != (uint32_t)SIGCHLD;
    return is_end;
}

static int wait_ms(const struct server *server, uint64_t now_ns, uint64_t turn_ns) {
    const uint64_t ns_per_ms = 1000000;
    MHD_UNSIGNED_LONG_LONG most;
    uint64_t left = turn_ns > now_ns ? (turn_ns - now_ns) / ns_per_ms + 1 : 0;
    if (MHD_get_timeout(server->daemon, &most) == MHD_YES && most < left) left = most;
    return (int)left;
}

static void loop(struct server *server, int signals) {
    struct pollfd polled[] = {{.fd = epoll_of(server), .events = POLLIN},
                              {.fd = signals, .events = POLLIN}};
    uint64_t turn_ns = clock_now_ns();
    for (bool is_end = false; !is_end;) {
        uint64_t now_ns = clock_now_ns();
        if (poll(polled, sizeof polled / sizeof *polled, wait_ms(server, now_ns, turn_ns)) < 0 &&
            errno != EINTR)
            return;
        now_ns = clock_now_ns();
        is_end = read_signals(signals);
        if (jobs_reap(&server->jobs, now_ns)) wake_waiting(server, false);
        if (now_ns >= turn_ns) {
            turn_ns = now_ns + TURN_MS * (CLOCK_SECOND_NS / TURN_MS);
            processes_follow(server->processes, now_ns);
            end_overdue(server, now_ns);
        }
        streams_send(&server->streams, server->processes, now_ns);
        MHD_run(server->daemon);
    }
}

// Each recorded process takes a descriptor.
static void raise_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// What waits has to go on before the daemon may stop.
static void stop(struct server *server) {
    jobs_close(&server->jobs);
    wake_waiting(server, true);
    streams_close(&server->streams);
    MHD_run(server->daemon);
    MHD_stop_daemon(server->daemon);
}

bool server_run(const struct server_order *order, struct error *error) {
    static struct server server;
    server = (struct server){.rule = &order->rule, .processes = order->processes};
    raise_limit();
    int signals = open_signals();
    if (signals < 0) return error_set(error, "signals: %s", strerror(errno));
    bool is_ok = start(&server, order->listener, error);
    if (is_ok) {
        if (order->ready) order->ready(order->context);
        loop(&server, signals);
        stop(&server);
        order->listener->socket = -1;  // the daemon closed it
    }
    close(signals);
    return is_ok;
}
