// SPDX-License-Identifier: Apache-2.0
#include "tool/query/kept_looks.h"

#include <stdio.h>
#include <string.h>

#include "tool/answer/kept.h"
#include "tool/base/text.h"
#include "tool/base/units.h"

enum { LOOK_TEXT_BYTES = 160 };

// What a look said to the question of a view; NULL: nothing. The caller frees it.
static struct kept_answer *answer_of(const struct recording *recording,
                                     const struct cairn_look *look, const char *view) {
    size_t size;
    const uint8_t *start = recording_look_answers(recording, look, &size);
    struct kept_bytes bytes = {start, start ? start + size : NULL};
    struct kept_answer *kept;
    while ((kept = kept_answer_read(&bytes))) {
        if (!strcmp(kept_answer_view(kept), view)) return kept;
        kept_answer_free(kept);
    }
    return NULL;
}

// By which the look that answers is chosen: live, or resident and not live.
static uint64_t rank_of(const struct cairn_look *look, const struct view *view) {
    if (!view_has(view, VIEW_IS_OF_FREE)) return look->live_bytes;
    return look->rss_bytes > look->live_bytes ? look->rss_bytes - look->live_bytes : 0;
}

// The look at the most of that memory that has an answer, and that; NULL: none has one.
static struct kept_answer *best_answer(const struct recording *recording, const struct view *view,
                                       struct cairn_look *best) {
    struct kept_answer *found = NULL;
    struct cairn_look look;
    for (size_t i = 0; recording_look(recording, i, &look); i++) {
        if (found && rank_of(&look, view) < rank_of(best, view)) continue;
        struct kept_answer *kept = answer_of(recording, &look, view->name);
        if (!kept) continue;
        kept_answer_free(found);
        found = kept;
        *best = look;
    }
    return found;
}

// Returns true if something is asked for that only the stacks of a recording have.
static bool is_narrowed(const struct request *request) {
    const struct filter_request *filter = &request->filter;
    return request->is_by_chosen || request->snapshot.kind || filter->focus || filter->ignore ||
           filter->hide || filter->module || filter->thread || filter->region || filter->context ||
           filter->lifespan != LIFESPAN_ANY;
}

bool kept_looks_answer(const struct recording *recording, const struct request *request) {
    const struct view *view = request->view;
    struct cairn_look look;
    const bool has_own = view && !view_has(view, VIEW_NEEDS_MEMORY);  // the recording's
    if (!view || !view->memory || (has_own && is_narrowed(request))) return false;
    struct kept_answer *kept = best_answer(recording, view, &look);
    kept_answer_free(kept);
    return kept;
}

// "1.24 s after the start: 45.1 MiB resident".
static void look_text(const struct cairn_look *look, char text[LOOK_TEXT_BYTES]) {
    if (look->is_at_end)
        snprintf(text, LOOK_TEXT_BYTES, "at the end: %s resident",
                 units_size((int64_t)look->rss_bytes).text);
    else
        snprintf(text, LOOK_TEXT_BYTES, "%s after the start: %s resident",
                 units_duration(look->at_ns).text, units_size((int64_t)look->rss_bytes).text);
}

static void note_look(const struct recording *recording, const struct cairn_look *look,
                      struct answer *answer) {
    char text[LOOK_TEXT_BYTES], others[ANSWER_NOTE_BYTES / 2] = "";
    size_t used = 0;
    struct cairn_look other;
    look_text(look, text);
    for (size_t i = 0; recording_look(recording, i, &other); i++) {
        char one[LOOK_TEXT_BYTES];
        if (other.at_ns == look->at_ns || used >= sizeof others) continue;
        look_text(&other, one);
        used += (size_t)snprintf(others + used, sizeof others - used, "%s %s%s",
                                 used ? "," : "; other looks:", one,
                                 other.answer_count ? "" : " (not known)");
    }
    answer_note(answer, "look at the heap %s; paused for %s%s", text,
                units_duration(look->pause_ns).text, others);
}

bool kept_looks_print(FILE *out, const struct profile *profile, const struct request *request,
                      struct error *error) {
    const struct recording *recording = profile->recording;
    const struct answer_form *form = request->form;
    const struct terminal terminal = terminal_of(out);
    struct cairn_look look;
    struct answer answer;
    struct kept_answer *kept = best_answer(recording, request->view, &look);
    if (!kept) return error_set(error, "out of memory");
    kept_answer_open(kept, &request->options, &answer);
    answer.profile = profile;
    note_look(recording, &look, &answer);
    if (!form && request->is_json) form = answer_form_find("json");
    bool is_ok =
        form ? form->print(out, &answer, error) : answer_print_text(&terminal, &answer, error);
    kept_answer_free(kept);
    return is_ok;
}

bool kept_looks_check(const struct recording *recording, const struct request *request,
                      struct error *error) {
    const struct view *view = request->view;
    struct cairn_look look;
    bool was_looked_at = recording_look(recording, 0, &look);
    char reason[2 * CAIRN_LOOK_REASON_BYTES] = "";
    if (kept_looks_answer(recording, request))
        return !is_narrowed(request) ||
               error_set(error,
                         "view %s is of all blocks at a look: it takes no measure, filter or time",
                         view->name);
    for (size_t i = 0; was_looked_at && recording_look(recording, i, &look); i++)
        if (look.reason[0]) text_escape(reason, sizeof reason, look.reason);
    if (!was_looked_at || !view_has(view, VIEW_NEEDS_MEMORY))
        return view_check_recording(view, error);
    return error_set(error, "view %s is not known of any look at the heap%s%s", view->name,
                     *reason ? ": " : "", reason);
}
