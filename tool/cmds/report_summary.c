// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/report_summary.h"

#include <limits.h>
#include <string.h>

#include "tool/render/site.h"
#include "tool/render/summary.h"

// Marks what the list of places at the peak looks at.
static bool resolve_peak(struct opened *opened, struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (profile->stacks[i].peak_bytes > 0)
            names_want_stack(opened->names, profile->stacks[i].node, SITE_PLACES_MAX);
    return names_resolve(opened->names, error);
}

// Commands to go on with. The newest recording of the current directory needs no name.
static void next_commands(const char *path, const struct opened *opened, char *out, size_t size) {
    if (strchr(path, '/'))
        snprintf(out, size, "cairn report %s", path);
    else if (opened->profile.exit_bytes > 0)
        snprintf(out, size, "cairn report \xc2\xb7 cairn report --view tree \xc2\xb7 cairn leaks");
    else
        snprintf(out, size, "cairn report \xc2\xb7 cairn report --view tree");
}

static bool print(FILE *out, struct opened *opened, struct summary *summary, struct error *error) {
    struct terminal terminal = terminal_of(out);
    if (summary->has_list && !resolve_peak(opened, error)) return false;
    struct frame_names names = names_frames(opened->names);
    summary->profile = &opened->profile;
    summary->names = &names;
    summary->is_alive = opened_is_alive(opened);
    return summary_print(&terminal, summary, error);
}

bool report_summary_of(FILE *out, struct opened *opened, const char *path, bool has_list,
                       const struct view_options *view, struct error *error) {
    struct summary summary = {.view = view, .path = path, .has_list = has_list};
    return print(out, opened, &summary, error);
}

bool report_summary_print(FILE *out, const char *path, const struct summary_options *options,
                          struct error *error) {
    struct opened opened;
    if (!opened_open(path, &opened, error)) return false;
    char next[PATH_MAX + 32];
    next_commands(path, &opened, next, sizeof next);
    struct view_options view = {.by = MEASURE_PEAK,
                                .top = options->top,
                                .has_all_frames = options->has_all_frames,
                                .is_plain_number = options->is_plain_number};
    bool is_empty = !opened.profile.totals.allocations;
    struct summary summary = {.view = &view,
                              .path = path,
                              .next = is_empty ? NULL : next,
                              .empty_reason = options->empty_reason,
                              .has_prefix = true,
                              .has_list = true};
    bool is_ok = print(out, &opened, &summary, error);
    opened_close(&opened);
    return is_ok;
}
