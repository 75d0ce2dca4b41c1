// SPDX-License-Identifier: Apache-2.0
// The order of commits is git's, along first parents: a run beside the line (of a branch, or of
// history that was rewritten since) is counted and left out, since neighbours in the order of
// recording need not be neighbours in the code.
#include "tool/history/history.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/units.h"

void history_close(struct history *history) {
    for (size_t i = 0; i < history->commits.count; i++) {
        free(history->commits.items[i].hash);
        free(history->commits.items[i].subject);
    }
    for (size_t i = 0; i < history->series.count; i++) {
        struct history_series *series = &history->series.items[i];
        free(series->test);
        free(series->program);
        free(series->region);
        array_free(&series->points);
    }
    for (size_t i = 0; i < history->systems.count; i++) free(history->systems.items[i]);
    array_free(&history->systems);
    array_free(&history->commits);
    array_free(&history->series);
    array_free(&history->steps);
    array_free(&history->open);
    store_close(&history->store);
}

// --- commits

// A commit of the file, before the line is known.
struct found {
    struct history_commit commit;
    int64_t number;
};
struct found_list {
    ARRAY(struct found) list;
};

static bool read_commits(struct history *history, struct found_list *found, struct error *error) {
    struct store *store = &history->store;
    bool is_ok;
    if (!store_query(store,
                     "SELECT c.id, c.hash, c.subject, c.time, c.is_changed, count(*), min(r.id) "
                     "FROM commits c JOIN runs r ON r.commit_id = c.id GROUP BY c.id ORDER BY 7",
                     error))
        return false;
    while (store_next(store, &is_ok, error)) {
        struct found *slot = array_push(&found->list);
        if (!slot) return error_set(error, "no memory for the commits");
        *slot = (struct found){.number = store_int(store, 0),
                               .commit = {.hash = store_text(store, 1),
                                          .subject = store_text(store, 2),
                                          .time_s = store_int(store, 3),
                                          .is_changed = store_int(store, 4) != 0,
                                          .run_count = (size_t)store_int(store, 5),
                                          .place = -1}};
        if (!slot->commit.hash || !slot->commit.subject)
            return error_set(error, "no memory for the commits");
    }
    return is_ok;
}

// Places in the line; false: the repository here is not that of the file.
static bool place_commits(struct found_list *found, const struct git_line *line) {
    size_t placed = 0;
    for (size_t i = 0; i < found->list.count; i++) {
        struct history_commit *commit = &found->list.items[i].commit;
        commit->place = git_line_find(line, commit->hash);
        placed += commit->place >= 0;
    }
    return placed > 0;
}

// Says what became of commits that are not in the line.
static void describe_left_out(struct history *history, const struct found_list *found,
                              const char *end) {
    size_t beside = 0, merged = 0, gone = 0;
    const char *example = "";
    enum { LOOKED_AT_MAX = 64 };
    for (size_t i = 0; i < found->list.count; i++) {
        const struct history_commit *commit = &found->list.items[i].commit;
        if (commit->place >= 0) continue;
        if (history->left_out++ >= LOOKED_AT_MAX) continue;
        bool is_gone = !git_has(commit->hash);
        bool is_merged = !is_gone && git_is_ancestor(commit->hash, end);
        if (!is_merged) example = commit->hash;
        gone += is_gone;
        merged += is_merged;
        beside += !is_gone && !is_merged;
    }
    if (!history->left_out) return;
    int used =
        snprintf(history->note, sizeof history->note, "left out: %s not in the line of %.*s:",
                 units_counted((int64_t)history->left_out, "commit", "commits").text,
                 *end == 'H' ? 4 : GIT_SHORT, end);
    const struct {
        size_t count;
        const char *text;
    } parts[] = {{merged, "of merged branches"},
                 {beside, "of other branches or before history was rewritten"},
                 {gone, "that git no longer has (history was rewritten, or another clone)"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count && used < (int)sizeof history->note)
            used +=
                snprintf(history->note + used, sizeof history->note - (size_t)used, "%s %zu %s",
                         history->note[used - 1] == ':' ? "" : ",", parts[i].count, parts[i].text);
    if (*example && used < (int)sizeof history->note)
        snprintf(history->note + used, sizeof history->note - (size_t)used, " (such as %.*s)",
                 GIT_SHORT, example);
}

// Changes that were not committed belong to no later commit: such a run counts at the end only.
static bool is_passed(const struct found_list *found, const struct history_commit *commit) {
    for (size_t i = 0; commit->is_changed && i < found->list.count; i++)
        if (found->list.items[i].commit.place > commit->place) return true;
    return false;
}

static void describe_passed(struct history *history, size_t count) {
    size_t used = strlen(history->note);
    if (!count) return;
    snprintf(history->note + used, sizeof history->note - used,
             "%s%s with changes that were not committed, before later commits",
             used ? "; " : "left out: ", units_counted((int64_t)count, "commit", "commits").text);
}

static int compare_places(const void *a, const void *b) {
    const struct history_commit *one = &((const struct found *)a)->commit,
                                *other = &((const struct found *)b)->commit;
    if (one->place != other->place) return one->place < other->place ? -1 : 1;
    return one->is_changed - other->is_changed;
}

static bool is_this_project(struct history *history, const char *end, struct error *error) {
    char *known = store_roots(&history->store, error), *here = git_roots(end, NULL);
    bool is_this = known && here && *known && !strcmp(known, here);
    free(known);
    free(here);
    return is_this;
}

static bool order_commits(struct history *history, struct found_list *found, const char *end,
                          struct error *error) {
    struct git_project project;
    struct git_commit commit;
    struct git_line line = {0};
    const char *name = end ? end : "HEAD";
    if (end && !*end) return true;
    if (!git_find(&project, end ? error : NULL) || !project.is_there) {
        snprintf(history->note, sizeof history->note,
                 "no git repository here: commits are in the order of recording");
        return !end || error_set(error, "%s: no git repository here", end);
    }
    if (!git_describe(name, &commit, error) || !git_line_read(commit.hash, &line, error))
        return false;
    bool is_placed = place_commits(found, &line);
    history->has_git = is_placed || is_this_project(history, commit.hash, error);
    git_line_free(&line);
    if (history->has_git)
        describe_left_out(history, found, end ? commit.hash : "HEAD");
    else
        snprintf(history->note, sizeof history->note,
                 "the repository here has none of its commits: they are in the order of recording");
    if (history->has_git && found->list.count)
        qsort(found->list.items, found->list.count, sizeof *found->list.items, compare_places);
    return true;
}

// Moves the commits of the line into the history; `indexes` by their number in the file, which is
// UINT32_MAX for others.
struct commit_indexes {
    ARRAY(uint32_t) list;
};
static bool take_commits(struct history *history, struct found_list *found,
                         struct commit_indexes *indexes, struct error *error) {
    enum { NUMBER_MAX = 1 << 24 };
    size_t passed = 0;
    for (size_t i = 0; i < found->list.count; i++) {
        struct found *one = &found->list.items[i];
        if (one->number < 0 || one->number > NUMBER_MAX)
            return error_set(error, "%s: a commit's number is damaged", history->store.path);
        if (history->has_git && one->commit.place < 0) continue;
        if (history->has_git && is_passed(found, &one->commit)) {
            passed++;
            continue;
        }
        while (indexes->list.count <= (size_t)one->number) {
            uint32_t *slot = array_push(&indexes->list);
            if (!slot) return error_set(error, "no memory for the commits");
            *slot = UINT32_MAX;
        }
        struct history_commit *commit = array_push(&history->commits);
        if (!commit) return error_set(error, "no memory for the commits");
        *commit = one->commit;
        one->commit.hash = one->commit.subject = NULL;
        indexes->list.items[one->number] = (uint32_t)history->commits.count - 1;
        history->run_count += commit->run_count;
    }
    describe_passed(history, passed);
    return true;
}

// --- series

static void read_figures(struct store *store, int column, struct history_point *point) {
    for (int i = 0; i < HISTORY_MEASURES; i++) {
        struct history_figure *figure = &point->figures[i];
        figure->is_known = !store_is_null(store, column);
        figure->value = store_int(store, column++);
        if (i <= HISTORY_EXIT) figure->interval = store_int(store, column++);
        if (figure->interval < 0) figure->interval = 0;
    }
    point->stack_set = store_int(store, column);
}

static int compare_points(const void *a, const void *b) {
    const struct history_point *one = a, *other = b;
    if (one->commit != other->commit) return one->commit < other->commit ? -1 : 1;
    return (one->run > other->run) - (one->run < other->run);
}

// The number of a system's name, which is taken over.
static bool number_system(struct history *history, char *name, uint32_t *number) {
    uint32_t at = 0;
    while (at < history->systems.count && name && strcmp(history->systems.items[at], name) != 0)
        at++;
    if (!name || at < history->systems.count) {
        free(name);
    } else {
        char **slot = array_push(&history->systems);
        if (!slot) free(name);
        if (!slot) return false;
        *slot = name;
    }
    *number = at;
    return name != NULL;
}

static bool read_points(struct history *history, const struct commit_indexes *indexes,
                        struct error *error) {
    struct store *store = &history->store;
    int64_t last = -1;
    bool is_ok;
    if (!store_query(
            store,
            "SELECT s.id, s.test, s.program, s.region, r.commit_id, r.id, f.flags, f.peak, "
            "f.peak_interval, f.exit, f.exit_interval, f.calls, f.bytes, f.temporary, "
            "f.waste, f.stack_set, r.system FROM figures f JOIN series s ON s.id = f.series JOIN "
            "runs r ON r.id = f.run ORDER BY s.test, s.program, s.region, s.id, r.id",
            error))
        return false;
    enum { COMMIT = 4, RUN, FLAGS, FIGURES, SYSTEM = 16 };
    uint32_t unknown;
    if (!number_system(history, strdup(""), &unknown))
        return error_set(error, "no memory for the series");
    while (store_next(store, &is_ok, error)) {
        int64_t number = store_int(store, COMMIT);
        bool is_there = number >= 0 && (uint64_t)number < indexes->list.count &&
                        indexes->list.items[number] != UINT32_MAX;
        if (!is_there) continue;
        if (store_int(store, 0) != last) {
            struct history_series *series = array_push(&history->series);
            if (!series) return error_set(error, "no memory for the series");
            *series = (struct history_series){
                store_text(store, 1), store_text(store, 2), store_text(store, 3), {0}};
            if (!series->test || !series->program || !series->region)
                return error_set(error, "no memory for the series");
            last = store_int(store, 0);
        }
        struct history_series *series = &history->series.items[history->series.count - 1];
        struct history_point *point = array_push(&series->points);
        if (!point) return error_set(error, "no memory for the series");
        *point = (struct history_point){.commit = indexes->list.items[number],
                                        .run = store_int(store, RUN),
                                        .flags = (unsigned)store_int(store, FLAGS)};
        read_figures(store, FIGURES, point);
        if (!number_system(history, store_text(store, SYSTEM), &point->system))
            return error_set(error, "no memory for the series");
    }
    for (size_t i = 0; i < history->series.count; i++)
        qsort(history->series.items[i].points.items, history->series.items[i].points.count,
              sizeof(struct history_point), compare_points);
    return is_ok;
}

// --- steps

static struct step_value value_of(const struct history_point *point, enum history_measure measure) {
    const struct history_figure *figure = &point->figures[measure];
    const double deviations = 1.96;
    bool is_estimate = point->flags & HISTORY_IS_SAMPLED && figure->interval;
    return (struct step_value){
        .commit = point->commit,
        .value = figure->value,
        .deviation = is_estimate ? (double)figure->interval / deviations : 0,
        .bound = is_estimate ? 0 : figure->interval,
        .can_vary = point->flags & (HISTORY_IS_THREADED | HISTORY_IS_INCOMPLETE),
    };
}

// Points that know the measure, as values; `points` becomes their indexes.
static bool find_in(struct history *history, uint32_t index, enum history_measure measure,
                    struct error *error) {
    const struct history_series *series = &history->series.items[index];
    size_t room = series->points.count + 1, count = 0;
    struct step_value *values = calloc(room, sizeof *values);
    uint32_t *points = calloc(room, sizeof *points);
    struct steps steps = {0};
    for (uint32_t i = 0; values && points && i < series->points.count; i++) {
        if (!series->points.items[i].figures[measure].is_known) continue;
        points[count] = i;
        values[count++] = value_of(&series->points.items[i], measure);
    }
    bool is_ok = values && points && steps_find(values, count, &steps);
    for (size_t i = 0; i < steps.list.count && is_ok; i++) {
        const struct step *step = &steps.list.items[i];
        struct history_step *slot = array_push(&history->steps);
        is_ok = slot != NULL;
        if (!is_ok) break;
        *slot = (struct history_step){.series = index,
                                      .measure = measure,
                                      .before = points[step->first - 1],
                                      .after = points[step->first],
                                      .old_level = step->before,
                                      .new_level = step->after,
                                      .is_noisy = steps.is_noisy,
                                      .deviation = steps.deviation};
    }
    struct history_step *open = is_ok && steps.open.is_there ? array_push(&history->open) : NULL;
    if (open)
        *open = (struct history_step){.series = index,
                                      .measure = measure,
                                      .before = points[steps.open.first - 1],
                                      .after = points[steps.open.first],
                                      .old_level = steps.open.before,
                                      .new_level = steps.open.after,
                                      .is_noisy = steps.is_noisy,
                                      .deviation = steps.deviation,
                                      .missing = steps.open.missing,
                                      .runs_before = steps.open.runs_before};
    is_ok = is_ok && (open || !steps.open.is_there);
    steps_free(&steps);
    free(values);
    free(points);
    return is_ok || error_set(error, "no memory for the steps");
}

static const struct history_point *point_of(const struct history *history, uint32_t series,
                                            uint32_t point) {
    return &history->series.items[series].points.items[point];
}

const struct history_commit *history_before(const struct history *history,
                                            const struct history_step *step) {
    return &history->commits.items[point_of(history, step->series, step->before)->commit];
}

const struct history_commit *history_after(const struct history *history,
                                           const struct history_step *step) {
    return &history->commits.items[point_of(history, step->series, step->after)->commit];
}

size_t history_commits_between(const struct history *history, const struct history_step *step) {
    const struct history_commit *before = history_before(history, step),
                                *after = history_after(history, step);
    return before->place < 0 || after->place < before->place
               ? 0
               : (size_t)(after->place - before->place);
}

bool history_system_changed(const struct history *history, const struct history_step *step,
                            const char **before, const char **after) {
    uint32_t old_system = point_of(history, step->series, step->before)->system,
             new_system = point_of(history, step->series, step->after)->system;
    *before = history->systems.items[old_system];
    *after = history->systems.items[new_system];
    return old_system && new_system && old_system != new_system;
}

static int compare_steps(const void *a, const void *b, void *context) {
    const struct history *history = context;
    const struct history_step *one = a, *other = b;
    uint32_t first = point_of(history, one->series, one->after)->commit,
             second = point_of(history, other->series, other->after)->commit;
    if (first != second) return first > second ? -1 : 1;
    first = point_of(history, one->series, one->before)->commit;
    second = point_of(history, other->series, other->before)->commit;
    if (first != second) return first > second ? -1 : 1;
    if (one->series != other->series) return one->series < other->series ? -1 : 1;
    return (int)one->measure - (int)other->measure;
}

static bool find_steps(struct history *history, struct error *error) {
    for (uint32_t i = 0; i < history->series.count; i++)
        for (int measure = 0; measure < HISTORY_MEASURES; measure++)
            if (!find_in(history, i, (enum history_measure)measure, error)) return false;
    if (history->steps.count)
        qsort_r(history->steps.items, history->steps.count, sizeof *history->steps.items,
                compare_steps, history);
    return true;
}

// One transaction, so that all of it is as of one moment, however many runs are added meanwhile. It
// ends with the reading: what is shown later may take long, and writers wait.
bool history_open(const char *word, const char *end, struct history *history, struct error *error) {
    struct found_list found = {0};
    struct commit_indexes indexes = {0};
    *history = (struct history){0};
    if (!store_open(word, false, &history->store, error)) return false;
    bool is_ok = store_execute(&history->store, "BEGIN", error) &&
                 read_commits(history, &found, error) &&
                 order_commits(history, &found, end, error) &&
                 take_commits(history, &found, &indexes, error) &&
                 read_points(history, &indexes, error) && find_steps(history, error);
    store_rest(&history->store);
    is_ok = is_ok && store_execute(&history->store, "COMMIT", error);
    for (size_t i = 0; i < found.list.count; i++) {
        free(found.list.items[i].commit.hash);
        free(found.list.items[i].commit.subject);
    }
    array_free(&found.list);
    array_free(&indexes.list);
    if (!is_ok) history_close(history);
    return is_ok;
}

// --- words

void history_series_name(const struct history_series *series, char name[HISTORY_NAME_BYTES]) {
    bool is_own = !strcmp(series->test, series->program);
    snprintf(name, HISTORY_NAME_BYTES, "%s%s%s%s%s", series->test, is_own ? "" : ": ",
             is_own ? "" : series->program, *series->region ? ", region " : "", series->region);
}

const char *history_subject(const struct history_commit *commit) {
    return commit->is_changed ? "changes that are not committed" : commit->subject;
}

struct unit_text history_amount(enum history_measure measure, int64_t value) {
    const struct history_measure_row *row = &history_measures[measure];
    return row->is_bytes ? units_size(value) : units_counted(value, row->noun[0], row->noun[1]);
}

struct unit_text history_change(enum history_measure measure, int64_t change) {
    struct unit_text text,
        amount = history_measures[measure].is_bytes ? units_size(change) : units_count(change);
    snprintf(text.text, sizeof text.text, "%s%.60s", change > 0 ? "+" : "", amount.text);
    return text;
}
