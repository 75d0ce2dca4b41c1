// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/finish.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/report_run.h"
#include "tool/query/name_options.h"
#include "tool/query/subject.h"

// A path below the current directory without that directory.
static const char *relative_path(const char *path) {
    static char current[PATH_MAX];
    if (!getcwd(current, sizeof current)) return path;
    size_t length = strlen(current);
    bool is_below = !strncmp(path, current, length) && path[length] == '/' && path[length + 1];
    return is_below ? path + length + 1 : path;
}

// Names that were not read in time, and why none could be kept.
static void print_symbolized(FILE *out, const struct symbolized *done,
                             const struct error *problem) {
    if (!out) return;
    if (problem->text[0]) {
        char safe[4 * sizeof problem->text];
        text_escape(safe, sizeof safe, problem->text);
        fprintf(out, "cairn: names are not kept in the recording: %s\n", safe);
    } else if (done->late) {
        fprintf(out, "cairn: names of %s take long to read and are left for cairn report\n",
                done->recordings > 1
                    ? units_counted((int64_t)done->late, "recording", "recordings").text
                    : units_counted((int64_t)done->late, "module", "modules").text);
    }
}

static void settle_header(void *context, struct cairn_header *header) {
    memory_finish(header, context);
}

void finish_begin(struct finish_early *early, struct memory *memory, const struct memory_end *end,
                  enum symbolize_which symbols, bool is_quiet) {
    struct memory_end settled = *end;
    struct error unused;  // the file is tried again, and says what is wrong
    *early = (struct finish_early){.memory = *memory};
    if (is_quiet && symbols == SYMBOLIZE_NONE) return;
    name_options_symbols()->is_quick = symbols == SYMBOLIZE_NONE;
    early->is_open = opened_open_memory(memory->header, memory->bytes, is_quiet, settle_header,
                                        &settled, &early->opened, &unused);
    // all names may take long, and whoever does not want to wait is not heard yet
    early->has_names = early->is_open && symbols == SYMBOLIZE_OWN &&
                       symbolize_collect(symbols, &early->opened, &early->names, &unused);
}

void finish_free(struct finish_early *early) {
    if (early->is_open) opened_close(&early->opened);
    free(early->names.bytes);
    memory_close(&early->memory);
    *early = (struct finish_early){.memory = {.file = -1}};
}

// What was opened early, if that is the recording at `path`; else the file. NULL with an error.
static struct opened *open_recording(const char *path, struct finish_early *early,
                                     struct opened *opened, struct error *error) {
    struct error unused;
    if (early && early->is_open && opened_moved(&early->opened, path, &unused))
        return &early->opened;
    return opened_open(path, opened, error) ? opened : NULL;
}

static bool finish_recording(FILE *out, const char *path, const struct summary_options *options,
                             const struct view_options *view, struct finish_early *early,
                             struct error *error) {
    struct opened own;
    struct symbolized done = {0};
    struct error problem = {0};
    if (!out && options->symbols == SYMBOLIZE_NONE) return true;
    name_options_symbols()->is_quick = options->symbols == SYMBOLIZE_NONE;
    struct opened *opened = open_recording(path, early, &own, error);
    if (!opened) return false;
    if (opened != &own && early->has_names)
        symbolize_keep(path, &early->names, opened, &done, &problem);
    else
        symbolize_opened(path, options->symbols, opened, &done, &problem);
    bool is_ok = !out || report_summary_print(out, opened, path, options, view, error);
    print_symbolized(out, &done, &problem);
    if (opened == &own) opened_close(&own);
    return is_ok;
}

static bool finish_run(FILE *out, const char *path, const struct summary_options *options,
                       const struct view_options *view, struct error *error) {
    struct run run;
    struct symbolized done = {0};
    struct error problem = {0};
    name_options_symbols()->is_quick = false;
    symbolize_run(path, options->symbols, &done, &problem);
    name_options_symbols()->is_quick = true;
    if (!out) return true;
    if (!run_open(path, &run, error)) return false;
    bool is_ok = report_run_summary(out, &run, view, true, error);
    print_symbolized(out, &done, &problem);
    run_close(&run);
    return is_ok;
}

bool finish_print(FILE *out, const char *path, const struct summary_options *options,
                  struct finish_early *early, struct error *error) {
    struct subject subject;
    if (!subject_find(relative_path(path), &subject, error)) return false;
    const struct view_options view = {.top = options->top,
                                      .by = options->by,
                                      .has_all_frames = options->has_all_frames,
                                      .is_plain_number = options->is_plain_number};
    return subject.is_run ? finish_run(out, subject.path, options, &view, error)
                          : finish_recording(out, subject.path, options, &view, early, error);
}

void finish_say_numbered(const struct run_directory *store) {
    char taken[NAME_MAX], name[NAME_MAX];
    if (!store->taken[0]) return;
    text_escape(taken, sizeof taken, store->taken);
    text_escape(name, sizeof name, text_base_name(store->path));
    fprintf(stderr, "cairn: %s was there already: the recording is %s\n", taken, name);
}
