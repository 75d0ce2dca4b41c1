// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/symbolize.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/cmds/opened.h"
#include "tool/cmds/subject.h"
#include "tool/model/rewrite.h"

static bool symbolize_recording(const char *path, enum names_part part, struct symbolized *done,
                                struct error *error) {
    struct opened opened;
    void *bytes = NULL;
    size_t size = 0;
    bool has_names = false;
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok = !opened_is_alive(&opened) ||
                 error_set(error, "%s: its process still runs and writes to it", path);
    is_ok = is_ok && names_collect(opened.names, part, &bytes, &size, error);
    if (is_ok) {
        struct frame_names names = names_frames(opened.names);
        done->frames += names.wanted_count;
        done->unresolved += names.unresolved_count;
        done->bytes += size;
        done->recordings++;
        has_names = names.unresolved_count < names.wanted_count;
    }
    opened_close(&opened);
    if (is_ok && has_names)
        is_ok = recording_set_section(path, CAIRN_SECTION_SYMBOLS, bytes, size, error);
    free(bytes);
    return is_ok;
}

static bool symbolize_run(const char *path, enum names_part part, struct symbolized *done,
                          struct error *error) {
    struct run run;
    if (!run_open(path, &run, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < run.rows.count && is_ok; i++) {
        char file[PATH_MAX];
        const struct run_row *row = &run.rows.items[i];
        int length = snprintf(file, sizeof file, "%s/%s", run.directory, row->file);
        if (*row->file && length < PATH_MAX) is_ok = symbolize_recording(file, part, done, error);
    }
    run_close(&run);
    return is_ok;
}

bool symbolize_path(const char *path, enum names_part part, struct symbolized *done,
                    struct error *error) {
    struct subject subject;
    if (!subject_find(path, &subject, error)) return false;
    return subject.is_run ? symbolize_run(subject.path, part, done, error)
                          : symbolize_recording(subject.path, part, done, error);
}

int cmd_symbolize(const struct command_args *args) {
    struct symbolized done = {0};
    struct subject subject;
    struct error error;
    char path[4 * PATH_MAX];
    if (!subject_find(args->words[0], &subject, &error) ||
        !symbolize_path(subject.path, NAMES_ANEW, &done, &error))
        return command_fail(STATUS_FAILURE, &error);
    text_escape(path, sizeof path, subject.path);
    printf("%s: names of %s of %s, %s", path,
           units_count((int64_t)(done.frames - done.unresolved)).text,
           units_counted((int64_t)done.frames, "frame", "frames").text,
           units_size((int64_t)done.bytes).text);
    if (done.recordings != 1)
        printf(" in %s recordings", units_count((int64_t)done.recordings).text);
    putchar('\n');
    return STATUS_OK;
}
