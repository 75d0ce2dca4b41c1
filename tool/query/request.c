// SPDX-License-Identifier: Apache-2.0
// From the words of a command line to what is to be shown, and the first steps to it: narrowing the
// profile, and finding names for what is left.
#include <string.h>

#include "tool/base/near.h"
#include "tool/base/units.h"
#include "tool/model/all_heaps.h"
#include "tool/model/heaps.h"
#include "tool/model/mapped.h"
#include "tool/query/arguments.h"
#include "tool/query/heap_views.h"
#include "tool/query/leaks.h"
#include "tool/query/log_views.h"
#include "tool/query/views.h"

static bool read_view(const struct command_args *args, struct request *request,
                      struct error *error) {
    const char *usual = args_has(args, OPTION_INVERTED) ? "tree" : NULL;
    const char *name = args_text(args, OPTION_VIEW, args->command->view);
    if (!name) name = args_has(args, OPTION_SOURCE) ? "annotate" : usual;
    if (!name) return true;
    request->view = view_find(name);
    if (request->view) return true;
    struct near near;
    near_start(&near, name, strlen(name));
    for (const struct view *view = views; view->name; view++) near_try(&near, view->name);
    char question[NEAR_QUESTION_BYTES];
    near_ask(&near, question, sizeof question);
    return error_set(error, "%s: unknown view \"%s\"%s; cairn help views lists them",
                     args->command->name, name, question);
}

static bool refuse_form(const char *command, const char *name, struct error *error) {
    char forms[ANSWER_FORMS_BYTES], question[NEAR_QUESTION_BYTES];
    struct near near;
    near_start(&near, name, strlen(name));
    for (const struct answer_form *form = answer_forms; form->name; form++)
        near_try(&near, form->name);
    near_ask(&near, question, sizeof question);
    answer_forms_text(forms);
    return error_set(error, "%s: unknown form \"%s\"%s; --format takes %s", command, name, question,
                     forms);
}

// A view that is asked for as JSON is an answer, where it has rows; what is asked for without a
// view is the whole.
static bool read_form(const struct command_args *args, struct request *request,
                      struct error *error) {
    const char *usual = request->is_json && args_has(args, OPTION_VIEW) ? "json" : NULL;
    const char *name = args_text(args, OPTION_FORMAT, usual);
    const struct view *view = request->view;
    bool has_forms = args->command->has_views && option_row_of(args->command, OPTION_FORMAT);
    if (!name || !has_forms) return true;
    request->is_json |= !strcmp(name, "json");
    if (request->is_json && !args_has(args, OPTION_VIEW)) return true;
    request->form = answer_form_find(name);
    if (!request->form) return refuse_form(args->command->name, name, error);
    if (!view) view = request->view = views;
    bool is_fit = !request->form->is_of_calls || view_has(view, VIEW_IS_TREE);
    return is_fit ||
           error_set(error,
                     "%s: view %s has no rows for --format %s; calls are the form of --view tree",
                     args->command->name, view->name, name);
}

static bool check_options(const struct command_args *args, const struct request *request,
                          struct error *error) {
    if (view_has(request->view, VIEW_TAKES_NO_FILTER))
        return options_check_under(args, OF_HEAP_NOW, error);
    return !view_has(request->view, VIEW_NEEDS_MAPPINGS) ||
           options_check_under(args, OF_MAPPINGS, error);
}

static bool read_lifespan(const struct command_args *args, struct request *request,
                          struct error *error) {
    const char *text = args_text(args, OPTION_LIFESPAN, NULL);
    if (!text)
        request->filter.lifespan = LIFESPAN_ANY;
    else if (!strcmp(text, "living"))
        request->filter.lifespan = LIFESPAN_LIVING;
    else if (!strcmp(text, "gone"))
        request->filter.lifespan = LIFESPAN_GONE;
    else if (!strncmp(text, "short:", strlen("short:")) &&
             units_duration_parse(text + strlen("short:"), &request->filter.short_ns))
        request->filter.lifespan = LIFESPAN_SHORT;
    else
        return error_set(error,
                         "%s: --lifespan is living, gone or short:TIME such as short:10ms, "
                         "not \"%s\"",
                         args->command->name, text);
    return true;
}

// Blocks of a lifespan are known at the end and over all time, not at the peak. An alias (leaks)
// has one measure for all views.
static const char *usual_measure(const struct command_args *args, const struct request *request) {
    if (request->filter.lifespan == LIFESPAN_LIVING) return "exit";
    if (request->filter.lifespan == LIFESPAN_GONE) return "allocated";
    if (request->filter.lifespan == LIFESPAN_SHORT) return "calls";
    const struct view *alias = view_find(args->command->view), *view = request->view;
    return alias ? alias->measure : view ? view->measure : "peak";
}

bool request_refuse_measure(const char *command, const char *name, struct error *error) {
    char question[NEAR_QUESTION_BYTES];
    near_ask_of(name, MEASURE_NAMES, question);
    return error_set(error, "%s: cannot rank by \"%s\"%s, but by " MEASURE_NAMES, command, name,
                     question);
}

static bool read_measure(const struct command_args *args, struct request *request,
                         struct error *error) {
    enum measure *by = &request->options.by;
    enum lifespan lifespan = request->filter.lifespan;
    const char *text = args_text(args, OPTION_BY, usual_measure(args, request));
    if (!measure_parse(text, by)) return request_refuse_measure(args->command->name, text, error);
    if (lifespan != LIFESPAN_ANY && *by == MEASURE_PEAK)
        return error_set(error,
                         "%s: what was at the peak is not known by lifespan: --by exit, "
                         "allocated or calls",
                         args->command->name);
    bool is_gone = lifespan == LIFESPAN_GONE || lifespan == LIFESPAN_SHORT;
    if (is_gone && *by == MEASURE_EXIT)
        return error_set(error, "%s: blocks that are gone hold nothing at the end",
                         args->command->name);
    if (request->snapshot.kind) *by = MEASURE_AT;
    if (args_has(args, OPTION_BLOCKS)) *by = measure_about(*by)->in_blocks;
    return true;
}

static bool read_limits(const struct command_args *args, struct request *request,
                        struct error *error) {
    enum { PLACES_TOP = 10, PLACES_DEPTH = 16 };
    const struct view *view = request->view;
    struct view_options *options = &request->options;
    uint64_t top, depth, min_bytes;
    const struct answer_form *form = request->form;
    bool is_all = form ? !form->is_for_people : request->is_json;
    is_all |= args->command->has_no_usual_limits;
    uint64_t usual_top = is_all ? 0 : view ? view->top : PLACES_TOP;
    uint64_t usual_depth = is_all ? 0 : view ? view->depth : PLACES_DEPTH;
    double usual_threshold = view && !is_all ? view->threshold : 0;
    if (!args_number(args, OPTION_TOP, usual_top, SIZE_MAX, &top, error) ||
        !args_number(args, OPTION_DEPTH, usual_depth, SIZE_MAX, &depth, error) ||
        !args_percent(args, OPTION_THRESHOLD, usual_threshold, &options->threshold, error) ||
        !args_size(args, OPTION_MIN_BYTES, &min_bytes, error))
        return false;
    options->top = top;
    options->depth = depth;
    options->min_bytes = min_bytes < INT64_MAX ? (int64_t)min_bytes : INT64_MAX;
    return !min_bytes || measure_about(options->by)->is_bytes ||
           error_set(error,
                     "%s: --min-bytes needs a measure of bytes, not %s; --threshold is a "
                     "share of any measure",
                     args->command->name, measure_name(options->by));
}

// A key alone says what the view of contexts is by; elsewhere a label narrows.
static bool check_context(const struct command_args *args, const struct request *request,
                          struct error *error) {
    const char *key = request->context_key;
    if (!key || (view_has(request->view, VIEW_TAKES_KEY) && *key)) return true;
    return error_set(
        error, "%s: --context needs KEY=VALUE, not \"%s\"; a key alone is for --view contexts",
        args->command->name, key);
}

// What there is of malloc's heap alone is not shown under another one's name.
static bool check_heap(const struct command_args *args, const struct request *request,
                       struct error *error) {
    const struct view *view = request->view;
    const char *reason = request->heap && view ? view->reference.not_of_heaps : NULL;
    return !reason || error_set(error, "%s: --view %s is not of one heap by name: %s",
                                args->command->name, view->name, reason);
}

bool request_read(const struct command_args *args, struct request *request, struct error *error) {
    *request = (struct request){.is_json = args_has(args, OPTION_JSON),
                                .is_by_chosen = args_has(args, OPTION_BY),
                                .is_printed = args_has(args, OPTION_PRINT),
                                .is_grouped = args_has(args, OPTION_GROUP),
                                .source = args_text(args, OPTION_SOURCE, NULL)};
    const char *context = args_text(args, OPTION_CONTEXT, NULL);
    bool is_label = context && strchr(context, '=');
    request->heap = args_text(args, OPTION_HEAP, NULL);
    request->context_key = is_label ? NULL : context;
    request->filter = (struct filter_request){.focus = args_text(args, OPTION_FOCUS, NULL),
                                              .ignore = args_text(args, OPTION_IGNORE, NULL),
                                              .hide = args_text(args, OPTION_HIDE, NULL),
                                              .module = args_text(args, OPTION_MODULE, NULL),
                                              .thread = args_text(args, OPTION_THREAD, NULL),
                                              .region = args_text(args, OPTION_REGION, NULL),
                                              .context = is_label ? context : NULL};
    request->options.has_lines = args_has(args, OPTION_LINES);
    request->options.is_inverted = args_has(args, OPTION_INVERTED);
    request->options.has_all_frames = args_has(args, OPTION_ALL_FRAMES);
    request->options.is_plain_number = args_has(args, OPTION_BYTES);
    return read_view(args, request, error) && read_form(args, request, error) &&
           check_heap(args, request, error) && check_context(args, request, error) &&
           check_options(args, request, error) && read_lifespan(args, request, error) &&
           snapshot_options_read(args, &request->snapshot, error) &&
           read_measure(args, request, error) && read_limits(args, request, error);
}

// Names for stacks: of all, or the first `top` by the measure.
static bool resolve(struct opened *opened, enum measure by, size_t top, struct error *error) {
    const struct profile *profile = &opened->profile;
    bool are_all = !top || top >= profile->stack_count;
    size_t count = profile->stack_count;
    uint32_t *ranking = are_all ? NULL : measure_rank_all_most(by, profile, top, &count);
    if (!are_all && !ranking) return error_set(error, "no memory for the list of stacks");
    for (size_t i = 0; i < count; i++)
        names_want_stack(opened->names, profile->stacks[ranking ? ranking[i] : i].node, 0);
    free(ranking);
    names_want_overruns(opened->names);
    for (size_t i = 0; i < profile->freed_at.count; i++)
        names_want_stack(opened->names, profile->freed_at.items[i].node, 0);
    for (size_t i = 0; i < profile->mapped.stack_count; i++)
        names_want_stack(opened->names, profile->mapped.stacks[i].node, 0);
    return names_resolve(opened->names, error);
}

static bool show_mapped(struct profile *profile, struct error *error) {
    if (!profile->mapped.is_recorded)
        return error_set(error, "what the program mapped was not recorded: cairn run --mmap");
    return profile_show_mapped(profile) || error_set(error, "no memory for the list of stacks");
}

// What malloc takes beyond what was asked for, and who frees, is known of its blocks alone.
static bool show_heap(const struct request *request, struct profile *profile, struct error *error) {
    enum measure by = request->options.by;
    bool is_known = by == MEASURE_PEAK || by == MEASURE_PEAK_BLOCKS || by == MEASURE_EXIT ||
                    by == MEASURE_EXIT_BLOCKS || by == MEASURE_ALLOCATED || by == MEASURE_CALLS ||
                    request->snapshot.kind;
    if (!is_known)
        return error_set(error, "--heap %s: it is known by peak, exit, allocated and calls, not %s",
                         request->heap, measure_name(by));
    if (!request->is_of_all_heaps) return profile_show_heap(profile, request->heap, error);
    return profile_show_all_heaps(profile, error) &&
           (profile->heap_names ||
            error_set(error, "--heap '': no allocator by name was recorded (--wrap)"));
}

static bool needs_frees(const struct request *request) {
    return request->leaks || request->filter.lifespan != LIFESPAN_ANY ||
           view_has(request->view, VIEW_NEEDS_FREES);
}

bool request_knows_calls(const struct profile *profile, enum measure by, struct error *error) {
    return profile_has_calls(profile) || measure_is_known(by, profile) ||
           error_set(error, "the imported file does not say what was allocated but for what was "
                            "live: --by peak and --by exit");
}

bool request_settle(struct request *request, const struct profile *profile, struct error *error) {
    enum measure *by = &request->options.by;
    if (request->is_by_chosen && !request_knows_calls(profile, *by, error)) return false;
    if (profile_has_frees(profile)) return true;
    bool is_known = measure_is_known(*by, profile);
    if (needs_frees(request) || (!is_known && request->is_by_chosen))
        return error_set(error, "the imported file does not say what was freed: there are no "
                                "live, peak or leak figures, but --by allocated and --by calls");
    if (is_known) return true;
    *by = measure_about(*by)->is_bytes ? MEASURE_ALLOCATED : MEASURE_CALLS;
    return true;
}

bool request_narrow(const void *context, struct profile *profile, struct error *error) {
    const struct narrowing *narrowing = context;
    const struct cairn_header *header = &profile->recording->header;
    bool is_replaced = header->stop_reason == CAIRN_STOP_EXEC;
    // what a program held when it became another one is no leak of anybody's
    if (narrowing->request->leaks && is_replaced) profile_forget_exit(profile);
    bool is_of_mappings = view_has(narrowing->request->view, VIEW_NEEDS_MAPPINGS);
    if (is_of_mappings && !request_is_whole(narrowing->request) && !show_mapped(profile, error))
        return false;
    if (narrowing->request->heap && !show_heap(narrowing->request, profile, error)) return false;
    if (!filter_threads(narrowing->filter, profile, error)) return false;
    if (profile->heap && !profile_sum_heap_threads(profile))
        return error_set(error, "no memory for the list of threads");
    if (narrowing->request->is_unreachable && !is_replaced) profile_keep_lost(profile);
    return true;
}

// Of a recording, or of the sum of several.
static bool check_reachability(const struct profile *profile, struct error *error) {
    const struct reachability *reachability = &profile->reachability;
    if (reachability->known_count) return true;
    if (!reachability->unknown_count)
        return error_set(error, "what can be reached was not looked at when it was recorded: cairn "
                                "run --unreachable, or cairn leaks --unreachable PID or CORE");
    return error_set(error, "reachability not known: %s", reachability->sums.reason);
}

static bool find_pools(const struct request *request, struct opened *opened,
                       const struct frame_names *names, struct error *error) {
    struct error unused;
    bool is_missing = request->is_of_run && !log_views_find(opened, &unused);
    return is_missing || log_views_find_pools(opened, names, error);
}

bool request_apply(const struct request *request, struct filter *filter, struct opened *opened,
                   const struct frame_names **names, struct frame_names *own_names,
                   struct error *error) {
    const struct view *view = request->view ? request->view : views;
    bool needs_all =
        filter_needs_names(filter) || view_has(view, VIEW_NEEDS_NAMES) || request->leaks;
    enum measure by = request->options.by;
    if (request->is_unreachable && !check_reachability(&opened->profile, error)) return false;
    if (!filter_found_threads(filter, &opened->profile, error)) return false;
    if (!snapshot_options_apply(&request->snapshot, opened, error)) return false;
    if (view_has(view, VIEW_IS_OF_STACKS)) names_need_all(opened->names);
    if (!resolve(opened, by, needs_all ? 0 : request->options.top, error)) return false;
    *own_names = names_frames(opened->names);
    if (!filter_stacks(filter, &opened->profile, own_names, by, error)) return false;
    *names = filter_names(filter, &opened->profile, own_names);
    if (!*names) return error_set(error, "no memory for a filter");
    if (view_has(view, VIEW_NEEDS_LOG) && !find_pools(request, opened, *names, error)) return false;
    return !request->leaks || leaks_apply(request->leaks, request, opened, *names, error);
}
