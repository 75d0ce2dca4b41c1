// SPDX-License-Identifier: Apache-2.0
#include "tool/base/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { FIRST_BYTES = 4096, MOST_BYTES = 256 << 20, STATUS_SIGNAL_BASE = 128 };

static int spawn(char *const words[], int output, bool shows_errors, pid_t *child) {
    posix_spawn_file_actions_t actions;
    int result = posix_spawn_file_actions_init(&actions);
    if (result) return result;
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!shows_errors)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    result = posix_spawnp(child, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

// False: there is more than fits, or no memory.
static bool read_all(int input, struct captured *captured) {
    size_t room = 0;
    for (;;) {
        if (captured->size + 1 >= room) {
            room = room ? 2 * room : FIRST_BYTES;
            char *grown = room <= MOST_BYTES ? realloc(captured->text, room) : NULL;
            if (!grown) return false;
            captured->text = grown;
        }
        ssize_t got = read(input, captured->text + captured->size, room - captured->size - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        captured->size += (size_t)got;
    }
    captured->text[captured->size] = 0;
    return true;
}

bool capture(char *const words[], bool shows_errors, struct captured *captured,
             struct error *error) {
    int ends[2], status = 0;
    pid_t child;
    *captured = (struct captured){0};
    if (pipe2(ends, O_CLOEXEC) != 0) return error_set(error, "pipe: %s", strerror(errno));
    int failure = spawn(words, ends[1], shows_errors, &child);
    close(ends[1]);
    if (failure) {
        close(ends[0]);
        return error_set(error, "%s: %s", words[0], strerror(failure));
    }
    bool is_read = read_all(ends[0], captured);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    captured->status =
        WIFSIGNALED(status) ? STATUS_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
    if (is_read) return true;
    free(captured->text);
    captured->text = NULL;
    return error_set(error, "%s: it prints more than fits into memory", words[0]);
}
