// SPDX-License-Identifier: Apache-2.0
#include "tool/query/heap_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/base/text.h"
#include "tool/query/heap_views.h"
#include "tool/query/look_answer.h"
#include "tool/query/views.h"
#include "tool/render/heap_screen.h"

// Finds the names of all stacks, and makes one of those that read the same: before blocks are
// counted by stack, since pages that two of them share are kept by one then.
static bool join_alike(struct opened *opened, const struct request *request, struct error *error) {
    if (request->view->memory != MEMORY_PAGES) return true;
    names_need_all(opened->names);
    if (!names_resolve(opened->names, error)) return false;
    const struct frame_names names = names_frames(opened->names);
    return view_join_alike(request, &opened->profile, &names, error);
}

// Prints rows in the form that is asked for.
static bool print_rows(const struct heap_look *look, const struct heap_about *about,
                       const struct request *request, struct error *error) {
    bool has_pages = request->view->memory == MEMORY_PAGES;
    struct look_answer of;
    struct answer answer;
    bool is_made = has_pages ? pages_answer(&answer, about, &request->options, error)
                             : heap_answer(&answer, about, &request->options, error);
    if (!is_made) return false;
    look_answer_of(&of, look, &answer);
    return look_answer_print(request, &answer, error);
}

// `opened`: its recording; NULL: it has none.
static bool show(const struct heap_look *look, struct opened *opened,
                 const struct heap_state *state, const struct request *request,
                 struct error *error) {
    const struct view_options *options = &request->options;
    struct terminal terminal = terminal_of(stdout);
    struct frame_names names = {0};
    char safe[PATH_MAX];
    bool has_pages = request->view->memory == MEMORY_PAGES;
    text_escape(safe, sizeof safe, look->name);
    if (has_pages && opened) names = names_frames(opened->names);
    const struct heap_about about = {
        .name = safe, .state = state, .profile = opened ? &opened->profile : NULL, .names = &names};
    if (request->form) return print_rows(look, &about, request, error);
    return has_pages ? pages_screen_print(&terminal, &about, options, error)
                     : heap_screen_print(&terminal, &about, options, error);
}

bool heap_views_rows(const struct heap_look *look, struct opened *opened,
                     const struct request *request, struct error *error) {
    struct heap_state state;
    if (opened && !join_alike(opened, request, error)) return false;
    if (!heap_look_survey(look, opened ? &opened->profile : NULL, &state, error)) return false;
    bool is_ok = show(look, opened, &state, request, error);
    heap_state_free(&state);
    return is_ok;
}

static bool report(const struct heap_look *look, const struct request *request,
                   struct error *error) {
    struct opened opened;
    if (!look->is_recorded) return heap_views_rows(look, NULL, request, error);
    if (!heap_look_recording(look, &opened, error)) return false;
    bool is_ok = heap_views_rows(look, &opened, request, error);
    opened_close(&opened);
    return is_ok;
}

bool heap_views_report(const char *word, const struct request *request, struct error *error) {
    const struct heap_wish wish = {.depth = HEAP_HEADS, .bytes_max = UINT64_MAX};
    struct heap_look look;
    if (!heap_look_take(word, &wish, &look, error)) return false;
    bool is_ok = report(&look, request, error) || heap_look_blame(&look, error);
    heap_look_close(&look);
    return is_ok;
}
