// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// A starter such as xdg-open ends at once, with a status; a browser runs on. Who has not failed
// within this time is taken to work.
enum { LOOKS = 30, LOOK_MS = 50 };

static bool has_failed(pid_t child) {
    for (int look = 0; look < LOOKS; look++) {
        int status;
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if (ended < 0) return false;
        poll(NULL, 0, LOOK_MS);
    }
    return false;
}

// In a session of its own and silent: browsers write to the terminal for as long as they run.
static bool start(const char *program, const char *path) {
    char *const words[] = {(char *)program, (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t child;
    if (posix_spawn_file_actions_init(&actions)) return false;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    int result = posix_spawnp(&child, program, &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return !result && !has_failed(child);
}

// $BROWSER is a list, as other tools read it: the first that starts.
static bool start_wanted(const char *list, const char *path) {
    char *copy = strdup(list), *rest = NULL;
    bool is_shown = false;
    for (char *word = copy ? strtok_r(copy, ":", &rest) : NULL; word && !is_shown;
         word = strtok_r(NULL, ":", &rest))
        is_shown = start(word, path);
    free(copy);
    return is_shown;
}

bool browser_show(const char *path, struct error *error) {
    static const char *const usual[] = {"xdg-open", "sensible-browser", "firefox", "chromium",
                                        "google-chrome"};
    const char *wanted = getenv("BROWSER");
    if (wanted && *wanted) {
        if (start_wanted(wanted, path)) return true;
        return error_set(error, "the browser \"%s\" ($BROWSER) did not start", wanted);
    }
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    if ((!x11 || !*x11) && (!wayland || !*wayland))
        return error_set(error, "there is no display for a browser here");
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (start(usual[i], path)) return true;
    return error_set(error, "no browser could be started, and $BROWSER names none");
}
