// SPDX-License-Identifier: Apache-2.0
// cairn diff: what changed between recordings.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/base/confine.h"
#include "tool/base/json.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/cmds/commands.h"
#include "tool/query/compared.h"
#include "tool/render/diff_screen.h"

#define DIFF_SCHEMA "cairn.diff/1"

static bool choose_view(struct request *request, struct compared *compared, struct error *error) {
    const char *name = request->view ? request->view->name : "stacks";
    compared->kind = request->view ? request->view->compared : COMPARED_STACKS;
    compared->grouping = compared->kind == COMPARED_GROUPS ? request->view->grouping : NULL;
    if (compared->kind != COMPARED_VIEWS) return true;
    if (request->view->run == RUN_TABLE)
        return error_set(error, "diff: view %s is of one run: cairn report --view %s", name, name);
    return !request->is_json || error_set(error,
                                          "diff: view %s has no rows to be compared in JSON: "
                                          "cairn report --json",
                                          name);
}

static const char *const *nouns_of(const struct compared *compared) {
    static const char *const nouns[][2] = {
        [COMPARED_STACKS] = {"stack", "stacks"},
        [COMPARED_LINES] = {"line", "lines"},
        [COMPARED_THREADS] = {"thread", "threads"},
        [COMPARED_REGIONS] = {"region", "regions"},
        [COMPARED_VIEWS] = {"", ""},
    };
    return nouns[compared->kind];
}

static void print_side(const struct compared_list *list, const char *program) {
    printf("%s", program);
    for (size_t i = 0; i < list->count; i++) {
        const char *snapshot = list->snapshots[i];
        printf("%s%s%s%s", i ? ", " : " (", list->names[i], snapshot ? "@" : "",
               snapshot ? snapshot : "");
    }
    putchar(')');
}

// Estimates beside estimates, or beside what was counted.
static void print_sampled(const struct terminal *terminal, const struct compared *compared) {
    size_t all = compared->diff.recording_count, sampled = compared->sampled_count;
    if (!sampled) return;
    terminal_print(terminal, STYLE_WARNING,
                   sampled < all ? "  some of them are samples and the others exact: differences "
                                   "have 95 %% intervals\n"
                                 : "  these are samples: differences have 95 %% intervals\n");
}

// What the number of recordings says of noise.
static void print_noise(const struct terminal *terminal, const struct diff *diff) {
    size_t first = diff->first_count, second = diff->recording_count - first;
    size_t fewest = first < second ? first : second;
    const double likely = 0.05, whole = 100;
    double chance = diff_chance(diff);
    if (chance > likely)
        terminal_print(
            terminal, STYLE_DIM,
            "  noise alone sets %zu runs a side apart by chance in %.0f %% of rows; those below "
            "64 KiB are left out (better five)\n",
            fewest, chance * whole);
    if (fewest < DIFF_RUNS_LEAST)
        terminal_print(terminal, STYLE_DIM,
                       "  %s on a side: how much of it is noise is not known (better five)\n",
                       fewest == 1 ? "one run" : "two runs");
}

static bool is_same_file(const char *one, const char *other) {
    struct stat first, second;
    return !strcmp(one, other) || (!stat(one, &first) && !stat(other, &second) &&
                                   first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

// Two moments of one run: nothing varies between them but time.
static bool is_one_recording(const struct compared_list *before,
                             const struct compared_list *after) {
    return before->count == 1 && after->count == 1 &&
           is_same_file(before->names[0], after->names[0]);
}

// All of them say what of what is kept is of no use.
static bool has_waste(const struct compared *compared) {
    return compared->waste_count && compared->waste_count == compared->diff.recording_count;
}

struct moment {
    double peak_ns, run_ns;
};

// Returns the mean moment of the peaks of recordings `from` to `end`; 0 where one is not known.
static struct moment moment_of(const struct compared_totals *totals, size_t from, size_t end) {
    struct moment moment = {0};
    for (size_t i = from; i < end; i++) {
        if (!totals->peak_ns[i] || !totals->run_ns[i]) return (struct moment){0};
        moment.peak_ns += (double)totals->peak_ns[i] / (double)(end - from);
        moment.run_ns += (double)totals->run_ns[i] / (double)(end - from);
    }
    return moment;
}

static size_t count_kind(const struct diff *diff, enum change_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < diff->rows.count; i++) count += diff_row_change(diff, i).kind == kind;
    return count;
}

// Peaks that are of different parts of the runs have other stacks, though nothing else changed.
static void print_peak_times(const struct terminal *terminal, const struct compared *compared) {
    const double apart = 0.1;
    const struct diff *diff = &compared->diff;
    if (!diff->is_of_peak) return;
    struct moment before = moment_of(&compared->totals, 0, diff->first_count),
                  after = moment_of(&compared->totals, diff->first_count, diff->recording_count);
    bool are_known = before.run_ns > 0 && after.run_ns > 0;
    bool are_apart =
        are_known && fabs(before.peak_ns / before.run_ns - after.peak_ns / after.run_ns) > apart;
    bool have_moved = count_kind(diff, CHANGE_NOT_AT_PEAK) || count_kind(diff, CHANGE_ONLY_AT_PEAK);
    if (!are_apart && !(have_moved && are_known)) return;
    terminal_print(terminal, STYLE_WARNING, "  peaks at %s times: %s of %s, %s of %s\n",
                   are_apart ? "different" : "these", units_duration((uint64_t)before.peak_ns).text,
                   units_duration((uint64_t)before.run_ns).text,
                   units_duration((uint64_t)after.peak_ns).text,
                   units_duration((uint64_t)after.run_ns).text);
}

static void print_facts(const struct diff_screen *screen, const struct compared *compared,
                        const struct compared_list *before, const struct compared_list *after) {
    const struct terminal *terminal = screen->terminal;
    print_side(before, compared->program[0]);
    fputs(" \xe2\x86\x92 ", stdout);
    print_side(after, compared->program[1]);
    putchar('\n');
    if (compared->owners_count) {
        diff_print_figure(screen, "kept", compared->totals.exit, NULL, true);
        if (has_waste(compared))
            diff_print_figure(screen, "of no use", compared->totals.wasted, NULL, true);
    } else if (compared->has_snapshots) {
        diff_print_figure(screen, "live", compared->totals.at, compared->totals.at_estimates, true);
    } else {
        if (!compared->lacks_frees)
            diff_print_figure(screen, "peak heap", compared->totals.peak,
                              compared->totals.peak_estimates, true);
        diff_print_figure(screen, "allocated", compared->totals.allocated, NULL, true);
        diff_print_figure(screen, "in calls", compared->totals.calls, NULL, false);
        if (!compared->lacks_frees)
            diff_print_figure(screen, compared->left_word, compared->totals.exit,
                              compared->totals.exit_estimates, true);
    }
    if (strcmp(compared->program[0], compared->program[1]) != 0)
        terminal_print(terminal, STYLE_WARNING, "  these are different programs\n");
    print_peak_times(terminal, compared);
    print_sampled(terminal, compared);
    for (size_t i = 0; i < 2; i++)
        if (*compared->lost_names[i])
            terminal_print(terminal, STYLE_WARNING, "  %s: %s\n", i ? "after" : "before",
                           compared->lost_names[i]);
    if (!compared->owners_count && !is_one_recording(before, after))
        print_noise(terminal, &compared->diff);
    if (compared->is_inexact)
        terminal_print(terminal, STYLE_WARNING,
                       "  not all of them are exact: cairn report says what was lost\n");
    putchar('\n');
}

static bool has_changed(const struct diff *diff) {
    for (size_t i = 0; i < diff->rows.count; i++)
        if (diff_row_change(diff, i).kind != CHANGE_NONE) return true;
    return false;
}

// The options that `command` has too, but for those that are of the view at hand, and the words.
static void print_words(FILE *out, const struct command *command, const struct command_args *args) {
    enum { WORD_BYTES = 8192 };
    char word[WORD_BYTES], safe[WORD_BYTES];
    for (size_t i = 0; i < args->given_count; i++) {
        enum option_id id = args->given[i].id;
        const struct option_row *row = option_row_of(command, id);
        bool is_of_view = id == OPTION_VIEW || id == OPTION_TOP || id == OPTION_DEPTH;
        if (!row || is_of_view || id == OPTION_COLOR) continue;
        fprintf(out, " --%s", row->name);
        if (!row->argument) continue;
        text_quote(word, sizeof word, args->given[i].value);
        text_escape(safe, sizeof safe, word);
        fprintf(out, " %s", safe);
    }
    for (int i = 0; i < args->word_count; i++) {
        text_quote(word, sizeof word, args->words[i]);
        text_escape(safe, sizeof safe, word);
        fprintf(out, " %s", safe);
    }
}

// Stacks that changed lead to the tree of them, other rows to the page, which takes one recording a
// side.
static void print_next(const struct command_args *args, const struct terminal *terminal,
                       const struct compared *compared) {
    const struct request *request = compared->request;
    bool is_to_tree = !request->view || view_has(request->view, VIEW_LEADS_TO_TREE);
    bool has_page = compared->diff.first_count == 1 && compared->diff.recording_count == 2;
    if (!has_changed(&compared->diff) || !(is_to_tree || has_page) || confine_is_on()) return;
    for (size_t i = 0; i < args->given_count; i++)
        if (*args->given[i].value == '-') return;  // text_quote would take it for a path
    terminal_print(terminal, STYLE_DIM, "\nnext: ");
    fputs(is_to_tree ? "cairn diff --view tree" : "cairn open", terminal->out);
    print_words(terminal->out, is_to_tree ? args->command : command_find("open"), args);
    fputc('\n', terminal->out);
}

static bool print_rows(const struct diff_screen *screen, const struct compared *compared,
                       struct error *error) {
    const struct request *request = compared->request;
    diff_print_counts(screen);
    if (view_has(request->view, VIEW_NEEDS_SOURCE))
        return diff_print_annotated(screen, request->source, error);
    if (compared->kind != COMPARED_STACKS) return diff_print_groups(screen, error);
    return view_has(request->view, VIEW_IS_TREE) ? diff_print_tree(screen, error)
                                                 : diff_print_stacks(screen, error);
}

static bool print_text(const struct command_args *args, struct compared *compared,
                       const struct compared_list *before, const struct compared_list *after,
                       struct error *error) {
    struct terminal terminal = terminal_of(stdout);
    const struct grouping *grouping = compared->grouping;
    bool is_groups = compared->kind == COMPARED_GROUPS;
    const char *const *nouns = is_groups ? NULL : nouns_of(compared);
    const struct diff_screen screen = {
        .terminal = &terminal,
        .diff = &compared->diff,
        .view = &compared->request->options,
        .noun = {is_groups ? grouping->one : nouns[0], is_groups ? grouping->name : nouns[1]},
        .has_places = compared->kind == COMPARED_LINES,
        .is_sampled = compared->sampled_count > 0};
    print_facts(&screen, compared, before, after);
    if (compared->kind == COMPARED_VIEWS)
        return compared_print_views(compared, before, after, error);
    if (!print_rows(&screen, compared, error)) return false;
    print_next(args, &terminal, compared);
    return true;
}

static void put_values(struct json *json, const char *key, const int64_t *values, size_t count) {
    json_open_array(json, key);
    for (size_t i = 0; i < count; i++) json_put_int(json, NULL, values[i]);
    json_close(json);
}

static void put_figure(struct json *json, const struct diff *diff, const char *key,
                       const int64_t *values) {
    size_t first = diff->first_count;
    json_open_object(json, key);
    put_values(json, "before", values, first);
    put_values(json, "after", values + first, diff->recording_count - first);
    json_close(json);
}

// A figure of which samples may be behind some: how sure its difference is.
static void put_estimated(struct json *json, const struct compared *compared, const char *key,
                          const int64_t *values, const struct diff_estimate *estimates) {
    const struct diff *diff = &compared->diff;
    struct change change = diff_change(diff, values, estimates);
    size_t first = diff->first_count;
    json_open_object(json, key);
    put_values(json, "before", values, first);
    put_values(json, "after", values + first, diff->recording_count - first);
    if (compared->sampled_count) {
        json_put_int(json, "delta_interval", change.interval);
        json_put_int(json, "samples", change.samples);
    }
    json_close(json);
}

// Of what was live; null: an imported file does not say what was freed.
static void put_held(struct json *json, const struct compared *compared, const char *key,
                     const int64_t *values, const struct diff_estimate *estimates) {
    if (compared->lacks_frees)
        json_put_null(json, key);
    else
        put_estimated(json, compared, key, values, estimates);
}

static void put_row(struct json *json, const struct compared *compared, size_t row) {
    const struct diff *diff = &compared->diff;
    const int64_t *values = diff_values(diff, row);
    struct change change = diff_row_change(diff, row);
    json_open_object(json, NULL);
    json_put_string(json, "change", change_word(change.kind));
    json_put_bool(json, "within_spread", change.is_noise);
    json_put_int(json, "delta", change.delta);
    if (compared->sampled_count) {
        json_put_int(json, "delta_interval", change.interval);
        json_put_int(json, "samples", change.samples);
    }
    if (change.chance > 0)
        json_put_thousandths(json, "chance", (unsigned)(change.chance * 1000 + 0.5));
    else
        json_put_null(json, "chance");
    put_figure(json, diff, "values", values);
    const struct diff_row *shown = &diff->rows.items[row];
    if (compared->kind == COMPARED_STACKS) {
        json_open_array(json, "functions");
        for (uint32_t i = 0; i < shown->count; i++)
            json_put_string(json, NULL, diff_name(diff, shown, i));
        json_close(json);
    } else {
        bool is_line = compared->kind == COMPARED_LINES;
        json_put_string(json, "name",
                        is_line ? diff_where(diff, shown, 0) : diff_name(diff, shown, 0));
        if (is_line && shown->count == DIFF_LINE_NAMES)
            json_put_string(json, "function", diff_name(diff, shown, DIFF_LINE_FUNCTION));
    }
    json_close(json);
}

static void put_side(struct json *json, const char *key, const struct compared_list *list) {
    json_open_array(json, key);
    for (size_t i = 0; i < list->count; i++) json_put_string(json, NULL, list->names[i]);
    json_close(json);
}

static bool print_json(const struct compared *compared, const struct compared_list *before,
                       const struct compared_list *after) {
    const struct diff *diff = &compared->diff;
    struct json json;
    json_start(&json, stdout);
    json_open_object(&json, NULL);
    json_put_string(&json, "schema", DIFF_SCHEMA);
    json_put_string(&json, "view",
                    compared->kind == COMPARED_STACKS ? "stacks" : compared->request->view->name);
    json_put_string(&json, "by", measure_name(compared->request->options.by));
    put_side(&json, "before", before);
    put_side(&json, "after", after);
    const struct compared_totals *totals = &compared->totals;
    put_held(&json, compared, "peak_bytes", totals->peak, totals->peak_estimates);
    if (!compared->lacks_frees) put_figure(&json, diff, "peak_at_ns", totals->peak_ns);
    put_figure(&json, diff, "allocated_bytes", compared->totals.allocated);
    put_figure(&json, diff, "allocations", compared->totals.calls);
    if (has_waste(compared)) put_figure(&json, diff, "wasted_bytes", compared->totals.wasted);
    put_held(&json, compared, "at_exit_bytes", totals->exit, totals->exit_estimates);
    diff_claims_put_json(&json, diff);
    json_open_array(&json, "rows");
    for (size_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_row_change(diff, i);
        if (change.before || change.after || change.is_noise) put_row(&json, compared, i);
    }
    json_close(&json);
    json_close(&json);
    return true;
}

static bool check_not_empty(const struct compared *compared, struct error *error) {
    const struct filter_request *filter = &compared->request->filter;
    bool has_filter = filter->focus || filter->ignore || filter->module || filter->thread;
    if (compared->kind == COMPARED_VIEWS || compared->diff.rows.count || !has_filter) return true;
    return error_set(error, "diff: the filter matches nothing in any of the recordings");
}

// If a snapshot is named, what was live at it is compared; of the others, what was at their
// peak.
static bool use_snapshots(const struct command_args *args, struct request *request,
                          struct compared *compared, const struct compared_list *before,
                          const struct compared_list *after, struct error *error) {
    for (size_t i = 0; i < before->count; i++)
        compared->has_snapshots |= before->snapshots[i] != NULL;
    for (size_t i = 0; i < after->count; i++)
        compared->has_snapshots |= after->snapshots[i] != NULL;
    if (!compared->has_snapshots) return true;
    if (!options_check_under(args, OF_SNAPSHOTS, error)) return false;
    request->options.by = args_has(args, OPTION_BLOCKS) ? MEASURE_AT_BLOCKS : MEASURE_AT;
    return true;
}

int cmd_diff(const struct command_args *args) {
    struct request request;
    struct compared compared = {.process = args_text(args, OPTION_PROCESS, NULL),
                                .request = &request};
    struct compared_list before = {0}, after = {0};
    struct filter *filter = NULL;
    struct error error;
    if (args->word_count != 2) {
        error_set(&error, "diff: two recordings are needed, or two lists of them");
        return command_fail(STATUS_USAGE, &error);
    }
    if (!request_read(args, &request, &error) || !choose_view(&request, &compared, &error) ||
        !filter_open(&filter, &request.filter, &error))
        return command_fail(STATUS_USAGE, &error);
    filter_close(filter);
    request.filter.may_be_empty = true;  // what is new matches nothing in the older recording
    bool is_ok = compared_list_read(&before, args->words[0], &error) &&
                 compared_list_read(&after, args->words[1], &error) &&
                 use_snapshots(args, &request, &compared, &before, &after, &error) &&
                 compared_build(&compared, &before, &after, &error) &&
                 check_not_empty(&compared, &error) &&
                 (request.is_json ? print_json(&compared, &before, &after)
                                  : print_text(args, &compared, &before, &after, &error));
    compared_free(&compared);
    compared_list_free(&before);
    compared_list_free(&after);
    return is_ok ? STATUS_OK : command_fail(STATUS_FAILURE, &error);
}
