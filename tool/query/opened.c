// SPDX-License-Identifier: Apache-2.0
#include "tool/query/opened.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool opened_open(const char *path, struct opened *opened, struct error *error) {
    memset(opened, 0, sizeof *opened);
    opened->process_count = 1;
    if (!recording_open(path, &opened->recording, error)) return false;
    bool is_built = profile_build(&opened->recording, &opened->profile, error);
    if (is_built && names_open(&opened->profile, &opened->names, error)) return true;
    opened_close(opened);
    return error_wrap(error, "%s", path);
}

void opened_close(struct opened *opened) {
    names_close(opened->names);
    opened->names = NULL;
    profile_free(&opened->profile);
    if (opened->merge)
        merge_free(opened->merge);
    else
        recording_close(&opened->recording);
    free(opened->merge);
    opened->merge = NULL;
    if (opened->texts) strings_free(opened->texts);
    free(opened->texts);
    opened->texts = NULL;
}

bool opened_is_alive(const struct opened *opened) {
    const struct cairn_header *header = &opened->recording.header;
    if (opened->merge || header->state != CAIRN_STATE_RUNNING) return false;
    char link[64], program[CAIRN_TEXT_PATH];
    snprintf(link, sizeof link, "/proc/%u/exe", header->pid);
    ssize_t length = readlink(link, program, sizeof program - 1);
    if (length < 0) return false;
    program[length] = 0;
    return !strcmp(program, header->executable);
}
