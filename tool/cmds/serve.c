// SPDX-License-Identifier: Apache-2.0
// cairn serve: recorded processes over HTTP, for pprof, Prometheus and browsers.
#include "tool/cmds/serve.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/serve/server.h"

static const char usual_address[] = "127.0.0.1:6060";

// What is served and where; told when requests are answered.
struct service {
    struct processes processes;
    struct listener listener;
    void (*show)(const char *url);  // NULL: there is nobody to show it to
};

// Tells a service manager that waits for it (sd_notify(3)).
static void notify_manager(void) {
    static const char ready[] = "READY=1";
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof address.sun_path) return;
    memcpy(address.sun_path, path, strlen(path));
    if (*path == '@') *address.sun_path = 0;
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (file < 0) return;
    sendto(file, ready, strlen(ready), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
    close(file);
}

static void say_ready(void *context) {
    struct service *service = context;
    const struct processes *processes = &service->processes;
    char name[NAME_MAX], what[NAME_MAX + 64], url[PATH_MAX];
    size_t count = processes->list.count;
    text_escape(url, sizeof url, service->listener.url);
    if (processes_are_many(processes)) {
        snprintf(what, sizeof what, "%s",
                 units_counted((int64_t)count, "recorded process", "recorded processes").text);
    } else {
        const struct served *served = &processes->list.items[0];
        text_escape(name, sizeof name, served->name);
        if (served->pid)
            snprintf(what, sizeof what, "%s %d", name, (int)served->pid);
        else
            snprintf(what, sizeof what, "%s", name);
    }
    fprintf(stderr, "cairn: %s at %s until Ctrl-C\n", what, url);
    fflush(stderr);
    notify_manager();
    if (service->show) service->show(service->listener.url);
}

static bool serve(struct service *service, const struct access_rule *rule, struct error *error) {
    const struct server_order order = {.processes = &service->processes,
                                       .listener = &service->listener,
                                       .rule = *rule,
                                       .ready = say_ready,
                                       .context = service};
    return server_run(&order, error);
}

int serve_process(const char *which, void (*show)(const char *url)) {
    static struct service service;
    const struct access_rule rule = {.token = ""};
    struct error error;
    service = (struct service){.listener = {.socket = -1}, .show = show};
    bool is_ok = processes_open(&service.processes, SERVE_ONE, which, &error) &&
                 listener_open(&service.listener, "127.0.0.1:0", &error) &&
                 serve(&service, &rule, &error);
    processes_close(&service.processes);
    listener_close(&service.listener);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}

// What is to be served; false if nothing or several things were named.
static bool read_scope(const struct command_args *args, enum processes_scope *scope,
                       const char **word, struct error *error) {
    bool is_all = args_has(args, OPTION_ALL), is_group = args_has(args, OPTION_CGROUP);
    *scope = is_all ? SERVE_ALL : is_group ? SERVE_CGROUP : SERVE_ONE;
    *word = is_group           ? args_text(args, OPTION_CGROUP, NULL)
            : args->word_count ? args->words[0]
                               : NULL;
    if (is_all + is_group + (args->word_count > 0) == 1) return true;
    return error_set(error,
                     "serve: name one of a PID, a NAME, a recording, --all and --cgroup PATH");
}

static bool open_listener(const struct command_args *args, struct listener *listener,
                          struct error *error) {
    const char *address = args_text(args, OPTION_LISTEN, NULL);
    bool is_given = false;
    if (!address && !listener_inherit(listener, &is_given, error)) return false;
    return is_given || listener_open(listener, address ? address : usual_address, error);
}

static bool read_rule(const struct command_args *args, const struct listener *listener,
                      struct access_rule *rule, struct error *error) {
    const char *path = args_text(args, OPTION_TOKEN, NULL);
    *rule = (struct access_rule){.is_unix = listener->is_unix};
    if (path) return access_read_token(rule, path, error);
    return listener->is_local ||
           error_set(error,
                     "%s can be reached from other machines: --token FILE says who may ask "
                     "(docs/howto/serve.md)",
                     listener->url);
}

int cmd_serve(const struct command_args *args) {
    static struct service service;
    struct access_rule rule;
    enum processes_scope scope;
    const char *word;
    struct error error;
    service = (struct service){.listener = {.socket = -1}};
    if (!read_scope(args, &scope, &word, &error)) return command_fail(STATUS_USAGE, &error);
    struct listen_address unused;
    const char *address = args_text(args, OPTION_LISTEN, NULL);
    if (address && !listen_address_parse(address, &unused, &error)) {
        error_wrap(&error, "serve");
        return command_fail(STATUS_USAGE, &error);
    }
    bool is_ok = processes_open(&service.processes, scope, word, &error) &&
                 open_listener(args, &service.listener, &error) &&
                 read_rule(args, &service.listener, &rule, &error) &&
                 serve(&service, &rule, &error);
    processes_close(&service.processes);
    listener_close(&service.listener);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
