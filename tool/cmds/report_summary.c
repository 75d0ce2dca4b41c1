// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_summary.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/report_run.h"
#include "tool/cmds/subject.h"
#include "tool/render/site.h"
#include "tool/render/summary.h"
#include "tool/watch/program.h"

bool report_resolve_places(struct opened *opened, enum measure by, struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (measure_stack(by, &profile->stacks[i]).value > 0)
            names_want_stack(opened->names, profile->stacks[i].node, SITE_PLACES_MAX);
    return names_resolve(opened->names, error);
}

// A path below the current directory without that directory.
static const char *relative_path(const char *path) {
    static char current[PATH_MAX];
    if (!getcwd(current, sizeof current)) return path;
    size_t length = strlen(current);
    bool is_below = !strncmp(path, current, length) && path[length] == '/' && path[length + 1];
    return is_below ? path + length + 1 : path;
}

// Commands to go on with. The newest recording of the current directory needs no name.
static void next_commands(const char *path, const struct opened *opened, char *out, size_t size) {
    char word[PATH_MAX];
    text_quote(word, sizeof word, path);
    if (strchr(path, '/'))
        snprintf(out, size, "cairn report %s", word);
    else if (opened->profile.exit_bytes > 0)
        snprintf(out, size, "cairn report \xc2\xb7 cairn report --view tree \xc2\xb7 cairn leaks");
    else
        snprintf(out, size, "cairn report \xc2\xb7 cairn report --view tree");
}

// Why a profile is empty, as far as the program's file tells.
static const char *empty_reason(const struct opened *opened, struct program *program, char *text,
                                size_t size) {
    const char *path = opened->recording.header.executable;
    int status;
    if (opened->profile.totals.allocations || !*path) return NULL;
    if (!program_find(path, program, &status, NULL)) return NULL;
    if (program->obstacle) return program->obstacle;
    if (!program->own_allocator) return NULL;
    snprintf(text, size, "the program is linked with %s, whose calls cannot be seen",
             program->own_allocator);
    return text;
}

// What stands out, with names for its stacks.
static bool find_findings(struct opened *opened, struct findings *findings, struct error *error) {
    if (!findings_find(findings, &opened->profile, error)) return false;
    for (size_t i = 0; i < findings->count; i++)
        if (findings->list[i].stack)
            names_want_stack(opened->names, findings->list[i].stack->node, SITE_PLACES_MAX);
    return true;
}

// Prints what `wanted` asks for; the parts that come from the recording are filled in here.
static bool print(FILE *out, struct opened *opened, const char *path, const struct summary *wanted,
                  struct error *error) {
    enum { REASON_BYTES = 256 };
    struct terminal terminal = terminal_of(out);
    struct program program;
    char reason[REASON_BYTES];
    struct findings findings;
    if (wanted->has_list && (!find_findings(opened, &findings, error) ||
                             !report_resolve_places(opened, wanted->view->by, error)))
        return false;
    struct frame_names names = names_frames(opened->names);
    struct summary summary = *wanted;
    if (wanted->names) names.of_place = wanted->names->of_place;
    if (wanted->names) names.context = wanted->names->context;
    summary.path = path;
    summary.profile = &opened->profile;
    summary.names = &names;
    summary.findings = wanted->has_list ? &findings : NULL;
    summary.is_alive = opened_is_alive(opened);
    if (!summary.empty_reason)
        summary.empty_reason = empty_reason(opened, &program, reason, sizeof reason);
    if (!summary_print_facts(&terminal, &summary, error)) return false;
    summary_print_file(&terminal, &summary);
    return true;
}

bool report_summary_of(FILE *out, struct opened *opened, const char *path, bool has_list,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error) {
    struct summary summary = {.names = names, .view = view, .has_list = has_list};
    return print(out, opened, path, &summary, error);
}

static bool print_recording(FILE *out, const char *path, const struct summary_options *options,
                            const struct view_options *view, struct error *error) {
    struct opened opened;
    char next[PATH_MAX + 32];
    if (!opened_open(path, &opened, error)) return false;
    next_commands(path, &opened, next, sizeof next);
    bool is_empty = !opened.profile.totals.allocations;
    struct summary summary = {.view = view,
                              .next = is_empty ? NULL : next,
                              .empty_reason = options->empty_reason,
                              .has_prefix = true,
                              .has_list = true};
    bool is_ok = print(out, &opened, path, &summary, error);
    opened_close(&opened);
    return is_ok;
}

bool report_summary_print(FILE *out, const char *path, const struct summary_options *options,
                          struct error *error) {
    struct subject subject;
    if (!subject_find(relative_path(path), &subject, error)) return false;
    struct view_options view = {.top = options->top,
                                .by = options->by,
                                .has_all_frames = options->has_all_frames,
                                .is_plain_number = options->is_plain_number};
    if (!subject.is_run) return print_recording(out, subject.path, options, &view, error);
    struct run run;
    if (!run_open(subject.path, &run, error)) return false;
    bool is_ok = report_run_summary(out, &run, &view, error);
    run_close(&run);
    return is_ok;
}
