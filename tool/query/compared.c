// SPDX-License-Identifier: Apache-2.0
#include "tool/query/compared.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/query/depth.h"
#include "tool/query/merged.h"
#include "tool/query/name_hints.h"
#include "tool/query/subject.h"
#include "tool/render/claims_summary.h"
#include "tool/render/trust.h"

bool compared_list_read(struct compared_list *list, const char *word, struct error *error) {
    *list = (struct compared_list){.text = strdup(word)};
    if (!list->text) return error_set(error, "no memory for a list of recordings");
    bool is_one = !access(word, F_OK);
    for (char *at = list->text; at;) {
        char *comma = is_one ? NULL : strchr(at, ',');
        if (comma) *comma = 0;
        if (!*at) return error_set(error, "\"%s\": a name is missing beside a comma", word);
        if (list->count == COMPARED_MAX)
            return error_set(error, "more than %d recordings on a side", COMPARED_MAX);
        list->snapshots[list->count] = subject_cut_snapshot(at);
        list->names[list->count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

void compared_list_free(struct compared_list *list) {
    free(list->text);
    *list = (struct compared_list){0};
}

static int64_t clamp(uint64_t value) {
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

static struct diff_estimate estimate_of(enum measure measure, const struct profile *profile) {
    return diff_estimate_of(measure_total(measure, profile));
}

// Notes of which moment what was left is.
static void note_left(struct compared *compared, const struct profile *profile) {
    const char *word = claim_left_word(profile);
    bool is_other = compared->left_word && strcmp(compared->left_word, word) != 0;
    compared->left_word = is_other ? "at the end" : word;
}

static void note_totals(struct compared *compared, size_t index, const struct opened *opened) {
    const struct profile *profile = &opened->profile;
    bool is_second = index >= compared->diff.first_count;
    compared->totals.peak[index] = measured_shown(measure_total(MEASURE_PEAK, profile));
    compared->totals.peak_ns[index] = clamp(profile->peak.at_ns);
    compared->totals.run_ns[index] = clamp(profile->recording->header.end_ns);
    compared->totals.exit[index] = measured_shown(measure_total(MEASURE_EXIT, profile));
    compared->totals.allocated[index] = clamp(profile->totals.allocated_bytes);
    compared->totals.calls[index] = clamp(profile->totals.allocations);
    compared->totals.at[index] = measured_shown(measure_total(MEASURE_AT, profile));
    compared->totals.peak_estimates[index] = estimate_of(MEASURE_PEAK, profile);
    compared->totals.exit_estimates[index] = estimate_of(MEASURE_EXIT, profile);
    compared->totals.at_estimates[index] = estimate_of(MEASURE_AT, profile);
    compared->sampled_count += profile->sampling.is_on;
    struct cairn_waste waste;
    if (recording_waste(profile->recording, &waste)) {
        compared->totals.wasted[index] =
            clamp(waste.zero_bytes + waste.duplicate_bytes + waste.tail_bytes + waste.slack_bytes);
        compared->waste_count++;
    }
    compared->owners_count += recording_is_of_owners(profile->recording);
    compared->lacks_frees |= !profile_has_frees(profile);
    note_left(compared, profile);
    program_name(profile, compared->program[is_second], sizeof compared->program[is_second]);
    compared->is_inexact = compared->is_inexact || !recording_is_whole(profile->recording);
}

static bool add_rows(struct compared *compared, size_t index, const struct profile *profile,
                     const struct frame_names *names, struct error *error) {
    const struct view_options *options = &compared->request->options;
    struct diff *diff = &compared->diff;
    switch (compared->kind) {
    case COMPARED_STACKS:
        return diff_add_stacks(diff, index, profile, names, options, error);
    case COMPARED_GROUPS:
        return diff_add_groups(diff, index, compared->grouping, profile, names, options, error);
    case COMPARED_LINES:
        return diff_add_lines(diff, index, profile, names, options, error);
    case COMPARED_THREADS:
        return diff_add_threads(diff, index, profile, options->by, error);
    case COMPARED_REGIONS:
        return diff_add_regions(diff, index, profile, options->by, error);
    default:
        return true;
    }
}

static bool add_opened(struct compared *compared, size_t index, struct opened *opened,
                       struct error *error) {
    const struct profile *profile = &opened->profile;
    const struct frame_names *names;
    struct frame_names own_names;
    // every name, whatever the list shows
    for (size_t i = 0; i < profile->stack_count; i++)
        names_want_stack(opened->names, profile->stacks[i].node, 0);
    if (!profile_has_frees(profile) && !measure_is_known(compared->request->options.by, profile))
        return error_set(error, "the imported file does not say what was freed: --by allocated or "
                                "calls");
    if (!request_knows_calls(profile, compared->request->options.by, error)) return false;
    if (!request_apply(&compared->own_request, compared->filter, opened, &names, &own_names, error))
        return false;
    note_totals(compared, index, opened);
    char *lost = compared->lost_names[index >= compared->diff.first_count];
    if (!*lost) name_hints_lost(opened, lost, LOST_BYTES);
    if (profile->sampling.is_on &&
        !diff_set_sampled(&compared->diff, index, profile->sampling.rate_most_bytes))
        return error_set(error, "no memory for the comparison");
    return add_rows(compared, index, profile, names, error);
}

static bool print_view(struct compared *compared, size_t index, struct opened *opened,
                       struct error *error) {
    const struct frame_names *names;
    struct frame_names own_names;
    (void)index;
    if (!request_apply(&compared->own_request, compared->filter, opened, &names, &own_names, error))
        return false;
    const struct view_subject subject = {
        .opened = opened, .names = names, .request = &compared->own_request};
    return view_print(stdout, &subject, error);
}

typedef bool visit_fn(struct compared *compared, size_t index, struct opened *opened,
                      struct error *error);

static bool open_and_visit(struct compared *compared, size_t index, const char *name,
                           visit_fn *visit, struct error *error) {
    struct opened opened;
    char *words[] = {(char *)name, NULL};
    const struct narrowing narrowing = {compared->request, compared->filter};
    const struct opening opening = {.words = words,
                                    .count = 1,
                                    .process = compared->process,
                                    .narrow = request_narrow,
                                    .context = &narrowing};
    if (!opening_open(&opening, &opened, error)) return false;
    bool is_ok = visit(compared, index, &opened, error);
    opened_close(&opened);
    return is_ok || error_wrap(error, "%s", name);
}

// Opens recording `index` of both lists, at its snapshot, for `visit`.
static bool visit(struct compared *compared, const struct compared_list *before,
                  const struct compared_list *after, size_t index, visit_fn *what,
                  struct error *error) {
    struct filter *filter = NULL;
    const struct compared_list *side = index < before->count ? before : after;
    size_t at = index < before->count ? index : index - before->count;
    const char *snapshot = side->snapshots[at] ? side->snapshots[at] : "peak";
    compared->own_request = *compared->request;
    if (compared->has_snapshots)
        compared->own_request.snapshot = (struct snapshot_request){SNAPSHOT_WANTED_AT, snapshot};
    // a filter keeps what it hides of one recording: each has its own
    bool is_ok = filter_open(&filter, &compared->request->filter, error);
    compared->filter = filter;
    is_ok = is_ok && open_and_visit(compared, index, side->names[at], what, error);
    filter_close(filter);
    compared->filter = NULL;
    return is_ok;
}

static void cut_alike(const struct compared_list *before, const struct compared_list *after) {
    struct depth depth = {0};
    for (size_t i = 0; i < before->count; i++) depth_add_word(&depth, before->names[i]);
    for (size_t i = 0; i < after->count; i++) depth_add_word(&depth, after->names[i]);
    depth_use(&depth);
}

static bool make_totals(struct compared_totals *totals, size_t count) {
    totals->peak = calloc(count, sizeof *totals->peak);
    totals->peak_ns = calloc(count, sizeof *totals->peak_ns);
    totals->run_ns = calloc(count, sizeof *totals->run_ns);
    totals->exit = calloc(count, sizeof *totals->exit);
    totals->allocated = calloc(count, sizeof *totals->allocated);
    totals->calls = calloc(count, sizeof *totals->calls);
    totals->at = calloc(count, sizeof *totals->at);
    totals->wasted = calloc(count, sizeof *totals->wasted);
    totals->peak_estimates = calloc(count, sizeof *totals->peak_estimates);
    totals->exit_estimates = calloc(count, sizeof *totals->exit_estimates);
    totals->at_estimates = calloc(count, sizeof *totals->at_estimates);
    return totals->peak_estimates && totals->exit_estimates && totals->at_estimates && totals->at &&
           totals->wasted && totals->peak_ns && totals->run_ns && totals->peak && totals->exit &&
           totals->allocated && totals->calls;
}

bool compared_build(struct compared *compared, const struct compared_list *before,
                    const struct compared_list *after, struct error *error) {
    size_t count = before->count + after->count;
    diff_start(&compared->diff, count, before->count);
    enum measure by = compared->request->options.by;
    compared->diff.is_of_peak =
        !compared->has_snapshots && (by == MEASURE_PEAK || by == MEASURE_PEAK_BLOCKS);
    // a row of a few pages is not worth the doubt
    if (measure_about(by)->is_bytes) compared->diff.doubtful_below = 64 << 10;
    if (!make_totals(&compared->totals, count))
        return error_set(error, "no memory for the comparison");
    cut_alike(before, after);
    for (size_t i = 0; i < count; i++)
        if (!visit(compared, before, after, i, add_opened, error)) return false;
    if (compared->owners_count && compared->owners_count < count)
        return error_set(error, "some of them are of who keeps blocks (cairn core SUBJECT save), "
                                "and the others of who allocated them");
    if (compared->kind == COMPARED_STACKS) return diff_join_similar(&compared->diff, error);
    return compared->kind != COMPARED_LINES || diff_join_lines(&compared->diff, error);
}

bool compared_print_views(struct compared *compared, const struct compared_list *before,
                          const struct compared_list *after, struct error *error) {
    struct terminal terminal = terminal_of(stdout);
    for (size_t i = 0; i < before->count + after->count; i++) {
        bool is_first = i < before->count;
        const char *name = is_first ? before->names[i] : after->names[i - before->count];
        terminal_print(&terminal, STYLE_STRONG, "%s%s: %s\n", i ? "\n" : "",
                       is_first ? "before" : "after", name);
        if (!visit(compared, before, after, i, print_view, error)) return false;
    }
    return true;
}

void compared_free(struct compared *compared) {
    diff_free(&compared->diff);
    free(compared->totals.peak);
    free(compared->totals.peak_ns);
    free(compared->totals.run_ns);
    free(compared->totals.exit);
    free(compared->totals.allocated);
    free(compared->totals.wasted);
    free(compared->totals.calls);
    free(compared->totals.at);
    free(compared->totals.peak_estimates);
    free(compared->totals.exit_estimates);
    free(compared->totals.at_estimates);
}
