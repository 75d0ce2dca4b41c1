// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_summary.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/cmds/core_overview.h"
#include "tool/query/languages.h"
#include "tool/query/name_hints.h"
#include "tool/query/unwrapped.h"
#include "tool/render/memory.h"
#include "tool/render/site.h"
#include "tool/render/summary.h"
#include "tool/render/way.h"
#include "tool/watch/program.h"

enum { LINE_INDENT = 2 };

bool report_resolve_places(struct opened *opened, enum measure by, struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (measure_stack(by, &profile->stacks[i]).value > 0)
            names_want_stack(opened->names, profile->stacks[i].node, SITE_PLACES_MAX);
    return names_resolve(opened->names, error);
}

// Writes the command to go on with: about the largest finding, else what is left, else what there
// was. `word` begins with a blank, or is empty: the newest recording needs no name.
static void next_command(const char *word, const struct opened *opened,
                         const struct findings *findings, char *out, size_t size) {
    enum { LEFT_SHARE = 4 };
    const struct profile *profile = &opened->profile;
    const char *view = findings ? findings_view(findings) : NULL;
    const struct cairn_reachability *lost = &profile->reachability.sums;
    bool is_much_left = profile->exit_bytes > profile->peak.bytes / LEFT_SHARE;
    const struct cairn_header *header = &profile->recording->header;
    bool is_left = profile_lacks_older(profile) && header->stop_reason == CAIRN_STOP_LEFT;
    struct claim not_heap;
    if (is_left && !profile->peak.bytes)  // nothing was allocated since
        snprintf(out, size, "cairn report %" PRIu32, header->pid);
    else if (lost->direct_blocks)
        snprintf(out, size, "cairn leaks --unreachable%s", word);
    else if (claim_of_not_heap(&not_heap, profile))
        snprintf(out, size, "cairn report --view memory%s", word);
    else if (view)
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
    if (!program->own_allocator || program->is_static) return NULL;  // of those it is led to us
    snprintf(text, size, "the program is linked with %s, whose calls cannot be seen",
             program->own_allocator);
    return text;
}

bool report_want_way(struct opened *opened, struct error *error) {
    struct way_nodes way;
    if (!way_nodes_find(&way, &opened->profile))
        return error_set(error, "no memory for sums by function");
    for (size_t i = 0; i < way.nodes.count; i++)
        names_want_stack(opened->names, way.nodes.items[i], 1);
    way_nodes_free(&way);
    return true;
}

bool report_find_findings(struct opened *opened, struct findings *findings, struct error *error) {
    if (!findings_find(findings, &opened->profile, error)) return false;
    uint32_t nodes[FINDINGS_NODES_MAX];
    size_t count = findings_nodes(findings, nodes);
    for (size_t i = 0; i < count; i++) names_want_stack(opened->names, nodes[i], SITE_PLACES_MAX);
    return report_want_way(opened, error);
}

// Prints what `wanted` asks for; the parts that come from the recording are filled in here.
static bool print_summary(FILE *out, struct opened *opened, const char *path,
                          const struct summary *wanted, struct error *error) {
    enum { REASON_BYTES = 256 };
    struct terminal terminal = terminal_of(out);
    struct program program;
    char reason[REASON_BYTES], next[PATH_MAX + 32], word[PATH_MAX] = " ";
    struct findings findings;
    if (wanted->has_list && (!report_find_findings(opened, &findings, error) ||
                             !report_resolve_places(opened, wanted->view->by, error)))
        return false;
    struct frame_names names = names_frames(opened->names);
    struct summary summary = *wanted;
    if (wanted->has_list && !findings_settle(&findings, &opened->profile, &names, error))
        return false;
    if (wanted->names) names.of_place = wanted->names->of_place;
    if (wanted->names) names.context = wanted->names->context;
    summary.path = path;
    summary.profile = &opened->profile;
    summary.names = &names;
    summary.findings = wanted->has_list ? &findings : NULL;
    summary.is_alive = opened_is_alive(opened);
    if (summary.has_prefix && !strchr(path, '/'))
        *word = 0;
    else
        text_quote(word + 1, sizeof word - 1, path);
    next_command(word, opened, summary.findings, next, sizeof next);
    if (summary.has_list && !profile_is_empty(&opened->profile)) summary.next = next;
    if (!summary.empty_reason)
        summary.empty_reason = empty_reason(opened, &program, reason, sizeof reason);
    if (!summary_print_facts(&terminal, &summary, error)) return false;
    if (!profile_is_empty(&opened->profile)) languages_print(&terminal, opened, LINE_INDENT);
    if (summary.has_prefix && !unwrapped_print_of(&terminal, &opened->recording, LINE_INDENT))
        return error_set(error, "no memory for the functions of --wrap");
    if (!summary.has_prefix && summary.has_list) {
        if (summary.is_alive) core_overview_print_go((pid_t)opened->recording.header.pid);
        name_hints_print(out, opened, true);
    }
    summary_print_file(&terminal, &summary);
    return true;
}

bool report_summary_of(FILE *out, struct opened *opened, const char *path, bool has_list,
                       const struct frame_names *names, const struct view_options *view,
                       struct error *error) {
    const struct summary summary = {.names = names, .view = view, .has_list = has_list};
    return print_summary(out, opened, path, &summary, error);
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
    return print_summary(out, opened, path, &summary, error);
}
