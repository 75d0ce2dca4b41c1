// SPDX-License-Identifier: Apache-2.0
#include "tool/history/screen.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"

enum {
    NAME_COLUMNS = 34,
    NAME_COLUMNS_LEAST = 16,
    MEASURE_COLUMNS = 9,
    SPARK_COLUMNS = 32,
    VALUE_COLUMNS = 13,
    STEPS_COLUMNS = 9,
    MOVES_SHOWN = 3,
    STEP_BYTES = 256,
    ELSEWHERE_COLUMNS = 120,  // where no terminal sets them
};

// The two columns that a narrow terminal makes narrower.
struct layout {
    size_t name, spark;
};

static struct layout layout_of(const struct terminal *terminal) {
    enum { FIXED = 2 + 1 + MEASURE_COLUMNS + 1 + 2 * (1 + VALUE_COLUMNS) + STEPS_COLUMNS };
    size_t columns = terminal->is_terminal ? terminal->columns : ELSEWHERE_COLUMNS;
    size_t room = columns > FIXED ? columns - FIXED : 0;
    struct layout layout = {room / 2, room - room / 2};
    if (layout.name < NAME_COLUMNS_LEAST) layout.name = NAME_COLUMNS_LEAST;
    if (layout.name > NAME_COLUMNS) layout.name = NAME_COLUMNS;
    layout.spark = room > layout.name ? room - layout.name : 1;
    if (layout.spark > SPARK_COLUMNS) layout.spark = SPARK_COLUMNS;
    return layout;
}

bool history_is_shown(const struct history_view *view, const struct history_series *series) {
    char name[HISTORY_NAME_BYTES];
    history_series_name(series, name);
    return !view->test || !fnmatch(view->test, name, 0) || !fnmatch(view->test, series->test, 0);
}

size_t history_count_steps(const struct history *history, uint32_t series,
                           enum history_measure measure) {
    size_t count = 0;
    for (size_t i = 0; i < history->steps.count; i++)
        count +=
            history->steps.items[i].series == series && history->steps.items[i].measure == measure;
    return count;
}

bool history_is_open(const struct history *history, uint32_t series, enum history_measure measure) {
    for (size_t i = 0; i < history->open.count; i++)
        if (history->open.items[i].series == series && history->open.items[i].measure == measure)
            return true;
    return false;
}

static int compare_values(const void *a, const void *b) {
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

void history_line_free(struct history_line *line) {
    free(line->values);
    free(line->points);
    *line = (struct history_line){0};
}

bool history_line_of(const struct history_series *series, enum history_measure measure,
                     struct history_line *line) {
    size_t room = series->points.count + 1;
    int64_t *same = calloc(room, sizeof *same);
    *line = (struct history_line){calloc(room, sizeof *line->values),
                                  calloc(room, sizeof *line->points), 0};
    if (!same || !line->values || !line->points) {
        free(same);
        history_line_free(line);
        return false;
    }
    for (size_t i = 0; i < series->points.count;) {
        uint32_t commit = series->points.items[i].commit;
        size_t count = 0;
        for (; i < series->points.count && series->points.items[i].commit == commit; i++) {
            const struct history_figure *figure = &series->points.items[i].figures[measure];
            if (!figure->is_known) continue;
            same[count++] = figure->value;
            line->points[line->count] = (uint32_t)i;
        }
        if (!count) continue;
        qsort(same, count, sizeof *same, compare_values);
        line->values[line->count++] = same[count / 2];
    }
    free(same);
    return true;
}

// Where a line has more values than columns, a column shows the highest of its own.
static int64_t value_of_column(const struct history_line *line, size_t column, size_t columns) {
    size_t first = column * line->count / columns, end = (column + 1) * line->count / columns;
    int64_t highest = line->values[first];
    for (size_t i = first + 1; i < end; i++)
        if (line->values[i] > highest) highest = line->values[i];
    return highest;
}

// The lowest value is the lowest character, so that small steps are seen.
static void print_spark(const struct terminal *terminal, const struct history_line *line,
                        size_t columns) {
    static const char *const blocks[] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
                                         "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
                                         "\xe2\x96\x87", "\xe2\x96\x88"};
    enum { LAST = sizeof blocks / sizeof *blocks - 1 };
    size_t count = line->count < columns ? line->count : columns;
    int64_t low = line->values[0], high = line->values[0];
    for (size_t i = 0; i < line->count; i++) {
        if (line->values[i] < low) low = line->values[i];
        if (line->values[i] > high) high = line->values[i];
    }
    double span = (double)high - (double)low;
    for (size_t i = 0; i < count; i++) {
        double above = (double)value_of_column(line, i, count) - (double)low;
        fputs(blocks[span > 0 ? (int)(above / span * LAST + 0.5) : 0], terminal->out);
    }
    terminal_indent(terminal, columns - count);
}

static void print_padded(const struct terminal *terminal, const char *text, size_t columns) {
    char cut[HISTORY_NAME_BYTES];
    snprintf(cut, sizeof cut, "%s", text);
    text_cut(cut, columns);
    size_t used = text_columns(cut);
    fputs(cut, terminal->out);
    terminal_indent(terminal, columns > used ? columns - used : 0);
}

static struct unit_text amount(const struct history_view *view, enum history_measure measure,
                               int64_t value) {
    return history_measures[measure].is_bytes ? units_size_as(value, view->is_plain_number)
                                              : units_count(value);
}

static bool print_line(const struct history *history, const struct history_view *view,
                       const struct terminal *terminal, uint32_t index,
                       enum history_measure measure, bool is_first) {
    const struct history_series *series = &history->series.items[index];
    const struct layout layout = layout_of(terminal);
    struct history_line line;
    char name[HISTORY_NAME_BYTES];
    if (!history_line_of(series, measure, &line)) return false;
    history_series_name(series, name);
    if (line.count) {
        int64_t now = line.values[line.count - 1], first = line.values[0];
        size_t steps = history_count_steps(history, index, measure);
        struct unit_text change = history_change(measure, now - first);
        if (view->is_plain_number) change = units_size_as(now - first, true);
        fputs("  ", terminal->out);
        print_padded(terminal, is_first ? name : "", layout.name);
        fprintf(terminal->out, " %-*s ", MEASURE_COLUMNS, history_measures[measure].name);
        print_spark(terminal, &line, layout.spark);
        fprintf(terminal->out, " %*s", VALUE_COLUMNS, amount(view, measure, now).text);
        fprintf(terminal->out, " %*s", VALUE_COLUMNS, now == first ? "" : change.text);
        if (steps)
            terminal_print(terminal, STYLE_WARNING, "  %s",
                           units_counted((int64_t)steps, "step", "steps").text);
        fputc('\n', terminal->out);
    }
    history_line_free(&line);
    return true;
}

// A line for the peak, or the measure that was asked for, and one for each that moved.
static bool print_series(const struct history *history, const struct history_view *view,
                         const struct terminal *terminal, uint32_t index) {
    bool is_first = true;
    for (int measure = 0; measure < HISTORY_MEASURES; measure++) {
        enum history_measure which = (enum history_measure)measure;
        bool is_wanted = view->measure < 0 ? measure == HISTORY_PEAK ||
                                                 history_count_steps(history, index, which) ||
                                                 history_is_open(history, index, which)
                                           : measure == view->measure;
        if (!is_wanted) continue;
        if (!print_line(history, view, terminal, index, which, is_first)) return false;
        is_first = false;
    }
    return true;
}

static void print_heading(const struct history *history, const struct terminal *terminal) {
    terminal_print(terminal, STYLE_STRONG, "%s", history->store.path);
    fprintf(terminal->out, ": %s", units_counted((int64_t)history->run_count, "run", "runs").text);
    if (history->commits.count) {
        const struct history_commit *first = &history->commits.items[0],
                                    *last = &history->commits.items[history->commits.count - 1];
        fprintf(terminal->out, " of %s, %.*s to %.*s%s",
                units_counted((int64_t)history->commits.count, "commit", "commits").text, GIT_SHORT,
                first->hash, GIT_SHORT, last->hash, last->is_changed ? "+" : "");
    }
    fputc('\n', terminal->out);
    if (*history->note) terminal_print(terminal, STYLE_WARNING, "%s\n", history->note);
}

// Returns how many bytes it takes.
static int put_levels(const struct history_step *step, char *out, size_t size) {
    int64_t change = step->new_level - step->old_level;
    int used = snprintf(out, size, "%s \xe2\x86\x92 %s, %s",
                        history_amount(step->measure, step->old_level).text,
                        history_amount(step->measure, step->new_level).text,
                        history_change(step->measure, change).text);
    if (step->old_level > 0 && used < (int)size) {
        struct unit_text percent = units_percent(change, step->old_level);
        bool is_seen = strcmp(percent.text, "0.0 %") != 0 && strcmp(percent.text, "-0.0 %") != 0;
        if (is_seen)
            used += snprintf(out + used, size - (size_t)used, " (%s%s)", change > 0 ? "+" : "",
                             percent.text);
    }
    return used < (int)size ? used : (int)size - 1;
}

void history_open_text(const struct history_step *step, char *out, size_t size) {
    int used = put_levels(step, out, size);
    used += snprintf(out + used, size - (size_t)used, ": runs may vary, and %s before it",
                     units_counted((int64_t)step->runs_before, "run is", "runs are").text);
    if (used < (int)size && step->missing)
        snprintf(out + used, size - (size_t)used, "; %s of this commit would say whether it moved",
                 units_counted((int64_t)step->missing, "more run", "more runs").text);
    else if (used < (int)size)
        snprintf(out + used, size - (size_t)used, ", which are too few");
}

void history_step_text(const struct history_step *step, char *out, size_t size) {
    int used = put_levels(step, out, size);
    if (step->is_noisy && used < (int)size)
        snprintf(out + used, size - (size_t)used, ", where runs vary by \xc2\xb1 %s",
                 history_amount(step->measure, (int64_t)step->deviation).text);
}

static void print_range(const struct history *history, const struct history_step *step,
                        const struct terminal *terminal) {
    const struct history_commit *before = history_before(history, step),
                                *after = history_after(history, step);
    enum { HASHES_COLUMNS = 2 + GIT_SHORT + 2 + 2 + 2 * GIT_SHORT + 2 + 2, SUBJECT_LEAST = 20 };
    size_t columns = terminal->is_terminal ? terminal->columns : ELSEWHERE_COLUMNS;
    size_t room =
        columns > HASHES_COLUMNS + SUBJECT_LEAST ? columns - HASHES_COLUMNS : SUBJECT_LEAST;
    char subject[GIT_SUBJECT_BYTES];
    size_t between = history_commits_between(history, step);
    snprintf(subject, sizeof subject, "%s", history_subject(after));
    text_cut(subject, room);
    terminal_print(terminal, STYLE_NAME, "%.*s%s", GIT_SHORT, after->hash,
                   after->is_changed ? "+" : "");
    fprintf(terminal->out, "  %s", subject);
    terminal_print(terminal, STYLE_DIM, "  %.*s%s..%.*s%s", GIT_SHORT, before->hash,
                   before->is_changed ? "+" : "", GIT_SHORT, after->hash,
                   after->is_changed ? "+" : "");
    if (between > 1)
        fprintf(terminal->out, ", one of %s: cairn history bisect",
                units_counted((int64_t)between, "commit", "commits").text);
    fputc('\n', terminal->out);
}

// A claim of a figure as its sentence is, which may have less room than names: the levels stand
// out.
static void print_claim(const struct claim *claim, const struct terminal *terminal,
                        enum style style) {
    fprintf(terminal->out, "    %s %s: ", claim_text(claim, "where"), claim_text(claim, "what"));
    terminal_print(terminal, style, "%s\n", claim_text(claim, "levels"));
}

static bool print_step(struct history *history, const struct history_step *step,
                       const struct terminal *terminal, struct error *error) {
    struct history_moves moves;
    struct claim claim;
    if (!history_moves_find(history, step, MOVES_SHOWN, &moves, error)) return false;
    history_claim_of_step(history, step, &claim);
    print_claim(&claim, terminal, step->new_level > step->old_level ? STYLE_WARNING : STYLE_PLAIN);
    const char *old_system, *new_system;
    if (history_system_changed(history, step, &old_system, &new_system))
        terminal_print(terminal, STYLE_WARNING, "      recorded on %s, before on %s\n", new_system,
                       old_system);
    for (size_t i = 0; i < moves.list.count; i++) {
        const struct history_moved *moved = &moves.list.items[i];
        char frames[HISTORY_NAME_BYTES];
        enum { LEFT_OF_FRAMES = 6 + VALUE_COLUMNS + 2, FRAMES_LEAST = 24 };
        size_t place = moved->place ? strlen(moved->place) + 2 : 0;
        size_t columns = terminal->is_terminal ? terminal->columns : ELSEWHERE_COLUMNS;
        bool has_room = columns > LEFT_OF_FRAMES + place + FRAMES_LEAST;
        snprintf(frames, sizeof frames, "%s", moved->frames);
        text_cut(frames, has_room ? columns - LEFT_OF_FRAMES - place : FRAMES_LEAST);
        fprintf(terminal->out, "      %*s  %s", VALUE_COLUMNS,
                history_change(step->measure, moved->after - moved->before).text, frames);
        if (moved->place) terminal_print(terminal, STYLE_DIM, "  %s", moved->place);
        fputc('\n', terminal->out);
    }
    if (moves.more)
        fprintf(terminal->out, "      %*s  and %zu more\n", VALUE_COLUMNS, "", moves.more);
    history_moves_free(&moves);
    return true;
}

bool history_step_is_shown(const struct history *history, const struct history_view *view,
                           const struct history_step *step) {
    return (view->measure < 0 || (int)step->measure == view->measure) &&
           history_is_shown(view, &history->series.items[step->series]);
}

static bool is_same_range(const struct history *history, const struct history_step *one,
                          const struct history_step *other) {
    return history_before(history, one) == history_before(history, other) &&
           history_after(history, one) == history_after(history, other);
}

// Returns how many there are.
static size_t print_open(const struct history *history, const struct history_view *view,
                         const struct terminal *terminal) {
    size_t shown = 0;
    for (size_t i = 0; i < history->open.count; i++) {
        const struct history_step *step = &history->open.items[i];
        struct claim claim;
        if (!history_step_is_shown(history, view, step)) continue;
        if (!shown++) terminal_print(terminal, STYLE_STRONG, "\nnot known yet\n");
        history_claim_of_open(history, step, &claim);
        print_claim(&claim, terminal, STYLE_PLAIN);
    }
    return shown;
}

static bool print_steps(struct history *history, const struct history_view *view,
                        const struct terminal *terminal, struct error *error) {
    const struct history_step *last = NULL;
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < history->steps.count; i++) {
        const struct history_step *step = &history->steps.items[i];
        if (!history_step_is_shown(history, view, step)) continue;
        if (view->top && shown >= view->top) {
            left++;
            continue;
        }
        if (!shown++) terminal_print(terminal, STYLE_STRONG, "\nsteps, the newest first\n");
        if (!last || !is_same_range(history, last, step)) {
            fputs("  ", terminal->out);
            print_range(history, step, terminal);
        }
        if (!print_step(history, step, terminal, error)) return false;
        last = step;
    }
    if (left) fprintf(terminal->out, "  and %zu older ones (--top 0)\n", left);
    size_t open = print_open(history, view, terminal);
    if (!shown && open)
        fputs("no steps that are known\n", terminal->out);
    else if (!shown)
        fputs("\nno steps\n", terminal->out);
    return true;
}

bool history_print(struct history *history, const struct history_view *view,
                   const struct terminal *terminal, struct error *error) {
    const struct layout layout = layout_of(terminal);
    size_t shown = 0;
    print_heading(history, terminal);
    for (uint32_t i = 0; i < history->series.count; i++) {
        if (!history_is_shown(view, &history->series.items[i])) continue;
        if (!shown++)
            terminal_print(terminal, STYLE_DIM, "\n  %-*s %-*s %-*s %*s %*s\n", (int)layout.name,
                           "test", MEASURE_COLUMNS, "figure", (int)layout.spark, "over commits",
                           VALUE_COLUMNS, "now", VALUE_COLUMNS, "since first");
        if (!print_series(history, view, terminal, i))
            return error_set(error, "no memory for the table");
    }
    if (!shown && view->test)
        return error_set(error, "%s: no test is called \"%s\"", history->store.path, view->test);
    return print_steps(history, view, terminal, error);
}
