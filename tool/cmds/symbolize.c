// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/symbolize.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/base/clock.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/rewrite.h"
#include "tool/query/subject.h"

// Debug information of libraries that are not the program's own. Half a second's reading at most.
#define FOREIGN_BYTES_MAX ((uint64_t)64 << 20)
// What is not read by then is left for the first report.
#define TIME_NS_MAX UINT64_C(2000000000)

bool symbolize_read_option(const struct command_args *args, enum symbolize_which *which,
                           struct error *error) {
    static const char *const words[] = {
        [SYMBOLIZE_NONE] = "none", [SYMBOLIZE_OWN] = "own", [SYMBOLIZE_ALL] = "all"};
    const char *word = args_text(args, OPTION_SYMBOLS, words[SYMBOLIZE_OWN]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *which = (enum symbolize_which)i;
        if (!strcmp(word, words[i])) return true;
    }
    return error_set(error, "--symbols: own, all or none, not \"%s\"", word);
}

static struct names_effort effort_of(enum symbolize_which which) {
    struct names_effort effort = {.is_anew = false};
    if (which == SYMBOLIZE_ALL) return effort;
    effort.foreign_bytes_max = FOREIGN_BYTES_MAX;
    effort.deadline_ns = clock_now_ns() + TIME_NS_MAX;
    return effort;
}

// Where there is not one name, the recording stays as it is.
bool symbolize_keep(const char *path, struct names_collected *found, struct opened *opened,
                    struct symbolized *done, struct error *error) {
    bool is_ok = true;
    done->frames += found->frame_count;
    done->unresolved += found->unnamed_count;
    done->bytes += found->size;
    done->late += found->late_count;
    done->recordings++;
    if (found->unnamed_count < found->frame_count)
        is_ok =
            recording_set_section(path, CAIRN_SECTION_SYMBOLS, 1, found->bytes, found->size, error);
    return is_ok && names_keep(opened->names, found, error);
}

static bool keep_names(const char *path, const struct names_effort *effort, struct opened *opened,
                       struct symbolized *done, struct error *error) {
    struct names_collected found;
    bool is_ok = names_collect(opened->names, effort, &found, error) &&
                 symbolize_keep(path, &found, opened, done, error);
    free(found.bytes);
    return is_ok;
}

bool symbolize_collect(enum symbolize_which which, struct opened *opened,
                       struct names_collected *found, struct error *error) {
    const struct names_effort effort = effort_of(which);
    return names_collect(opened->names, &effort, found, error);
}

bool symbolize_opened(const char *path, enum symbolize_which which, struct opened *opened,
                      struct symbolized *done, struct error *error) {
    const struct names_effort effort = effort_of(which);
    bool is_due = which != SYMBOLIZE_NONE && !opened_is_alive(opened);
    return !is_due || keep_names(path, &effort, opened, done, error);
}

static bool symbolize_recording(const char *path, const struct names_effort *effort,
                                struct symbolized *done, struct error *error) {
    struct opened opened;
    if (!opened_open(path, &opened, error)) return false;
    bool is_ok = !opened_is_alive(&opened) ||
                 error_set(error, "%s: its process still runs and writes to it", path);
    is_ok = is_ok && keep_names(path, effort, &opened, done, error);
    opened_close(&opened);
    return is_ok;
}

static bool is_late(const struct names_effort *effort) {
    return effort->deadline_ns && clock_now_ns() >= effort->deadline_ns;
}

// A process that goes on without cairn writes to its own recording: it is left out.
static bool symbolize_rows(const char *path, const struct names_effort *effort,
                           struct symbolized *done, struct error *error) {
    struct run run;
    struct error unused;
    if (!run_open(path, &run, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < run.rows.count && is_ok; i++) {
        char file[PATH_MAX];
        const struct run_row *row = &run.rows.items[i];
        int length = snprintf(file, sizeof file, "%s/%s", run.directory, row->file);
        if (!*row->file || length >= PATH_MAX) continue;
        if (is_late(effort))
            done->late++;
        else if (effort->deadline_ns)
            symbolize_recording(file, effort, done, &unused);
        else
            is_ok = symbolize_recording(file, effort, done, error);
    }
    run_close(&run);
    return is_ok;
}

bool symbolize_run(const char *path, enum symbolize_which which, struct symbolized *done,
                   struct error *error) {
    const struct names_effort effort = effort_of(which);
    return which == SYMBOLIZE_NONE || symbolize_rows(path, &effort, done, error);
}

int cmd_symbolize(const struct command_args *args) {
    const struct names_effort effort = {.is_anew = true};
    struct symbolized done = {0};
    struct subject subject;
    struct error error;
    char path[4 * PATH_MAX];
    if (!subject_find(args->words[0], &subject, &error) ||
        !(subject.is_run ? symbolize_rows(subject.path, &effort, &done, &error)
                         : symbolize_recording(subject.path, &effort, &done, &error)))
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
