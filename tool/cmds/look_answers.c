// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/look_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/answer/kept.h"
#include "tool/cmds/core_owners.h"
#include "tool/cmds/core_remedies.h"
#include "tool/cmds/core_types.h"
#include "tool/cmds/core_waste.h"
#include "tool/query/heap_report.h"
#include "tool/query/heap_views.h"
#include "tool/query/views.h"

struct asked {
    struct core_subject *subject;
    const struct remedy_facts *facts;
};
typedef bool rows_fn(const struct asked *asked, const struct request *request, struct error *error);

static bool heap_rows(const struct asked *asked, const struct request *request,
                      struct error *error) {
    return heap_views_rows(&asked->subject->look, &asked->subject->opened, request, error);
}

static bool remedies_rows(const struct asked *asked, const struct request *request,
                          struct error *error) {
    return core_remedies_rows(asked->subject, asked->facts, request, error);
}

static bool waste_rows(const struct asked *asked, const struct request *request,
                       struct error *error) {
    return core_waste_rows(asked->subject, request, error);
}

static bool types_rows(const struct asked *asked, const struct request *request,
                       struct error *error) {
    return core_types_rows(asked->subject, request, error);
}

static bool containers_rows(const struct asked *asked, const struct request *request,
                            struct error *error) {
    return core_containers_rows(asked->subject, request, error);
}

static bool owners_rows(const struct asked *asked, const struct request *request,
                        struct error *error) {
    return core_owners_rows(asked->subject, request, error);
}

// In the order in which they need the fewest things worked out anew; last that which makes one of
// stacks that read the same.
static const struct {
    const char *view;
    rows_fn *rows;
    bool is_whole;  // all of its rows are kept, not those that it shows unasked
} questions[] = {{"heap", heap_rows, true},
                 {"remedies", remedies_rows, true},
                 {"waste", waste_rows, true},
                 {"types", types_rows, true},
                 {"containers", containers_rows, true},
                 {"owners", owners_rows, false},
                 {"pages", heap_rows, true}};

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

struct look_answers look_answers_find(struct core_subject *subject,
                                      const struct remedy_facts *facts) {
    const struct asked asked = {subject, facts};
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
        bool is_ok = questions[i].rows(&asked, &request, &error);
        if (!add(&answers, out, (size_t)at, is_ok) && !answers.problem.text[0])
            error_set(&answers.problem, "%s: %s", view->name, error.text);
    }
    fclose(out);
    return answers;
}
