// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127 };

bool launch_find_library(struct launch *launch, bool has_operators, struct error *error) {
    static const char *const places[] = {"", "../lib/cairn/"};
    const char *name = has_operators ? "libcairn-cxx.so" : "libcairn.so";
    char own[PATH_MAX], path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0) return error_set(error, "/proc/self/exe: %s", strerror(errno));
    own[length] = 0;
    *(strrchr(own, '/') + 1) = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s%s", own, places[i], name);
        if (!realpath(path, launch->library)) continue;
        if (!strpbrk(launch->library, " :")) return true;
        return error_set(error, "%s: LD_PRELOAD allows no space or colon in a path",
                         launch->library);
    }
    return error_set(error, "%s is neither in %s nor in %s../lib/cairn", name, own, own);
}

bool launch_set_environment(const struct launch *launch, struct error *error) {
    const char *older = getenv("LD_PRELOAD");
    char *list = NULL;
    if (asprintf(&list, "%s%s%s", launch->library, older && older[0] ? ":" : "",
                 older ? older : "") < 0)
        return error_set(error, "out of memory");
    bool is_set = setenv("LD_PRELOAD", list, 1) == 0;
    free(list);
    if (launch->socket_name)
        is_set = is_set && setenv("CAIRN_SOCKET", launch->socket_name, 1) == 0;
    else
        unsetenv("CAIRN_SOCKET");
    if (launch->output) is_set = is_set && setenv("CAIRN_OUTPUT", launch->output, 1) == 0;
    return is_set || error_set(error, "out of memory");
}

// In the child: never returns.
static void launch_execute(const struct launch *launch, const char *path, char **words,
                           const sigset_t *mask, int report) {
    struct error error;
    if (!launch_set_environment(launch, &error)) errno = ENOMEM;
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(path, words);
    int problem = errno;
    if (problem == ENOEXEC) {  // a script without an interpreter line: as shells do
        size_t count = 0;
        while (words[count]) count++;
        char **shell = calloc(count + 2, sizeof *shell);
        if (shell) {
            shell[0] = "sh";
            shell[1] = (char *)(uintptr_t)path;
            memcpy(shell + 2, words + 1, count * sizeof *words);
            execv("/bin/sh", shell);
        }
    }
    ssize_t unused = write(report, &problem, sizeof problem);
    (void)unused;
    _exit(STATUS_NOT_FOUND);
}

bool launch_start(const struct launch *launch, const char *path, char **words, const sigset_t *mask,
                  pid_t *child, int *status, struct error *error) {
    int report[2], problem = 0;
    *status = STATUS_CANNOT_EXECUTE;
    if (pipe2(report, O_CLOEXEC) != 0) return error_set(error, "pipe: %s", strerror(errno));
    *child = fork();
    if (*child == 0) launch_execute(launch, path, words, mask, report[1]);
    close(report[1]);
    ssize_t got = *child < 0 ? -1 : read(report[0], &problem, sizeof problem);
    close(report[0]);
    if (*child < 0) return error_set(error, "fork: %s", strerror(errno));
    if (got != sizeof problem) return true;
    waitpid(*child, NULL, 0);
    if (problem == ENOENT) *status = STATUS_NOT_FOUND;
    return error_set(error, "%s: %s", path, strerror(problem));
}
