// SPDX-License-Identifier: Apache-2.0
#include "tool/check/offenders.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/narrow.h"
#include "tool/model/scopes.h"
#include "tool/query/leaks.h"
#include "tool/query/name_hints.h"
#include "tool/render/diff.h"
#include "tool/render/diff_screen.h"
#include "tool/render/interval.h"
#include "tool/render/overruns_screen.h"
#include "tool/render/site.h"

enum { GUILTY_COUNT = 3, GUILTY_COLUMNS = 100, CALLERS_COLUMNS = 40 };

bool offenders_suppress(const struct command_args *args, struct opened *opened,
                        struct suppressions *suppressions, struct error *error) {
    struct frame_names names = names_frames(opened->names);
    const char *note;
    bool has_own = !args_has(args, OPTION_NO_SUPPRESSIONS);
    return leaks_read_rules(args, suppressions, error) &&
           (!has_own || leaks_add_own_rules(suppressions, opened, &note, error)) &&
           suppressions_apply(suppressions, &opened->profile, &names, error);
}

int64_t offenders_suppressed(const struct suppressions *suppressions) {
    int64_t sum = 0;
    for (size_t i = 0; i < suppressions->rules.count; i++)
        sum = figures_add(sum, suppressions->rules.items[i].bytes);
    return sum;
}

bool offenders_open(const struct command_args *args, const char *path, struct opened *opened,
                    struct suppressions *suppressions, struct error *error) {
    if (!opened_open(path, opened, error)) return false;
    for (size_t i = 0; i < opened->profile.stack_count; i++)
        names_want_stack(opened->names, opened->profile.stacks[i].node, 0);
    names_want_overruns(opened->names);
    bool is_ok = names_resolve(opened->names, error) &&
                 (!suppressions || offenders_suppress(args, opened, suppressions, error));
    if (!is_ok) opened_close(opened);
    return is_ok;
}

const char *offenders_value(enum measure measure, int64_t value, char out[GUILTY_VALUE_BYTES]) {
    const struct measure_row *about = measure_about(measure);
    if (about->is_bytes)
        snprintf(out, GUILTY_VALUE_BYTES, "%s", units_size(value).text);
    else
        snprintf(out, GUILTY_VALUE_BYTES, "%s %s", units_count(value).text,
                 about->noun[value != 1]);
    return out;
}

static void print_site(FILE *out, const struct site *site, enum measure measure, int64_t whole) {
    char label[FRAME_TEXT_BYTES] = STACK_NOT_RECORDED, location[FRAME_TEXT_BYTES] = "";
    char value[GUILTY_VALUE_BYTES];
    if (site->frame_count) {
        frame_label(site->frames[0], label, sizeof label, GUILTY_COLUMNS);
        frame_location(site->frames[0], location, sizeof location);
    }
    bool is_estimate = measured_interval(site->measured) > 0;
    fprintf(out, "      %5s %14s  %s%s%s%s%s", units_percent(site->measured.value, whole).text,
            offenders_value(measure, measured_shown(site->measured), value),
            is_estimate ? interval_note(site->measured).text : "", is_estimate ? "  " : "", label,
            *location ? " " : "", location);
    if (site->callee) {
        frame_label(site->callee, label, sizeof label, CALLERS_COLUMNS);
        fprintf(out, " \xe2\x86\x92 %s", label);
    }
    for (unsigned i = 1; i < site->frame_count; i++) {
        frame_label(site->frames[i], label, sizeof label, CALLERS_COLUMNS);
        fprintf(out, " \xe2\x86\x90 %s", label);
    }
    fputc('\n', out);
}

// "src/parser.c:120", below the current directory without it, for free(); NULL: not known.
static char *place_of(const struct frame *frame) {
    char directory[PATH_MAX], place[PATH_MAX + 16], safe[PATH_MAX + 16];
    const char *path = frame->file;
    if (!path || !frame->line) return NULL;
    size_t length = getcwd(directory, sizeof directory) ? strlen(directory) : 0;
    if (length && !strncmp(path, directory, length) && path[length] == '/') path += length + 1;
    snprintf(place, sizeof place, "%s:%u", path, frame->line);
    text_escape(safe, sizeof safe, place);
    return strdup(safe);
}

static bool print_sites(FILE *out, const struct opened *opened, enum measure measure, char **place,
                        struct error *error) {
    struct frame_names names = names_frames(opened->names);
    struct site_list list;
    if (measure == MEASURE_OVERRUNS) {
        overruns_print_short(out, &opened->profile, &names, GUILTY_COUNT);
        return true;
    }
    int64_t whole = measure_total(measure, &opened->profile).value;
    bool is_ok =
        site_list_build(&list, &opened->profile, &names, measure, GUILTY_COUNT, false, error);
    for (size_t i = 0; i < list.sites.count && i < GUILTY_COUNT && is_ok; i++)
        print_site(out, &list.sites.items[i], measure, whole);
    if (is_ok && list.sites.count && list.sites.items[0].frame_count)
        *place = place_of(list.sites.items[0].frames[0]);
    site_list_free(&list);
    return is_ok;
}

bool offenders_keep_region(struct opened *opened, const char *path) {
    struct scopes scopes;
    size_t length = strlen(path);
    if (!scopes_read(&scopes, &opened->recording)) return false;
    bool *are_kept = calloc(scopes.count + 1, sizeof *are_kept);
    for (size_t i = 1; are_kept && i < scopes.count; i++) {
        const struct scope *scope = &scopes.list[i];
        are_kept[i] = scope->kind == CAIRN_SCOPE_REGION && !strncmp(scope->path, path, length) &&
                      (!scope->path[length] || scope->path[length] == '/');
    }
    if (are_kept) {
        profile_keep_regions(&opened->profile, are_kept, scopes.count);
        profile_sum_up(&opened->profile);
    }
    bool is_ok = are_kept != NULL;
    free(are_kept);
    scopes_free(&scopes);
    return is_ok;
}

static bool print_text(const struct opened *opened, enum measure measure, struct result *result,
                       struct error *error) {
    size_t size;
    FILE *out = open_memstream(&result->offenders, &size);
    if (!out) return error_set(error, "no memory for the stacks");
    bool is_ok = print_sites(out, opened, measure, &result->place, error);
    fclose(out);
    return is_ok;
}

bool offenders_of(const struct opened *opened, enum measure measure, struct result *result,
                  struct error *error) {
    const struct profile *profile = &opened->profile;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (measure_stack(measure, &profile->stacks[i]).value > 0)
            names_want_stack(opened->names, profile->stacks[i].node, 0);
    return names_resolve(opened->names, error) && print_text(opened, measure, result, error);
}

bool offenders_find(const struct command_args *args, const char *path, const char *region,
                    enum measure measure, struct result *result, struct error *error) {
    struct opened opened;
    struct suppressions suppressions = {0};
    if (!*path) return true;
    bool has_rules = measure == MEASURE_EXIT && !region;
    bool is_ok = offenders_open(args, path, &opened, has_rules ? &suppressions : NULL, error);
    if (is_ok) {
        is_ok = !region || offenders_keep_region(&opened, region)
                    ? print_text(&opened, measure, result, error)
                    : error_set(error, "no memory for the stacks");
        opened_close(&opened);
    }
    suppressions_free(&suppressions);
    return is_ok;
}

enum { LOST_BYTES = 512 };

static bool add_side(const struct command_args *args, struct diff *diff, size_t side,
                     const char *path, enum measure measure, char lost[LOST_BYTES],
                     struct error *error) {
    struct view_options view = {.by = measure};
    struct opened opened;
    struct suppressions suppressions = {0};
    bool is_exit = measure == MEASURE_EXIT;
    bool is_ok = offenders_open(args, path, &opened, is_exit ? &suppressions : NULL, error);
    if (is_ok) {
        struct frame_names names = names_frames(opened.names);
        is_ok = diff_add_stacks(diff, side, &opened.profile, &names, &view, error);
        if (!name_hints_lost(&opened, lost, LOST_BYTES)) *lost = 0;
        opened_close(&opened);
    }
    suppressions_free(&suppressions);
    return is_ok;
}

// The innermost three functions of a row.
static void print_grown(FILE *out, const struct diff *diff, const struct diff_row *row,
                        struct change change, enum measure measure) {
    const struct measured sure = measured_of_interval(0, change.interval, 0);
    bool is_bytes = measure_about(measure)->is_bytes;
    fprintf(out, "      %14s%s %-6s ", diff_delta_text(change.delta, is_bytes, false).text,
            interval_text(sure, is_bytes, false).text, change_word(change.kind));
    for (uint32_t i = 0; i < GUILTY_COUNT && i < row->count; i++)
        fprintf(out, "%s%s", i ? " \xe2\x86\x90 " : " ", diff_name(diff, row, i));
    fputc('\n', out);
}

bool offenders_find_grown(const struct command_args *args, const char *old_path, const char *path,
                          enum measure measure, struct result *result, struct error *error) {
    struct diff diff;
    size_t count = 0, noise_count, size;
    char lost[2][LOST_BYTES];
    if (!*path || !*old_path) return true;
    diff_start(&diff, 2, 1);
    bool is_ok = add_side(args, &diff, 0, old_path, measure, lost[0], error) &&
                 add_side(args, &diff, 1, path, measure, lost[1], error) &&
                 diff_join_similar(&diff, error);
    uint32_t *rows = is_ok ? diff_rank(&diff, &count, &noise_count) : NULL;
    FILE *out = rows ? open_memstream(&result->offenders, &size) : NULL;
    for (size_t i = 0, shown = 0; out && i < count && shown < GUILTY_COUNT; i++) {
        struct change change = diff_row_change(&diff, rows[i]);
        if (change.delta <= 0) continue;
        print_grown(out, &diff, &diff.rows.items[rows[i]], change, measure);
        shown++;
    }
    for (size_t i = 0; out && i < 2; i++)
        if (*lost[i]) fprintf(out, "      %s: %s\n", i ? "this one" : "the baseline", lost[i]);
    if (out) fclose(out);
    if (is_ok && !out) is_ok = error_set(error, "no memory for the stacks");
    free(rows);
    diff_free(&diff);
    return is_ok;
}
