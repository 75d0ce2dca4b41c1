// SPDX-License-Identifier: Apache-2.0
#include "tool/query/depth.h"

#include "tool/model/reader.h"
#include "tool/model/source.h"
#include "tool/query/recordings.h"

void depth_add_path(struct depth *depth, const char *path) {
    struct recording recording = {0};
    struct source source;
    if (!source_open(path, &source, NULL)) return;
    if (recording_load_header(&recording, &source, NULL)) {
        uint32_t frames = recording_max_depth(&recording);
        if (frames && (!depth->frames || frames < depth->frames)) depth->frames = frames;
    }
    source_close(&source);
}

void depth_add_word(struct depth *depth, const char *word) {
    struct recordings recordings = {0};
    char *words[] = {(char *)word};
    if (!recordings_is_list(word) && recordings_find_all(&recordings, words, 1, NULL))
        for (size_t i = 0; i < recordings.list.count; i++)
            depth_add_path(depth, recordings.list.items[i].path);
    recordings_free(&recordings);
}

void depth_use(const struct depth *depth) {
    if (depth->frames) recording_cut_all(depth->frames);
}
