// SPDX-License-Identifier: Apache-2.0
#include "tool/cmds/views.h"

#include <stdlib.h>

#include "tool/cmds/leaks.h"
#include "tool/model/threads.h"
#include "tool/render/annotate.h"
#include "tool/render/chart.h"
#include "tool/render/free_stacks.h"
#include "tool/render/freed_by.h"
#include "tool/render/groups_screen.h"
#include "tool/render/growth.h"
#include "tool/render/mapped.h"
#include "tool/render/memory.h"
#include "tool/render/moments_screen.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/shapes.h"
#include "tool/render/stacks.h"
#include "tool/render/tree.h"
#include "tool/tui/browser.h"

enum { STACKS_TOP = 10, STACKS_DEPTH = 16, TREE_TOP = 10, GROUPS_TOP = 20 };
static const double tree_threshold = 0.01, growth_threshold = 0.001;

static bool print_stacks(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return stacks_print(&terminal, &subject->opened->profile, subject->names,
                        &subject->request->options, error);
}

static bool print_leaks(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct leaks *leaks = subject->request->leaks;
    if (!print_stacks(out, subject, error)) return false;
    if (leaks) suppressions_print(&leaks->suppressions, &terminal, &subject->request->options);
    if (leaks && leaks->note) terminal_print(&terminal, STYLE_WARNING, "\n%s\n", leaks->note);
    return true;
}

// On a terminal to be walked through; in a pipe for other programs; --print: to be read as it is.
static bool print_tree(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct request *request = subject->request;
    const struct profile *profile = &subject->opened->profile;
    if (!request->is_printed && !terminal.is_terminal)
        return tree_print_lines(out, profile, subject->names, &request->options, error);
    if (!request->is_printed && browser_is_possible()) {
        fflush(out);
        *error->text = 0;
        return browser_run(profile, subject->names, &request->options, error);
    }
    return tree_print(&terminal, profile, subject->names, &request->options, error);
}

static bool print_groups(FILE *out, const struct view_subject *subject, struct error *error) {
    const struct grouping *grouping = grouping_find(subject->request->view->name);
    const struct view_options *options = &subject->request->options;
    const struct profile *profile = &subject->opened->profile;
    struct terminal terminal = terminal_of(out);
    struct group_list list;
    bool is_ok = group_list_build(&list, grouping, profile, subject->names, options, error);
    if (is_ok) groups_print(&terminal, profile, grouping, &list, options);
    group_list_free(&list);
    return is_ok;
}

// The list with threads of one name added up.
static bool print_grouped_threads(const struct terminal *terminal, const struct profile *profile,
                                  const struct view_options *options, struct error *error) {
    struct profile grouped = *profile;
    grouped.threads = calloc(profile->thread_count + 1, sizeof *grouped.threads);
    if (!grouped.threads) return error_set(error, "no memory for the list of threads");
    bool is_ok = threads_group(profile, grouped.threads, &grouped.thread_count) ||
                 error_set(error, "no memory for the list of threads");
    is_ok = is_ok && threads_print(terminal, &grouped, options, error);
    free(grouped.threads);
    return is_ok;
}

static bool print_threads(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct profile *profile = &subject->opened->profile;
    const struct view_options *options = &subject->request->options;
    bool is_ok = subject->request->is_grouped
                     ? print_grouped_threads(&terminal, profile, options, error)
                     : threads_print(&terminal, profile, options, error);
    return is_ok && freed_by_print(&terminal, profile, options, error);
}

static bool print_regions(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return regions_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

static bool print_pools(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return pools_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

static bool print_timeline(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return chart_print(&terminal, &subject->opened->profile, subject->names,
                       &subject->request->options, error);
}

static bool print_shapes(FILE *out, const struct view_subject *subject, enum shapes_kind kind,
                         struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct request *request = subject->request;
    return shapes_print(&terminal, &subject->opened->profile, subject->names, &request->options,
                        kind, request->short_ns, error);
}

static bool print_temporary(FILE *out, const struct view_subject *subject, struct error *error) {
    return print_shapes(out, subject, SHAPES_TEMPORARY, error);
}

static bool print_sizes(FILE *out, const struct view_subject *subject, struct error *error) {
    return print_shapes(out, subject, SHAPES_SIZES, error);
}

static bool print_ages(FILE *out, const struct view_subject *subject, struct error *error) {
    return print_shapes(out, subject, SHAPES_AGES, error);
}

static bool print_frees(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return free_stacks_print(&terminal, &subject->opened->profile, subject->names,
                             &subject->request->options, error);
}

static bool print_growth(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return growth_print(&terminal, &subject->opened->profile, subject->names,
                        &subject->request->options, error);
}

static bool print_moments(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return moments_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

static bool print_memory(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    (void)error;
    memory_print(&terminal, &subject->opened->profile, &subject->request->options);
    return true;
}

static bool print_damage(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return overruns_print(&terminal, &subject->opened->profile, subject->names,
                          &subject->request->options, error);
}

static bool print_mappings(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return mapped_print(&terminal, &subject->opened->profile, subject->names,
                        &subject->request->options, error);
}

static bool print_annotated(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return annotate_print(&terminal, &subject->opened->profile, subject->names,
                          &subject->request->options, subject->request->source, error);
}

// Of a recording there is nothing of the kind; whoever has a process or a core does not come here.
static bool refuse_recording(FILE *out, const struct view_subject *subject, struct error *error) {
    (void)out;
    return error_set(error, "view %s is of a process or a core dump: cairn report --view %s PID",
                     subject->request->view->name, subject->request->view->name);
}

// clang-format off
const struct view views[] = {
    {"stacks", "stacks with their figures, the largest first", "peak",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_stacks},
    {"tree", "calls from the program's start inwards, or --inverted", "peak",
     TREE_TOP, 0, tree_threshold, true, false, print_tree},
    {"functions", "functions, what they hold themselves and with all they call", "peak",
     GROUPS_TOP, 0, 0, true, false, print_groups},
    {"lines", "the same by source line", "peak", GROUPS_TOP, 0, 0, true, false, print_groups},
    {"files", "the same by source file", "peak", GROUPS_TOP, 0, 0, true, false, print_groups},
    {"modules", "the same by library or program file", "peak",
     GROUPS_TOP, 0, 0, true, false, print_groups},
    {"types", "containers and elements, as far as templates of the stack tell", "peak",
     GROUPS_TOP, 0, 0, true, false, print_groups},
    {"annotate", "a source file with figures beside its lines (--source FILE)", "peak",
     GROUPS_TOP, 0, 0, true, false, print_annotated},
    {"threads", "threads, and what they allocated", "peak",
     GROUPS_TOP, 0, 0, false, false, print_threads},
    {"regions", "what was allocated in the regions that the program named", "peak",
     GROUPS_TOP, 0, 0, false, false, print_regions},
    {"pools", "allocators of the program's own, as it told of them", "peak",
     GROUPS_TOP, 0, 0, false, false, print_pools},
    {"timeline", "the heap over time", "peak", 0, 0, 0, true, false, print_timeline},
    {"temporary", "stacks whose blocks are freed at once, by the thread that made them",
     "temporary", STACKS_TOP, STACKS_DEPTH, 0, false, false, print_temporary},
    {"sizes", "stacks, and which sizes their blocks had", "calls",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_sizes},
    {"ages", "stacks, and how old their blocks became (cairn run --ages)", "calls",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_ages},
    {"frees", "stacks, and which stacks freed their blocks (cairn run --free-stacks)", "allocated",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_frees},
    {"growth", "stacks whose live bytes rise from moment to moment: leak suspects", "exit",
     STACKS_TOP, STACKS_DEPTH, growth_threshold, true, false, print_growth},
    {"moments", "when it was kept what every stack held, and why: for --at, --between, --since",
     "peak", 0, 0, 0, false, false, print_moments},
    {"memory", "what resident memory consisted of, beside the heap", "peak",
     0, 0, 0, false, false, print_memory},
    {"heap", "of a process (PID) or core: blocks by size, arenas, fragmentation", "exit",
     0, 0, 0, false, false, refuse_recording},
    {"pages", "of a process (PID) or core: which stacks keep pages resident", "exit",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, refuse_recording},
    {"damage", "blocks that were written past, and whose they were (cairn run --guard)", "peak",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_damage},
    {"mappings", "what the program mapped itself, by its callers (cairn run --mmap)", "peak",
     STACKS_TOP, STACKS_DEPTH, 0, true, false, print_mappings},
    {"processes", "the processes of a run, all of them", "peak", 0, 0, 0, false, true, NULL},
    {"leaks", "stacks with blocks that were never freed", "exit",
     STACKS_TOP, STACKS_DEPTH, 0, true, false, print_leaks},
    {0},
};
// clang-format on

bool view_is_of_memory(const struct view *view) {
    return view && view->print == refuse_recording;
}

bool view_is_of_mappings(const struct view *view) {
    return view && view->print == print_mappings;
}
