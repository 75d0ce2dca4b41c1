// SPDX-License-Identifier: Apache-2.0
#include "tool/query/views.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/threads.h"
#include "tool/render/annotate.h"
#include "tool/render/chart.h"
#include "tool/render/contexts_screen.h"
#include "tool/render/findings.h"
#include "tool/render/freed_by.h"
#include "tool/render/groups_screen.h"
#include "tool/render/growth.h"
#include "tool/render/mappings.h"
#include "tool/render/memory.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/pool_candidates_screen.h"
#include "tool/render/scopes_screen.h"
#include "tool/render/shapes.h"
#include "tool/render/stacks.h"
#include "tool/render/tree.h"
#include "tool/tui/browser.h"

enum { STACKS_TOP = 10, STACKS_DEPTH = 16, TREE_TOP = 10, GROUPS_TOP = 20 };
enum { CANDIDATES_DEPTH = 6, OWNERS_TOP = 8, OWNERS_DEPTH = 4, CONTAINERS_TOP = 20 };
static const double tree_threshold = 0.01, owners_threshold = 0.01, growth_threshold = 0.001;
static const double candidates_threshold = 0.001;

static bool print_stacks(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return stacks_print(&terminal, &subject->opened->profile, subject->names,
                        &subject->request->options, error);
}

// On a terminal to be walked through; in a pipe for other programs; --print: to be read as it is.
static bool print_tree(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct request *request = subject->request;
    const struct profile *profile = &subject->opened->profile;
    recording_drop_cells(&subject->opened->recording);  // a tree goes by stacks, and is large
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

static bool print_threads(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct profile *profile = &subject->opened->profile;
    const struct view_options *options = &subject->request->options;
    return threads_print(&terminal, profile, options, subject->request->is_grouped, error) &&
           freed_by_print(&terminal, profile, options, error);
}

static bool print_regions(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return regions_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

static bool print_contexts(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct request *request = subject->request;
    return contexts_print(&terminal, &subject->opened->profile, &request->options,
                          request->context_key, error);
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

static bool print_findings(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    const struct profile *profile = &subject->opened->profile;
    struct findings findings;
    if (profile_is_sum(profile))
        return error_set(error, "findings are of one process: give --process");
    return findings_find(&findings, profile, error) &&
           findings_settle(&findings, profile, subject->names, error) &&
           findings_print_all(&findings, &terminal, profile, subject->names,
                              &subject->request->options, error);
}

static bool print_snapshots(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return snapshots_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

static bool print_memory(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    (void)error;
    memory_print(&terminal, &subject->opened->profile, &subject->request->options);
    return true;
}

static bool print_overruns(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return overruns_print(&terminal, &subject->opened->profile, subject->names,
                          &subject->request->options, error);
}

static bool print_mappings(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return mapped_print(&terminal, &subject->opened->profile, subject->names,
                        &subject->request->options, error);
}

static bool print_pool_candidates(FILE *out, const struct view_subject *subject,
                                  struct error *error) {
    struct terminal terminal = terminal_of(out);
    return pool_candidates_print(&terminal, &subject->opened->profile, subject->names,
                                 &subject->request->options, error);
}

static bool print_annotated(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    return annotate_print(&terminal, &subject->opened->profile, subject->names,
                          &subject->request->options, subject->request->source, error);
}

// Of a recording there are totals; processes and cores do not come here.
static bool print_heap_totals(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    (void)error;
    memory_print_totals(&terminal, &subject->opened->profile, &subject->request->options,
                        !strcmp(subject->request->view->name, "pages"));
    return true;
}

// A recording does not have what is in blocks; processes and cores do not come here.
static bool print_no_contents(FILE *out, const struct view_subject *subject, struct error *error) {
    (void)out;
    return view_check_recording(subject->request->view, error);
}

bool view_check_recording(const struct view *view, struct error *error) {
    return !view || view->print != print_no_contents ||
           error_set(error,
                     "view %s needs a running process or a core dump, since a recording does not "
                     "have what is in blocks: while the program runs, cairn report --view %s PID",
                     view->name, view->name);
}

// clang-format off
// What a list of stacks goes by, and what groups of frames do.
#define LIST_OPTIONS "--by --blocks --top --depth --all-frames"
#define GROUP_OPTIONS "--by --blocks --top --threshold --min-bytes --all-frames"

const struct view views[] = {
    {"stacks", "stacks with their figures, the largest first", "peak",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_stacks,
     {"Which call stacks hold the memory?",
      LIST_OPTIONS, NULL, NULL}},
    {"tree", "calls from the program's start inwards, or --inverted", "peak",
     TREE_TOP, 0, tree_threshold, true, false, print_tree,
     {"Where does the memory go, from main inwards?",
      "--by --blocks --depth --threshold --min-bytes --all-frames --inverted --lines --print", NULL, NULL}},
    {"functions", "functions, what they hold themselves and with all they call", "peak",
     GROUPS_TOP, 0, 0, true, false, print_groups,
     {"Which functions allocate, themselves and with all that they call?",
      GROUP_OPTIONS, NULL, NULL}},
    {"lines", "the same by source line", "peak", GROUPS_TOP, 0, 0, true, false, print_groups,
     {"Which source lines allocate?",
      GROUP_OPTIONS, NULL, NULL}},
    {"files", "the same by source file", "peak", GROUPS_TOP, 0, 0, true, false, print_groups,
     {"Which source files allocate?",
      GROUP_OPTIONS, NULL, NULL}},
    {"directories", "the same by directory of source files", "peak", GROUPS_TOP, 0, 0, true, false,
     print_groups,
     {"Which parts of a source tree allocate?",
      GROUP_OPTIONS, NULL, NULL}},
    {"modules", "the same by library or program file", "peak",
     GROUPS_TOP, 0, 0, true, false, print_groups,
     {"Which libraries allocate?",
      GROUP_OPTIONS, NULL, NULL}},
    {"types", "containers and elements, by templates of stacks; of a PID or core, types", "peak",
     GROUPS_TOP, 0, 0, true, false, print_groups,
     {"Which containers and element types hold the memory?",
      "--by --blocks --top --threshold --min-bytes", NULL, NULL}},
    {"annotate", "a source file with figures beside its lines (--source FILE)", "peak",
     GROUPS_TOP, 0, 0, true, false, print_annotated,
     {"What does each line of this source file allocate?",
      "--by --blocks --source", NULL, NULL}},
    {"threads", "threads, and what they allocated", "peak",
     GROUPS_TOP, 0, 0, false, false, print_threads,
     {"Which thread allocated the memory, and which thread freed it?",
      "--by --blocks --top --group", NULL, NULL}},
    {"regions", "what was allocated in the regions that the program named", "peak",
     GROUPS_TOP, 0, 0, false, false, print_regions,
     {"What does each part of the program allocate?",
      "--by --top", "the program names regions: cairn/cairn.h", NULL}},
    {"contexts", "what was allocated by tenant, request, ...: labels that the program gave", "peak",
     GROUPS_TOP, 0, 0, false, false, print_contexts,
     {"Which tenant, request or endpoint holds the memory?",
      "--by --context --top", "the program enters contexts: cairn/cairn.h", NULL}},
    {"pools", "allocators of the program's own, as it named them", "peak",
     GROUPS_TOP, 0, 0, false, false, print_pools,
     {"What do the program's own allocators hold?",
      "--by --top", "the program reports pools: cairn/cairn.h",
      "all of them are in it"}},
    {"pool-candidates", "where a pool would spare malloc and free (cairn run --events)", "calls",
     STACKS_TOP, CANDIDATES_DEPTH, candidates_threshold, true, false, print_pool_candidates,
     {"Where would an arena, a slab or a buffer on the stack pay?",
      "--top --depth --threshold --all-frames --bytes", "cairn run --events",
      "an event log has calls of malloc alone"}},
    {"timeline", "the heap over time", "peak", 0, 0, 0, true, false, print_timeline,
     {"How did the heap change over time?",
      "--all-frames", NULL, NULL}},
    {"temporary", "stacks whose blocks live shortly: freed by the thread that made them",
     "short-lived", STACKS_TOP, STACKS_DEPTH, 0, false, false, print_temporary,
     {"Which blocks are freed soon after they are allocated?",
      "--by --top --depth --all-frames", "every block: not --sample, not an import",
      "it counts by threads, which free blocks of such heaps unnoted; --view ages"}},
    {"sizes", "stacks, and which sizes their blocks had", "calls",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_sizes,
     {"Which sizes do the blocks have?",
      "--by --top --depth --all-frames", NULL, NULL}},
    {"ages", "stacks, and how old their blocks became (cairn run --ages)", "calls",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_ages,
     {"How long do blocks live?",
      "--by --top --depth --short --all-frames", "cairn run --ages", NULL}},
    {"frees", "stacks, and which stacks freed their blocks (cairn run --free-stacks)", "allocated",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_frees,
     {"Which code frees these blocks?",
      LIST_OPTIONS, "cairn run --free-stacks",
      "a stack is taken where malloc's blocks are freed, and at no other free"}},
    {"growth", "stacks whose live bytes rise from snapshot to snapshot: leak suspects", "allocated",
     STACKS_TOP, STACKS_DEPTH, growth_threshold, true, false, print_growth,
     {"What grows without end?",
      "--top --depth --threshold --min-bytes --all-frames", NULL, NULL}},
    {"findings", "what costs more than it must, what a fix saves, and where to read how", "peak",
     0, 0, 0, true, false, print_findings,
     {"What is worth fixing first?",
      "--all-frames --bytes", NULL,
      "its rules are about malloc and what to do there"}},
    {"snapshots", "when it was kept what every stack held, and why: for --at, --between, --since",
     "peak", 0, 0, 0, false, false, print_snapshots,
     {"Which snapshots does the recording have?",
      "--top", NULL, NULL}},
    {"memory", "what resident memory consisted of, beside the heap", "peak",
     0, 0, 0, false, false, print_memory,
     {"What does resident memory consist of?",
      "--top", "cairn run or cairn attach, not the library alone",
      "resident memory is the process'"}},
    {"heap", "of a process (PID) or core: blocks by size, arenas, fragmentation", "exit",
     0, 0, 0, false, false, print_heap_totals,
     {"How is the heap of this process laid out now?",
      "--top", "a PID or core; of a recording, totals",
      "it reads the chunks of malloc"}},
    {"pages", "of a process (PID) or core: which stacks keep pages resident", "exit",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_heap_totals,
     {"Which stacks keep pages resident?",
      "--top --depth --all-frames", "a PID or core; of a recording, totals",
      "it reads the chunks of malloc"}},
    {"owners", "of a process (PID) or core: who keeps which blocks", "exit",
     OWNERS_TOP, OWNERS_DEPTH, owners_threshold, false, false, print_no_contents,
     {"Who keeps this memory, and what would go with it?",
      "--top --depth --threshold", "a PID or core",
      "it reads the chunks of malloc"}},
    {"containers", "of a process (PID) or core: how full vectors and tables are", "exit",
     CONTAINERS_TOP, 0, 0, false, false, print_no_contents,
     {"Which containers have room that nothing is in?",
      "--top", "a PID or core, with debug information",
      "it reads the chunks of malloc"}},
    {"waste", "of a process (PID) or core: never touched, zero, equal, unused", "exit",
     CONTAINERS_TOP, 0, 0, false, false, print_no_contents,
     {"What of this memory is of no use?",
      "--top", "a PID or core",
      "it reads the chunks of malloc"}},
    {"remedies", "of a process (PID) or core: what would give memory back, and how much", "exit",
     0, 0, 0, false, false, print_no_contents,
     {"What would make this process smaller?",
      "--no-stop --no-copy-limit", "a PID or core",
      "it reads the chunks of malloc"}},
    {"overruns", "blocks that were written past, and whose they were (cairn run --guard)", "peak",
     STACKS_TOP, STACKS_DEPTH, 0, false, false, print_overruns,
     {"Which blocks were written past their end or start?",
      "--top --depth --all-frames", "cairn run --guard",
      "guard bands lie around malloc's blocks"}},
    {"mappings", "what the program mapped itself, by its callers (cairn run --mmap)", "peak",
     STACKS_TOP, STACKS_DEPTH, 0, true, false, print_mappings,
     {"What does the program map itself, beside the heap?",
      "--depth --all-frames", "cairn run --mmap",
      "it has mappings, whoever made them"}},
    {"processes", "the processes of a run, all of them", "peak", 0, 0, 0, false, true, NULL,
     {"What did each process of the run hold?",
      "", "cairn run of several processes",
      "it has resident memory beside malloc's heap; -p NAME --heap chooses a process"}},
    {"leaks", "stacks with blocks that were never freed", "exit",
     STACKS_TOP, STACKS_DEPTH, 0, true, false, print_stacks,
     {"What was never freed?",
      LIST_OPTIONS " --suppressions --no-suppressions --baseline --error-exitcode", NULL, NULL}},
    {0},
};

const struct view_group view_groups[] = {
    {"What holds the memory?", "stacks tree functions lines files directories modules types annotate"},
    {"Whose is it?", "threads regions contexts pools processes"},
    {"What leaks, what grows?", "leaks growth snapshots timeline"},
    {"What costs time?", "temporary ages frees sizes pool-candidates"},
    {"What would help?", "findings remedies"},
    {"Why is RSS larger?", "memory mappings heap pages"},
    {"What is in the blocks?", "owners containers waste overruns"},
    {0},
};
// clang-format on

const struct view *view_find(const char *name) {
    for (const struct view *view = views; name && view->name; view++)
        if (!strcmp(view->name, name)) return view;
    return NULL;
}

bool view_is_of_memory(const struct view *view) {
    return view && view->print == print_heap_totals;
}

bool view_is_of_log(const struct view *view) {
    return view && view->print == print_pool_candidates;
}

bool view_is_of_mappings(const struct view *view) {
    return view && view->print == print_mappings;
}
