// SPDX-License-Identifier: Apache-2.0
#include "tool/base/process_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tool/base/text.h"

static const char deleted[] = " (deleted)";  // behind the path of a file that is gone

static bool agrees(const char *comm, const char *name) {
    size_t length = strnlen(name, PROCESS_COMM_BYTES - 1);
    return length && strlen(comm) == length && !memcmp(comm, name, length);
}

// The first word of a title that a program gave itself ("nginx: master process ...").
static void first_word(const char *title, char word[NAME_MAX]) {
    size_t length = strcspn(title, " ");
    if (length && title[length - 1] == ':') length--;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)(length < PATH_MAX ? length : 0), title);
    snprintf(word, NAME_MAX, "%s", text_base_name(path));
}

void process_name_of_image(const char *path, char name[NAME_MAX]) {
    snprintf(name, NAME_MAX, "%s", text_base_name(path));
    size_t length = strlen(name), suffix = sizeof deleted - 1;
    if (length > suffix && !strcmp(name + length - suffix, deleted)) name[length - suffix] = 0;
}

void process_name_choose(const char *comm, const char *executable, const char *called,
                         const char *second, char name[NAME_MAX]) {
    enum { CALLED, WORD, IMAGE, SCRIPT, CANDIDATES };
    char candidates[CANDIDATES][NAME_MAX];
    const char *chosen = NULL, *word = candidates[WORD], *image = candidates[IMAGE];
    snprintf(candidates[CALLED], NAME_MAX, "%s", text_base_name(called));
    first_word(called, candidates[WORD]);
    process_name_of_image(executable, candidates[IMAGE]);
    snprintf(candidates[SCRIPT], NAME_MAX, "%s", text_base_name(second));
    for (size_t i = 0; i < CANDIDATES && !chosen; i++)
        if (agrees(comm, candidates[i])) chosen = candidates[i];
    bool is_renamed = *comm && *image;
    if (!chosen && !is_renamed && *called) chosen = candidates[CALLED];
    bool is_short_for_image = *word && !strncmp(image, word, strlen(word));  // python3, python3.11
    if (!chosen && is_short_for_image) chosen = word;
    if (!chosen) chosen = *image ? image : comm;
    snprintf(name, NAME_MAX, "%s", chosen);
}
