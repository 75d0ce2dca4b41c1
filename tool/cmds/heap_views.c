// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/heap_views.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/cmds/heap_look.h"
#include "tool/cmds/views.h"
#include "tool/render/heap_screen.h"

bool heap_views_check(const struct command_args *args, struct error *error) {
    static const enum option_id none[] = {
        OPTION_BY,           OPTION_BLOCKS,          OPTION_THRESHOLD, OPTION_MIN_BYTES,
        OPTION_FOCUS,        OPTION_IGNORE,          OPTION_HIDE,      OPTION_MODULE,
        OPTION_THREAD,       OPTION_REGION,          OPTION_PROCESS,   OPTION_AT,
        OPTION_BETWEEN,      OPTION_SINCE,           OPTION_LIFESPAN,  OPTION_INVERTED,
        OPTION_GROUP,        OPTION_SHORT,           OPTION_SOURCE,    OPTION_PRINT,
        OPTION_SUPPRESSIONS, OPTION_NO_SUPPRESSIONS, OPTION_BASELINE,  OPTION_ERROR_EXITCODE};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        if (!args_has(args, none[i])) continue;
        const struct option_row *row = args->command->options;
        while (row->name && row->id != none[i]) row++;
        return error_set(error, "%s: --%s is not for the views heap and pages", args->command->name,
                         row->name);
    }
    return true;
}

// Names for the stacks that are shown.
static bool resolve(struct opened *opened, const struct heap_state *state, size_t top,
                    struct error *error) {
    size_t count;
    uint32_t *ranking = residency_rank(&state->residency, &count);
    if (!ranking) return error_set(error, "no memory for the list of stacks");
    if (top && top < count) count = top;
    for (size_t i = 0; i < count; i++)
        if (ranking[i] < opened->profile.stack_count)
            names_want_stack(opened->names, opened->profile.stacks[ranking[i]].node, 0);
    free(ranking);
    return names_resolve(opened->names, error);
}

// `opened`: its recording; NULL: it has none.
static bool show(const char *name, struct opened *opened, const struct heap_state *state,
                 const struct request *request, struct error *error) {
    const struct view_options *options = &request->options;
    struct terminal terminal = terminal_of(stdout);
    struct frame_names names = {0};
    char safe[PATH_MAX];
    bool has_pages = !strcmp(request->view->name, "pages");
    text_escape(safe, sizeof safe, name);
    if (has_pages && opened) {
        if (!resolve(opened, state, options->top, error)) return false;
        names = names_frames(opened->names);
    }
    const struct heap_about about = {
        .name = safe, .state = state, .profile = opened ? &opened->profile : NULL, .names = &names};
    if (request->is_json) return heap_json_print(stdout, &about, options, has_pages, error);
    return has_pages ? pages_screen_print(&terminal, &about, options, error)
                     : heap_screen_print(&terminal, &about, options, error);
}

static bool report(const char *word, const struct heap_look *look, const struct request *request,
                   struct error *error) {
    struct opened opened;
    struct heap_state state;
    bool is_recorded = look->is_recorded;
    if (is_recorded && !heap_look_recording(look, &opened, error))
        return heap_look_blame(look, error);
    bool is_ok = heap_look_survey(look, is_recorded ? &opened.profile : NULL, &state, error) ||
                 heap_look_blame(look, error);
    if (is_ok) {
        is_ok = show(word, is_recorded ? &opened : NULL, &state, request, error);
        heap_state_free(&state);
    }
    if (is_recorded) opened_close(&opened);
    return is_ok;
}

bool heap_views_report(const char *word, const struct request *request, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_BLOCKS, .bytes_max = UINT64_MAX};
    struct heap_look look;
    if (!word)
        return error_set(error, "the views heap and pages are of a process or a core dump: give "
                                "its PID or the core");
    if (!access(word, F_OK) && !core_is_one(word))
        return error_set(
            error, "%s: the views heap and pages are of a process (its PID) or a core dump", word);
    if (!heap_look_take(word, &wish, &look, error)) return false;
    bool is_ok = report(word, &look, request, error);
    heap_look_close(&look);
    return is_ok;
}
