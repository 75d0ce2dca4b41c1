// SPDX-License-Identifier: Apache-2.0
#include "tool/watch/orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/process.h"

enum { ENVIRONMENT_MAX_BYTES = 1 << 20, PATH_BYTES = 300 };

static size_t read_all(int file, char *text, size_t size) {
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(file, text + used, size - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    return used;
}

static bool has_variable(const char *pid, const char *variable, char *text) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    size_t size = read_all(file, text, ENVIRONMENT_MAX_BYTES);
    close(file);
    return memmem(text, size, variable, strlen(variable)) &&
           !process_has_ended(process_state((pid_t)atoi(pid), 0));
}

bool orphans_exist(const char *socket_name) {
    char variable[PATH_BYTES];
    bool is_found = false;
    DIR *entries = opendir("/proc");
    char *text = malloc(ENVIRONMENT_MAX_BYTES);
    snprintf(variable, sizeof variable, "CAIRN_SOCKET=%s", socket_name);
    while (entries && text && !is_found) {
        const struct dirent *entry = readdir(entries);
        if (!entry) break;
        bool is_process = isdigit((unsigned char)entry->d_name[0]);
        is_found = is_process && has_variable(entry->d_name, variable, text);
    }
    if (entries) closedir(entries);
    free(text);
    return is_found;
}
