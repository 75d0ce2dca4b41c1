// SPDX-License-Identifier: Apache-2.0
#include "tool/query/view_answers.h"

#include "tool/model/threads.h"
#include "tool/render/annotate.h"
#include "tool/render/chart.h"
#include "tool/render/contexts_screen.h"
#include "tool/render/freed_by.h"
#include "tool/render/groups_screen.h"
#include "tool/render/memory.h"
#include "tool/render/run_screen.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/snapshots_screen.h"
#include "tool/render/stack_answers.h"
#include "tool/render/stacks.h"
#include "tool/render/tree.h"
#include "tool/tui/browser.h"

static bool print_answer(FILE *out, const struct view_subject *subject, view_answer_fn *make,
                         struct error *error) {
    struct terminal terminal = terminal_of(out);
    struct answer answer;
    if (!make(subject, &answer, error)) return false;
    answer.view = subject->request->view->name;
    bool is_ok = answer_print_text(&terminal, &answer, error);
    answer_close(&answer);
    return is_ok;
}

bool view_answer_tree(const struct view_subject *subject, struct answer *answer,
                      struct error *error) {
    recording_drop_cells(&subject->opened->recording);  // a tree goes by stacks, and is large
    return tree_answer(answer, &subject->opened->profile, subject->names,
                       &subject->request->options, error);
}

// On a terminal it is to be walked through, unless --print says otherwise. In a pipe it is what the
// terminal would show; programs ask for a form.
bool view_print_tree(FILE *out, const struct view_subject *subject, struct error *error) {
    const struct request *request = subject->request;
    if (request->is_printed || !terminal_of(out).is_terminal || !browser_is_possible())
        return print_answer(out, subject, view_answer_tree, error);
    recording_drop_cells(&subject->opened->recording);
    fflush(out);
    *error->text = 0;
    return browser_run(&subject->opened->profile, subject->names, &request->options, error);
}

bool view_answer_groups(const struct view_subject *subject, struct answer *answer,
                        struct error *error) {
    return groups_answer(answer, grouping_find(subject->request->view->name),
                         &subject->opened->profile, subject->names, &subject->request->options,
                         error);
}

bool view_answer_threads(const struct view_subject *subject, struct answer *answer,
                         struct error *error) {
    return threads_answer(answer, &subject->opened->profile, &subject->request->options,
                          subject->request->is_grouped, error);
}

// Adds who freed whose blocks, below the threads.
bool view_print_threads(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return print_answer(out, subject, view_answer_threads, error) &&
           freed_by_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

bool view_answer_regions(const struct view_subject *subject, struct answer *answer,
                         struct error *error) {
    return regions_answer(answer, &subject->opened->profile, &subject->request->options, error);
}

bool view_answer_contexts(const struct view_subject *subject, struct answer *answer,
                          struct error *error) {
    return contexts_answer(answer, &subject->opened->profile, &subject->request->options,
                           subject->request->context_key, error);
}

bool view_answer_pools(const struct view_subject *subject, struct answer *answer,
                       struct error *error) {
    return pools_answer(answer, &subject->opened->profile, &subject->request->options, error);
}

bool view_answer_snapshots(const struct view_subject *subject, struct answer *answer,
                           struct error *error) {
    return snapshots_answer(answer, &subject->opened->profile, &subject->request->options, error);
}

bool view_print_memory(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    (void)error;
    memory_print(&terminal, &subject->opened->profile, &subject->request->options);
    return true;
}

// Takes the totals of a recording; processes and cores do not come here.
bool view_print_heap_totals(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    (void)error;
    memory_print_totals(&terminal, &subject->opened->profile, &subject->request->options,
                        subject->request->view->memory == MEMORY_PAGES);
    return true;
}

bool view_answer_heap_totals(const struct view_subject *subject, struct answer *answer,
                             struct error *error) {
    return memory_totals_answer(answer, &subject->opened->profile, &subject->request->options,
                                subject->request->view->memory == MEMORY_PAGES, error);
}

// A recording does not have what is in blocks; processes and cores do not come here.
bool view_answer_no_contents(const struct view_subject *subject, struct answer *answer,
                             struct error *error) {
    (void)answer;
    return view_check_recording(subject->request->view, error);
}

bool view_answer_temporary(const struct view_subject *subject, struct answer *answer,
                           struct error *error) {
    return shapes_answer(answer, &subject->opened->profile, subject->names,
                         &subject->request->options, SHAPES_TEMPORARY, subject->request->short_ns,
                         error);
}

bool view_answer_sizes(const struct view_subject *subject, struct answer *answer,
                       struct error *error) {
    return shapes_answer(answer, &subject->opened->profile, subject->names,
                         &subject->request->options, SHAPES_SIZES, subject->request->short_ns,
                         error);
}

bool view_answer_ages(const struct view_subject *subject, struct answer *answer,
                      struct error *error) {
    return shapes_answer(answer, &subject->opened->profile, subject->names,
                         &subject->request->options, SHAPES_AGES, subject->request->short_ns,
                         error);
}

bool view_answer_timeline(const struct view_subject *subject, struct answer *answer,
                          struct error *error) {
    return timeline_answer(answer, &subject->opened->profile, &subject->request->options, error);
}

bool view_answer_memory(const struct view_subject *subject, struct answer *answer,
                        struct error *error) {
    return memory_answer(answer, &subject->opened->profile, &subject->request->options, error);
}

bool view_answer_processes(const struct view_subject *subject, struct answer *answer,
                           struct error *error) {
    return processes_answer(answer, subject->run, &subject->request->options, error);
}

bool view_answer_annotated(const struct view_subject *subject, struct answer *answer,
                           struct error *error) {
    return annotate_answer(answer, &subject->opened->profile, subject->names,
                           &subject->request->options, subject->request->source, error);
}
