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
#include "tool/render/snapshots_screen.h"
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

static bool answer_groups(const struct view_subject *subject, struct answer *answer,
                          struct error *error) {
    return groups_answer(answer, grouping_find(subject->request->view->name),
                         &subject->opened->profile, subject->names, &subject->request->options,
                         error);
}

static bool answer_threads(const struct view_subject *subject, struct answer *answer,
                           struct error *error) {
    return threads_answer(answer, &subject->opened->profile, &subject->request->options,
                          subject->request->is_grouped, error);
}

// Who freed whose blocks stands below the threads.
static bool print_threads(FILE *out, const struct view_subject *subject, struct error *error) {
    struct terminal terminal = terminal_of(out);
    struct answer answer;
    if (!answer_threads(subject, &answer, error)) return false;
    bool is_ok = answer_print_text(&terminal, &answer, error);
    answer_close(&answer);
    return is_ok &&
           freed_by_print(&terminal, &subject->opened->profile, &subject->request->options, error);
}

static bool answer_regions(const struct view_subject *subject, struct answer *answer,
                           struct error *error) {
    return regions_answer(answer, &subject->opened->profile, &subject->request->options, error);
}

static bool answer_contexts(const struct view_subject *subject, struct answer *answer,
                            struct error *error) {
    return contexts_answer(answer, &subject->opened->profile, &subject->request->options,
                           subject->request->context_key, error);
}

static bool answer_pools(const struct view_subject *subject, struct answer *answer,
                         struct error *error) {
    return pools_answer(answer, &subject->opened->profile, &subject->request->options, error);
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

static bool answer_snapshots(const struct view_subject *subject, struct answer *answer,
                             struct error *error) {
    return snapshots_answer(answer, &subject->opened->profile, &subject->request->options, error);
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
                        subject->request->view->memory == MEMORY_PAGES);
    return true;
}

// A recording does not have what is in blocks; processes and cores do not come here.
static bool print_no_contents(FILE *out, const struct view_subject *subject, struct error *error) {
    (void)out;
    return view_check_recording(subject->request->view, error);
}

bool view_check_recording(const struct view *view, struct error *error) {
    return !view_has(view, VIEW_NEEDS_MEMORY) ||
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
    {.name = "stacks",
     .help = "stacks with their figures, the largest first",
     .measure = "peak", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .needs = VIEW_LEADS_TO_TREE, .compared = COMPARED_STACKS, .print = print_stacks,
     .reference = {.question = "Which call stacks hold the memory?",
                   .options = LIST_OPTIONS}},
    {.name = "tree",
     .help = "calls from the program's start inwards, or --inverted",
     .measure = "peak", .top = TREE_TOP, .threshold = tree_threshold,
     .needs = VIEW_NEEDS_NAMES | VIEW_IS_TREE, .compared = COMPARED_STACKS, .print = print_tree,
     .reference = {.question = "Where does the memory go, from main inwards?",
                   .options = "--by --blocks --depth --threshold --min-bytes --all-frames "
                              "--inverted --lines --print"}},
    {.name = "functions",
     .help = "functions, what they hold themselves and with all they call",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES, .compared = COMPARED_GROUPS, .answer = answer_groups,
     .reference = {.question = "Which functions allocate, themselves and with all that they call?",
                   .options = GROUP_OPTIONS}},
    {.name = "lines",
     .help = "the same by source line",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES, .compared = COMPARED_LINES, .answer = answer_groups,
     .reference = {.question = "Which source lines allocate?",
                   .options = GROUP_OPTIONS}},
    {.name = "files",
     .help = "the same by source file",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES, .compared = COMPARED_GROUPS, .answer = answer_groups,
     .reference = {.question = "Which source files allocate?",
                   .options = GROUP_OPTIONS}},
    {.name = "directories",
     .help = "the same by directory of source files",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES, .compared = COMPARED_GROUPS, .answer = answer_groups,
     .reference = {.question = "Which parts of a source tree allocate?",
                   .options = GROUP_OPTIONS}},
    {.name = "modules",
     .help = "the same by library or program file",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES, .compared = COMPARED_GROUPS, .answer = answer_groups,
     .reference = {.question = "Which libraries allocate?",
                   .options = GROUP_OPTIONS}},
    {.name = "types",
     .help = "containers and elements, by templates of stacks; of a PID or core, types",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES, .memory = MEMORY_TYPES, .compared = COMPARED_GROUPS,
     .answer = answer_groups,
     .reference = {.question = "Which containers and element types hold the memory?",
                   .options = "--by --blocks --top --threshold --min-bytes"}},
    {.name = "annotate",
     .help = "a source file with figures beside its lines (--source FILE)",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_SOURCE, .compared = COMPARED_LINES,
     .print = print_annotated,
     .reference = {.question = "What does each line of this source file allocate?",
                   .options = "--by --blocks --source"}},
    {.name = "threads",
     .help = "threads, and what they allocated",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_NEEDS_FREES, .compared = COMPARED_THREADS, .answer = answer_threads, .print = print_threads,
     .reference = {.question = "Which thread allocated the memory, and which thread freed it?",
                   .options = "--by --blocks --top --group"}},
    {.name = "regions",
     .help = "what was allocated in the regions that the program named",
     .measure = "peak", .top = GROUPS_TOP,
     .compared = COMPARED_REGIONS, .answer = answer_regions,
     .reference = {.question = "What does each part of the program allocate?",
                   .options = "--by --top",
                   .recorded_with = "the program names regions: cairn/cairn.h"}},
    {.name = "contexts",
     .help = "what was allocated by tenant, request, ...: labels that the program gave",
     .measure = "peak", .top = GROUPS_TOP,
     .needs = VIEW_TAKES_KEY, .answer = answer_contexts,
     .reference = {.question = "Which tenant, request or endpoint holds the memory?",
                   .options = "--by --context --top",
                   .recorded_with = "the program enters contexts: cairn/cairn.h"}},
    {.name = "pools",
     .help = "allocators of the program's own, as it named them",
     .measure = "peak", .top = GROUPS_TOP,
     .answer = answer_pools,
     .reference = {.question = "What do the program's own allocators hold?",
                   .options = "--by --top",
                   .recorded_with = "the program reports pools: cairn/cairn.h",
                   .not_of_heaps = "all of them are in it"}},
    {.name = "pool-candidates",
     .help = "where a pool would spare malloc and free (cairn run --events)",
     .measure = "calls", .top = STACKS_TOP, .depth = CANDIDATES_DEPTH,
     .threshold = candidates_threshold,
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_LOG, .run = RUN_ONE, .print = print_pool_candidates,
     .reference = {.question = "Where would an arena, a slab or a buffer on the stack pay?",
                   .options = "--top --depth --threshold --all-frames --bytes",
                   .recorded_with = "cairn run --events",
                   .not_of_heaps = "an event log has calls of malloc alone"}},
    {.name = "timeline",
     .help = "the heap over time",
     .measure = "peak",
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_FREES, .run = RUN_TIMELINES,
     .print = print_timeline,
     .reference = {.question = "How did the heap change over time?",
                   .options = "--all-frames"}},
    {.name = "temporary",
     .help = "stacks whose blocks live shortly: freed by the thread that made them",
     .measure = "short-lived", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .needs = VIEW_NEEDS_FREES, .print = print_temporary,
     .reference = {.question = "Which blocks are freed soon after they are allocated?",
                   .options = "--by --top --depth --all-frames",
                   .recorded_with = "every block: not --sample, not an import",
                   .not_of_heaps = "it counts by threads, which free blocks of such heaps "
                                   "unnoted; --view ages"}},
    {.name = "sizes",
     .help = "stacks, and which sizes their blocks had",
     .measure = "calls", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .print = print_sizes,
     .reference = {.question = "Which sizes do the blocks have?",
                   .options = "--by --top --depth --all-frames"}},
    {.name = "ages",
     .help = "stacks, and how old their blocks became (cairn run --ages)",
     .measure = "calls", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .needs = VIEW_NEEDS_FREES | VIEW_TAKES_LOG, .print = print_ages,
     .reference = {.question = "How long do blocks live?",
                   .options = "--by --top --depth --short --all-frames",
                   .recorded_with = "cairn run --ages"}},
    {.name = "frees",
     .help = "stacks, and which stacks freed their blocks (cairn run --free-stacks)",
     .measure = "allocated", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .print = print_frees,
     .reference = {.question = "Which code frees these blocks?",
                   .options = LIST_OPTIONS,
                   .recorded_with = "cairn run --free-stacks",
                   .not_of_heaps = "a stack is taken where malloc's blocks are freed, and at no "
                                   "other free"}},
    {.name = "growth",
     .help = "stacks whose live bytes rise from snapshot to snapshot: leak suspects",
     .measure = "allocated", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .threshold = growth_threshold,
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_FREES, .compared = COMPARED_STACKS,
     .print = print_growth,
     .reference = {.question = "What grows without end?",
                   .options = "--top --depth --threshold --min-bytes --all-frames"}},
    {.name = "findings",
     .help = "what costs more than it must, what a fix saves, and where to read how",
     .measure = "peak",
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_FREES, .run = RUN_ONE, .print = print_findings,
     .reference = {.question = "What is worth fixing first?",
                   .options = "--all-frames --bytes",
                   .not_of_heaps = "its rules are about malloc and what to do there"}},
    {.name = "snapshots",
     .help = "when it was kept what every stack held, and why: for --at, --between, --since",
     .measure = "peak",
     .needs = VIEW_NEEDS_FREES, .answer = answer_snapshots,
     .reference = {.question = "Which snapshots does the recording have?",
                   .options = "--top"}},
    {.name = "memory",
     .help = "what resident memory consisted of, beside the heap",
     .measure = "peak",
     .print = print_memory,
     .reference = {.question = "What does resident memory consist of?",
                   .options = "--top",
                   .recorded_with = "cairn run or cairn attach, not the library alone",
                   .not_of_heaps = "resident memory is the process'"}},
    {.name = "heap",
     .help = "of a process (PID) or core: blocks by size, arenas, fragmentation",
     .measure = "exit",
     .needs = VIEW_TAKES_NO_FILTER, .memory = MEMORY_HEAP, .print = print_heap_totals,
     .reference = {.question = "How is the heap of this process laid out now?",
                   .options = "--top",
                   .recorded_with = "a PID or core; of a recording, totals",
                   .not_of_heaps = "it reads the chunks of malloc"}},
    {.name = "pages",
     .help = "of a process (PID) or core: which stacks keep pages resident",
     .measure = "exit", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .needs = VIEW_TAKES_NO_FILTER, .memory = MEMORY_PAGES, .print = print_heap_totals,
     .reference = {.question = "Which stacks keep pages resident?",
                   .options = "--top --depth --all-frames",
                   .recorded_with = "a PID or core; of a recording, totals",
                   .not_of_heaps = "it reads the chunks of malloc"}},
    {.name = "owners",
     .help = "of a process (PID) or core: who keeps which blocks",
     .measure = "exit", .top = OWNERS_TOP, .depth = OWNERS_DEPTH, .threshold = owners_threshold,
     .needs = VIEW_NEEDS_MEMORY, .memory = MEMORY_OWNERS, .print = print_no_contents,
     .reference = {.question = "Who keeps this memory, and what would go with it?",
                   .options = "--top --depth --threshold",
                   .recorded_with = "a PID or core",
                   .not_of_heaps = "it reads the chunks of malloc"}},
    {.name = "containers",
     .help = "of a process (PID) or core: how full vectors and tables are",
     .measure = "exit", .top = CONTAINERS_TOP,
     .needs = VIEW_NEEDS_MEMORY, .memory = MEMORY_CONTAINERS, .print = print_no_contents,
     .reference = {.question = "Which containers have room that nothing is in?",
                   .options = "--top",
                   .recorded_with = "a PID or core, with debug information",
                   .not_of_heaps = "it reads the chunks of malloc"}},
    {.name = "waste",
     .help = "of a process (PID) or core: never touched, zero, equal, unused",
     .measure = "exit", .top = CONTAINERS_TOP,
     .needs = VIEW_NEEDS_MEMORY, .memory = MEMORY_WASTE, .print = print_no_contents,
     .reference = {.question = "What of this memory is of no use?",
                   .options = "--top",
                   .recorded_with = "a PID or core",
                   .not_of_heaps = "it reads the chunks of malloc"}},
    {.name = "remedies",
     .help = "of a process (PID) or core: what would give memory back, and how much",
     .measure = "exit",
     .needs = VIEW_NEEDS_MEMORY, .memory = MEMORY_REMEDIES, .print = print_no_contents,
     .reference = {.question = "What would make this process smaller?",
                   .options = "--no-stop --no-copy-limit",
                   .recorded_with = "a PID or core",
                   .not_of_heaps = "it reads the chunks of malloc"}},
    {.name = "overruns",
     .help = "blocks that were written past, and whose they were (cairn run --guard)",
     .measure = "peak", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .run = RUN_OVERRUNS, .print = print_overruns,
     .reference = {.question = "Which blocks were written past their end or start?",
                   .options = "--top --depth --all-frames",
                   .recorded_with = "cairn run --guard",
                   .not_of_heaps = "guard bands lie around malloc's blocks"}},
    {.name = "mappings",
     .help = "what the program mapped itself, by its callers (cairn run --mmap)",
     .measure = "peak", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_MAPPINGS, .print = print_mappings,
     .reference = {.question = "What does the program map itself, beside the heap?",
                   .options = "--depth --all-frames",
                   .recorded_with = "cairn run --mmap",
                   .not_of_heaps = "it has mappings, whoever made them"}},
    {.name = "processes",
     .help = "the processes of a run, all of them",
     .measure = "peak",
     .run = RUN_TABLE,
     .reference = {.question = "What did each process of the run hold?",
                   .options = "",
                   .recorded_with = "cairn run of several processes",
                   .not_of_heaps = "it has resident memory beside malloc's heap; -p NAME --heap "
                                   "chooses a process"}},
    {.name = "leaks",
     .help = "stacks with blocks that were never freed",
     .measure = "exit", .top = STACKS_TOP, .depth = STACKS_DEPTH,
     .needs = VIEW_NEEDS_NAMES | VIEW_NEEDS_FREES | VIEW_NEEDS_LEAKS,
     .compared = COMPARED_STACKS, .print = print_stacks,
     .reference = {.question = "What was never freed?",
                   .options = LIST_OPTIONS " --suppressions --no-suppressions --baseline "
                                           "--error-exitcode"}},
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

bool view_print(FILE *out, const struct view_subject *subject, struct error *error) {
    const struct request *request = subject->request;
    const struct view *view = request->view ? request->view : views;
    struct terminal terminal = terminal_of(out);
    struct answer answer = {0};
    if (!request->form && view->print) return view->print(out, subject, error);
    if (!view->answer(subject, &answer, error)) return false;
    answer.view = view->name;
    bool is_ok = request->form ? request->form->print(out, &answer, error)
                               : answer_print_text(&terminal, &answer, error);
    answer_close(&answer);
    return is_ok;
}

bool view_has(const struct view *view, unsigned needs) {
    return view && (view->needs & needs);
}
