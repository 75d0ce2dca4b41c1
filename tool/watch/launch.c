// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/launch.h"

#include "format/settings.h"
#include "tool/base/fnv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_CANNOT_EXECUTE = 126, STATUS_NOT_FOUND = 127 };

static bool is_own_directory(const char *path) {
    struct stat status;
    return (mkdir(path, 0755) == 0 || errno == EEXIST) && lstat(path, &status) == 0 &&
           S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           !(status.st_mode & (S_IWGRP | S_IWOTH));
}

// LD_PRELOAD separates paths by blanks and colons. A library whose path has one is preloaded by a
// link in a directory that only this user writes to. The link stays: programs may start others
// after cairn's end.
static bool link_library(char library[PATH_MAX], struct error *error) {
    char own[64], place[128], path[PATH_MAX], fresh[PATH_MAX], target[PATH_MAX];
    uint64_t hash = fnv_add(FNV_START, library, strlen(library));
    snprintf(own, sizeof own, "/var/tmp/cairn-%u", (unsigned)geteuid());
    snprintf(place, sizeof place, "%s/%016" PRIx64, own, hash);
    snprintf(path, sizeof path, "%s%s", place, strrchr(library, '/'));
    snprintf(fresh, sizeof fresh, "%s/%d", place, (int)getpid());
    bool is_there = is_own_directory(own) && is_own_directory(place);
    ssize_t length = is_there ? readlink(path, target, sizeof target - 1) : -1;
    bool is_linked = length > 0 && !strncmp(target, library, (size_t)length) && !library[length];
    if (!is_linked)
        is_linked = is_there && symlink(library, fresh) == 0 && rename(fresh, path) == 0;
    if (!is_linked)
        return error_set(error,
                         "%s: LD_PRELOAD allows no space or colon in a path, and no link to it can "
                         "be made in %s",
                         library, own);
    memcpy(library, path, strlen(path) + 1);
    return true;
}

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
        return !strpbrk(launch->library, " :") || link_library(launch->library, error);
    }
    return error_set(error, "%s is neither in %s nor in %s../lib/cairn", name, own, own);
}

size_t launch_variables(const struct launch *launch,
                        struct launch_variable variables[LAUNCH_VARIABLES]) {
    const struct launch_variable all[] = {
        {CAIRN_VARIABLE(SOCKET), launch->socket_name},
        {CAIRN_VARIABLE(OUTPUT), launch->output},
        {CAIRN_VARIABLE(PYTHON), launch->is_for_python ? "1" : NULL},
        {"PYTHONMALLOC", launch->is_for_python ? "malloc" : NULL},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value) variables[count++] = all[i];
    for (size_t i = 0; i < launch->recording_count; i++) variables[count++] = launch->recording[i];
    return count;
}

bool launch_set_environment(const struct launch *launch, struct error *error) {
    const char *older = getenv("LD_PRELOAD");
    char *list = NULL;
    if (asprintf(&list, "%s%s%s", launch->library, older && older[0] ? ":" : "",
                 older ? older : "") < 0)
        return error_set(error, "out of memory");
    bool is_set = !launch->library[0] || setenv("LD_PRELOAD", list, 1) == 0;
    free(list);
    struct launch_variable variables[LAUNCH_VARIABLES];
    size_t count = launch_variables(launch, variables);
    unsetenv(CAIRN_VARIABLE(SOCKET));
    for (size_t i = 0; i < count; i++)
        is_set = is_set && setenv(variables[i].name, variables[i].value, 1) == 0;
    return is_set || error_set(error, "out of memory");
}

// A script without an interpreter line: as shells do.
static void execute_as_script(const char *path, char **words) {
    size_t count = 0;
    while (words[count]) count++;
    char **shell = calloc(count + 2, sizeof *shell);
    if (!shell) return;
    shell[0] = "sh";
    shell[1] = (char *)(uintptr_t)path;
    memcpy(shell + 2, words + 1, count * sizeof *words);
    execv("/bin/sh", shell);
}

// In the child: waits for the output's name, becomes the program.
static void launch_execute(const struct launch *launch, const char *path, char **words,
                           const sigset_t *mask, const struct rlimit *files, int go, int report) {
    struct launch own = *launch;
    struct error error;
    char output[PATH_MAX];
    ssize_t length = read(go, output, sizeof output - 1);
    if (length <= 0) _exit(STATUS_NOT_FOUND);
    output[length] = 0;
    own.output = output;
    setrlimit(RLIMIT_NOFILE, files);
    int problem = ENOMEM;
    if (launch_set_environment(&own, &error)) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        execv(path, words);
        problem = errno;
        if (problem == ENOEXEC) execute_as_script(path, words);
    }
    ssize_t unused = write(report, &problem, sizeof problem);
    (void)unused;
    _exit(STATUS_NOT_FOUND);
}

bool launch_fork(const struct launch *launch, const char *path, char **words, const sigset_t *mask,
                 const struct rlimit *files, struct launched *launched, struct error *error) {
    int go[2], report[2];
    if (pipe2(go, O_CLOEXEC) != 0) return error_set(error, "pipe: %s", strerror(errno));
    if (pipe2(report, O_CLOEXEC) != 0) {
        close(go[0]);
        close(go[1]);
        return error_set(error, "pipe: %s", strerror(errno));
    }
    *launched = (struct launched){.pid = fork(), .go = go[1], .report = report[0]};
    if (launched->pid == 0) {
        close(go[1]);  // its end comes when the tool's does
        launch_execute(launch, path, words, mask, files, go[0], report[1]);
    }
    int problem = errno;
    close(go[0]);
    close(report[1]);
    if (launched->pid > 0) return true;
    close(go[1]);
    close(report[0]);
    return error_set(error, "fork: %s", strerror(problem));
}

void launch_cancel(struct launched *launched) {
    close(launched->go);
    close(launched->report);
    waitpid(launched->pid, NULL, 0);
}

bool launch_go(struct launched *launched, const char *output, const char *path, int *status,
               struct error *error) {
    int problem = 0;
    *status = STATUS_CANNOT_EXECUTE;
    ssize_t done = write(launched->go, output, strlen(output));
    ssize_t got = done > 0 ? read(launched->report, &problem, sizeof problem) : 0;
    close(launched->go);
    close(launched->report);
    if (done > 0 && got != sizeof problem) return true;
    waitpid(launched->pid, NULL, 0);
    if (problem == ENOENT) *status = STATUS_NOT_FOUND;
    return error_set(error, "%s: %s", path, problem ? strerror(problem) : "the child died early");
}
