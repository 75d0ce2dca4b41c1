// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_summary.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/query/name_options.h"
#include "tool/query/subject.h"
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

// Commands to go on with: about the largest finding, else what is left, else what there was. The
// newest recording of the current directory needs no name.
static void next_commands(const char *path, const struct opened *opened,
                          const struct findings *findings, char *out, size_t size) {
    enum { LEFT_SHARE = 4 };
    const struct profile *profile = &opened->profile;
    const char *view = findings ? findings_view(findings) : NULL;
    char word[PATH_MAX] = " ";
    if (strchr(path, '/'))
        text_quote(word + 1, sizeof word - 1, path);
    else
        *word = 0;
    bool is_much_left = profile->exit_bytes > profile->peak.bytes / LEFT_SHARE;
    if (view)
        snprintf(out, size, "cairn report --view %s%s", view, word);
    else if (is_much_left)
        snprintf(out, size, "cairn leaks%s", word);
    else
        snprintf(out, size, "cairn report --view tree%s", word);
}

// Why a profile is empty, as far as the program's file tells.
static const char *empty_reason(const struct opened *opened, struct program *program, char *text,
                                size_t size) {
    const char *path = opened->recording.header.executable;
    int status;
    if (!profile_is_empty(&opened->profile) || !*path) return NULL;
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
    char reason[REASON_BYTES], next[PATH_MAX + 32];
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
    next_commands(path, opened, summary.findings, next, sizeof next);
    if (summary.has_prefix && !profile_is_empty(&opened->profile)) summary.next = next;
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

void report_context_of(FILE *out, const struct opened *opened, const char *path, const char *of_run,
                       const struct view_options *view) {
    struct terminal terminal = terminal_of(out);
    const struct summary summary = {.profile = &opened->profile, .view = view, .path = path};
    summary_print_context(&terminal, &summary, of_run, opened->at_text);
}

bool report_summary_print(FILE *out, struct opened *opened, const char *path,
                          const struct summary_options *options, const struct view_options *view,
                          struct error *error) {
    const struct summary summary = {
        .view = view, .empty_reason = options->empty_reason, .has_prefix = true, .has_list = true};
    return print(out, opened, path, &summary, error);
}
