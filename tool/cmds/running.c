// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/running.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/watch/process.h"

bool running_is_number(const char *text) {
    return *text && !text[strspn(text, "0123456789")];
}

static bool is_called(pid_t pid, const char *name) {
    char program[NAME_MAX] = "", called[NAME_MAX] = "", path[64], comm[NAME_MAX] = "";
    watched_program(pid, program);
    watched_called(pid, called);
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(comm, sizeof comm, file)) comm[strcspn(comm, "\n")] = 0;
    if (file) fclose(file);
    return !strcmp(program, name) || !strcmp(called, name) || !strcmp(comm, name);
}

static bool find_by_name(const char *name, pid_t *pid, struct error *error) {
    DIR *entries = opendir("/proc");
    pid_t found[2] = {0};
    size_t count = 0;
    if (!entries) return error_set(error, "/proc: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!running_is_number(entry->d_name)) continue;
        pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);
        if (other == getpid() || !is_called(other, name)) continue;
        if (count < 2) found[count] = other;
        count++;
    }
    closedir(entries);
    *pid = found[0];
    if (count == 1) return true;
    if (!count) return error_set(error, "no process is called \"%s\"", name);
    return error_set(error, "%zu processes are called \"%s\": give a pid (%d, %d%s)", count, name,
                     (int)found[0], (int)found[1], count > 2 ? ", ..." : "");
}

bool running_find(const char *which, pid_t *pid, struct error *error) {
    const long most = 1 << 22;  // PID_MAX_LIMIT of the kernel
    if (!running_is_number(which)) return find_by_name(which, pid, error);
    long number = strtol(which, NULL, 10);
    if (number <= 0 || number > most) return error_set(error, "there is no process %s", which);
    *pid = (pid_t)number;
    return true;
}
