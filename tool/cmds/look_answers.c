// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/look_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/answer/kept.h"
#include "tool/cmds/core_owners.h"
#include "tool/cmds/core_types.h"
#include "tool/cmds/core_waste.h"
#include "tool/query/heap_report.h"
#include "tool/query/heap_views.h"
#include "tool/query/views.h"

typedef bool rows_fn(struct core_subject *subject, const struct request *request,
                     struct error *error);

static bool pages_rows(struct core_subject *subject, const struct request *request,
                       struct error *error) {
    return heap_views_rows(&subject->look, &subject->opened, request, error);
}

// In the order in which they need the fewest things worked out anew: who keeps what is last.
static const struct {
    const char *view;
    rows_fn *rows;
    bool is_whole;  // all of its rows are kept, not those that it shows unasked
} questions[] = {{"pages", pages_rows, true},
                 {"waste", core_waste_rows, true},
                 {"types", core_types_rows, true},
                 {"containers", core_containers_rows, true},
                 {"owners", core_owners_rows, false}};

static struct request request_for(const struct view *view, bool is_whole, FILE *out) {
    struct request request = {
        .view = view,
        .options = {.top = view->top, .depth = view->depth, .threshold = view->threshold},
        .form = &answer_form_kept,
        .out = out};
    measure_parse(view->measure, &request.options.by);
    if (is_whole) request.options.top = 0;
    return request;
}

// Adds an answer, or leaves out one that failed.
static bool add(struct look_answers *answers, FILE *out, size_t at, bool is_ok) {
    if (is_ok && fflush(out) == 0) {
        answers->count++;
        return true;
    }
    fseek(out, (long)at, SEEK_SET);
    return false;
}

struct look_answers look_answers_find(struct core_subject *subject) {
    struct look_answers answers = {.bytes = NULL};
    FILE *out = open_memstream(&answers.bytes, &answers.size);
    if (!out) {
        error_set(&answers.problem, "out of memory");
        return answers;
    }
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const struct view *view = view_find(questions[i].view);
        const struct request request = request_for(view, questions[i].is_whole, out);
        const long at = ftell(out);
        struct error error;
        bool is_ok = questions[i].rows(subject, &request, &error);
        if (!add(&answers, out, (size_t)at, is_ok) && !answers.problem.text[0])
            error_set(&answers.problem, "%s: %s", view->name, error.text);
    }
    fclose(out);
    return answers;
}
