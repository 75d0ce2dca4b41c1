// SPDX-License-Identifier: Apache-2.0
#include "tool/query/view_answers.h"

#include "tool/model/threads.h"
#include "tool/render/annotate.h"
#include "tool/render/contexts_screen.h"
#include "tool/render/groups_screen.h"
#include "tool/render/memory.h"
#include "tool/render/run_screen.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/snapshots_screen.h"
#include "tool/render/stack_answers.h"
#include "tool/render/stacks.h"
#include "tool/render/tree.h"
#include "tool/tui/browser.h"

bool view_answer_tree(const struct view_subject *subject, struct answer *answer,
                      struct error *error) {
    recording_drop_cells(&subject->opened->recording);  // a tree goes by stacks, and is large
    return tree_answer(answer, &subject->opened->profile, subject->names,
                       &subject->request->options, error);
}

bool view_browse_tree(const struct view_subject *subject, struct error *error) {
    recording_drop_cells(&subject->opened->recording);
    return browser_run(&subject->opened->profile, subject->names, &subject->request->options,
                       error);
}

bool view_answer_groups(const struct view_subject *subject, struct answer *answer,
                        struct error *error) {
    return groups_answer(answer, subject->request->view->grouping, &subject->opened->profile,
                         subject->names, &subject->request->options, error);
}

bool view_answer_threads(const struct view_subject *subject, struct answer *answer,
                         struct error *error) {
    return threads_answer(answer, &subject->opened->profile, &subject->request->options,
                          subject->request->is_grouped, error);
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

// Takes the totals of a recording; processes and cores do not come here.
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
