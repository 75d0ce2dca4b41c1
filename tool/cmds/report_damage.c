// SPDX-License-Identifier: Apache-2.0
// The view `damage` of a run: blocks that were written past are those of one process each, with its
// own addresses and times, and are not added up.
#include <inttypes.h>

#include "tool/base/text.h"
#include "tool/cmds/report_run.h"
#include "tool/render/overruns_screen.h"

static bool print_process(const struct terminal *terminal, const struct run_row *row,
                          struct opened *opened, const struct view_options *view,
                          struct error *error) {
    char name[4 * RUN_TEXT_MAX];
    text_escape(name, sizeof name, row->name);
    names_want_overruns(opened->names);
    if (!names_resolve(opened->names, error)) return false;
    struct frame_names names = names_frames(opened->names);
    terminal_print(terminal, STYLE_NAME, "\n%s %" PRIu32 ": ", name, row->pid);
    return overruns_print(terminal, &opened->profile, &names, view, error);
}

bool report_run_damage(FILE *out, const struct run *run, const struct view_options *view,
                       struct error *error) {
    struct terminal terminal = terminal_of(out);
    size_t guarded_count = 0, damaged_count = 0;
    bool is_ok = true;
    for (size_t i = 0; i < run->rows.count && is_ok; i++) {
        const struct run_row *row = &run->rows.items[i];
        char path[PATH_MAX];
        struct opened opened;
        if (!report_run_path(run, row, path) || !opened_open(path, &opened, NULL)) continue;
        const struct cairn_guard *guard = &opened.profile.overruns.guard;
        guarded_count += guard->band_bytes != 0;
        damaged_count += guard->damaged_blocks != 0;
        if (guard->damaged_blocks) is_ok = print_process(&terminal, row, &opened, view, error);
        opened_close(&opened);
    }
    if (is_ok && !damaged_count)
        terminal_print(&terminal, STYLE_DIM, "\n%s\n",
                       guarded_count ? "no block of any process was written past"
                                     : "the blocks had no guard bands (cairn run --guard)");
    return is_ok;
}
