// SPDX-License-Identifier: Apache-2.0
// The client is a program of its own (debuginfod-find) and not a library: it brings the cache, the
// protocol and the user's settings with it, it can be cancelled without us, and a tool that never
// downloads does not load what downloading needs.
#include "tool/symbol/download.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/symbol/image.h"

#define CLIENT "debuginfod-find"
#define STATUS_NOT_FOUND 127

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *problem;  // under the lock; set: no further download is tried

// The environment of this process and the wish for progress; NULL without memory.
static char **client_environment(void) {
    static char progress[] = "DEBUGINFOD_PROGRESS=1";
    size_t count = 0;
    while (environ[count]) count++;
    char **variables = calloc(count + 2, sizeof *variables);
    if (!variables) return NULL;
    memcpy(variables, environ, count * sizeof *variables);
    if (!getenv("DEBUGINFOD_PROGRESS") && isatty(STDERR_FILENO)) variables[count] = progress;
    return variables;
}

static bool start_client(const char *hex, int output, pid_t *child) {
    char *words[] = {CLIENT, "debuginfo", (char *)(uintptr_t)hex, NULL};
    char **variables = client_environment();
    if (!variables) return false;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!isatty(STDERR_FILENO))
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool is_started = !posix_spawnp(child, CLIENT, &actions, &attributes, words, variables);
    free(variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return is_started;
}

// What the client prints: the path and a line end.
static void read_path(int input, char path[PATH_MAX]) {
    size_t used = 0;
    while (used < PATH_MAX - 1) {
        ssize_t got = read(input, path + used, PATH_MAX - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    path[used] = 0;
    path[strcspn(path, "\n")] = 0;
}

// Runs the client to its end; Ctrl-C is for it alone meanwhile.
static bool run_client(const char *hex, char path[PATH_MAX]) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int ends[2], status = 0;
    pid_t child;
    if (pipe2(ends, O_CLOEXEC)) return false;
    sigaction(SIGINT, &ignore, &before);
    bool is_started = start_client(hex, ends[1], &child);
    close(ends[1]);
    if (is_started) {
        read_path(ends[0], path);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    }
    close(ends[0]);
    sigaction(SIGINT, &before, NULL);
    if (!is_started || (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_FOUND))
        problem = "the program " CLIENT " is not installed (Debian: package debuginfod)";
    else if (WIFSIGNALED(status))
        problem = "downloading was cancelled";
    return is_started && WIFEXITED(status) && !WEXITSTATUS(status) && path[0] == '/';
}

bool download_debug_file(const uint8_t *build_id, size_t bytes, char path[PATH_MAX]) {
    char hex[2 * IMAGE_BUILD_ID_MAX + 1] = "";
    if (!bytes || bytes > IMAGE_BUILD_ID_MAX) return false;
    for (size_t i = 0; i < bytes; i++) snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
    pthread_mutex_lock(&lock);
    bool is_there = !problem && run_client(hex, path);
    pthread_mutex_unlock(&lock);
    return is_there;
}

const char *download_problem(void) {
    pthread_mutex_lock(&lock);
    const char *text = problem;
    pthread_mutex_unlock(&lock);
    return text;
}
