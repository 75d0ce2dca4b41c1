// SPDX-License-Identifier: Apache-2.0
#include "tool/export/titles.h"

#include <string.h>

bool titles_build(struct titles *titles, const struct frame_table *frames, struct error *error) {
    char title[FRAME_TITLE_BYTES];
    *titles = (struct titles){.list = calloc(frames->frames.count + 1, sizeof(char *))};
    if (!titles->list) return error_set(error, "no memory for names");
    for (size_t i = 0; i < frames->frames.count; i++) {
        frame_title(frames->frames.items[i], title, sizeof title);
        for (char *at = title; (at = strchr(at, ';'));) *at = ',';
        titles->list[i] = strdup(title);
        if (!titles->list[i]) return error_set(error, "no memory for names");
        titles->count++;
    }
    return true;
}

void titles_free(struct titles *titles) {
    for (size_t i = 0; i < titles->count; i++) free(titles->list[i]);
    free(titles->list);
    *titles = (struct titles){0};
}
