// SPDX-License-Identifier: Apache-2.0
#include "tool/query/views.h"

#include <stdlib.h>
#include <string.h>

#include "tool/render/alike.h"
#include "tool/tui/browser.h"

bool view_check_recording(const struct view *view, struct error *error) {
    if (!view_has(view, VIEW_NEEDS_MEMORY)) return true;
    return error_set(error,
                     "view %s needs a running process or a core dump, since a recording does not "
                     "have what is in blocks: while the program runs, cairn report --view %s PID%s",
                     view->name, view->name,
                     view->memory == MEMORY_REMEDIES ? "" : "; or record it with cairn run --look");
}

void view_names_of_memory(char names[VIEW_NAMES_BYTES]) {
    size_t used = 0, left = 0;
    *names = 0;
    for (const struct view *view = views; view->name; view++) left += view->memory != MEMORY_NONE;
    for (const struct view *view = views; view->name; view++) {
        if (view->memory == MEMORY_NONE) continue;
        left--;
        used += (size_t)snprintf(names + used, VIEW_NAMES_BYTES - used, "%s%s", view->name,
                                 left > 1    ? ", "
                                 : left == 1 ? " and "
                                             : "");
        if (used >= VIEW_NAMES_BYTES) return;
    }
}

const struct view *view_find(const char *name) {
    for (const struct view *view = views; name && view->name; view++)
        if (!strcmp(view->name, name)) return view;
    return NULL;
}

bool view_join_alike(const struct request *request, struct profile *profile,
                     const struct frame_names *names, struct error *error) {
    const bool is_by_programs = request->form && !request->form->is_for_people;
    const struct alike_reading reading = {is_by_programs,
                                          is_by_programs || request->options.has_all_frames};
    return alike_join(profile, names, request->options.by, reading, error);
}

// Returns true on a terminal, unless --print says otherwise. In a pipe it is what the terminal
// would show; programs ask for a form.
static bool is_browsed(const struct view *view, const struct request *request,
                       const struct terminal *terminal) {
    return view->browse && !request->form && !request->is_printed && terminal->is_terminal &&
           browser_is_possible();
}

bool view_print(FILE *out, const struct view_subject *subject, struct error *error) {
    const struct request *request = subject->request;
    const struct view *view = request->view ? request->view : views;
    struct terminal terminal = terminal_of(out);
    struct answer answer = {0};
    if (subject->opened && view_has(view, VIEW_IS_OF_STACKS) &&
        !view_join_alike(request, &subject->opened->profile, subject->names, error))
        return false;
    if (is_browsed(view, request, &terminal)) {
        fflush(out);
        *error->text = 0;
        return view->browse(subject, error);
    }
    bool is_made = view->rows ? view->rows(&answer, &subject->opened->profile, subject->names,
                                           &request->options, error)
                              : view->answer(subject, &answer, error);
    if (is_made && answer.is_unknown && request->form) {
        error_set(error, "%s of this recording", answer.title);
        answer_close(&answer);
        return false;
    }
    if (!is_made) return false;
    answer.view = view->name;
    for (int i = 0; i < VIEW_NOTES && request->form; i++)
        if (subject->notes[i] && *subject->notes[i]) answer_note(&answer, "%s", subject->notes[i]);
    bool is_ok = request->form ? request->form->print(out, &answer, error)
                               : answer_print_text(&terminal, &answer, error);
    answer_close(&answer);
    return is_ok;
}

bool view_has(const struct view *view, unsigned needs) {
    return view && (view->needs & needs);
}
