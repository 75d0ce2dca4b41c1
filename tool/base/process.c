// SPDX-License-Identifier: Apache-2.0
#include "tool/base/process.h"

#include <stdio.h>
#include <string.h>

char process_state(pid_t pid, pid_t tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)(tid ? tid : pid));
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    // the name in front, in brackets, may contain any byte
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

bool process_has_ended(char state) {
    return !state || state == 'Z' || state == 'X';
}
