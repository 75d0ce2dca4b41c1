// SPDX-License-Identifier: Apache-2.0
#include "tool/render/annotate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/answer/forms.h"
#include "tool/base/confine.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/groups.h"
#include "tool/render/interval.h"
#include "tool/render/shorten.h"

enum {
    CONTEXT_LINES = 2,
    SIZE_COLUMNS = 10,
    PLAIN_SIZE_COLUMNS = 15,
    CALLS_COLUMNS = 11,
    NUMBER_COLUMNS = 5,
    LINE_BYTES = 4096,
    TAB_COLUMNS = 8,
    LISTED_MAX = 6,
};

// The file's lines are found in these by "path:number".
struct annotation {
    const struct view_options *view;
    struct group_list files, lines, calls;
    char path[GROUP_TEXT_BYTES];
    const struct group *file;
};

bool annotate_is_meant(const char *path, const char *wanted) {
    size_t length = strlen(path), part = strlen(wanted);
    if (part > length || strcmp(path + length - part, wanted) != 0) return false;
    return part == length || path[length - part - 1] == '/' || *wanted == '/';
}

static void list_files(const struct group_list *files, char *list, size_t size) {
    size_t listed = 0;
    *list = 0;
    for (size_t i = 0; i < files->groups.count && listed < LISTED_MAX; i++) {
        const char *label = files->groups.items[i].label;
        size_t used = strlen(list);
        if (*label == '[') continue;
        snprintf(list + used, size - used, "%s%s", listed++ ? ", " : "", text_base_name(label));
    }
}

// Without a wish: the file that most goes through, headers of the system behind all others.
static bool is_better(const struct group *a, const struct group *b) {
    bool is_a_system = !strncmp(a->label, "/usr/", 5), is_b_system = !strncmp(b->label, "/usr/", 5);
    if (is_a_system != is_b_system) return is_b_system;
    return a->total.value > b->total.value;
}

static bool choose_file(struct annotation *annotation, const char *wanted, struct error *error) {
    char list[GROUP_TEXT_BYTES / 4];
    const struct group_list *files = &annotation->files;
    for (size_t i = 0; i < files->groups.count; i++) {
        const struct group *file = &files->groups.items[i], *best = annotation->file;
        bool is_right =
            wanted ? annotate_is_meant(file->label, wanted) : !access(file->label, R_OK);
        if (!is_right) continue;
        if (!best || (!wanted && is_better(file, best))) annotation->file = file;
    }
    if (annotation->file) {
        snprintf(annotation->path, sizeof annotation->path, "%s", annotation->file->label);
        return true;
    }
    list_files(files, list, sizeof list);
    if (!*list) return error_set(error, "no stack knows its source: there is no debug information");
    if (wanted)
        return error_set(error, "--source '%s': no stack goes through it, but through %s", wanted,
                         list);
    return error_set(error, "no source file can be read here; the stacks go through %s", list);
}

static const struct group *group_of_line(const struct annotation *annotation,
                                         const struct group_list *list, unsigned number) {
    char key[GROUP_TEXT_BYTES + 16];
    snprintf(key, sizeof key, "%s:%u", annotation->path, number);
    int64_t index = group_list_find(list, key);
    return index < 0 ? NULL : &list->groups.items[index];
}

void annotate_expand(const char *line, char *out, size_t size) {
    size_t used = 0;
    for (; *line && *line != '\n' && *line != '\r' && used + TAB_COLUMNS < size; line++) {
        size_t stop = *line == '\t' ? (used / TAB_COLUMNS + 1) * TAB_COLUMNS : used + 1;
        while (used < stop) out[used++] = *line == '\t' ? ' ' : *line;
    }
    out[used] = 0;
}

static bool has_figures(const struct annotation *annotation, unsigned number) {
    return group_of_line(annotation, &annotation->lines, number) ||
           group_of_line(annotation, &annotation->calls, number);
}

static bool is_wanted(const struct annotation *annotation, unsigned number) {
    if (!annotation->view->top) return true;
    for (unsigned i = number > CONTEXT_LINES ? number - CONTEXT_LINES : 1;
         i <= number + CONTEXT_LINES; i++)
        if (has_figures(annotation, i)) return true;
    return false;
}

static void tell_heading(struct answer *answer, const struct annotation *annotation, FILE *source) {
    const uint64_t ns_per_s = 1000000000u;
    const struct measured total = annotation->file->total;
    struct stat status;
    bool is_estimate = measured_interval(total) > 0;
    char path[sizeof annotation->path];
    snprintf(path, sizeof path, "%s", annotation->path);
    shorten_path(path, sizeof answer->title / 2);
    snprintf(answer->title, sizeof answer->title, "%s", path);
    snprintf(answer->title_rest, sizeof answer->title_rest, ", with all it calls %s%s%s %s",
             units_percent(total.value, answer->whole).text, is_estimate ? ", " : "",
             is_estimate ? interval_note(total).text : "",
             measure_about(annotation->view->by)->snapshot);
    if (!fstat(fileno(source), &status) &&
        (uint64_t)status.st_mtime > answer->profile->recording->header.start_unix_ns / ns_per_s)
        answer_note_above(answer, STYLE_WARNING,
                          "the file is newer than the recording: lines may have moved");
}

FILE *annotate_open_source(const char *path) {
    struct stat status;
    if (stat(path, &status)) return NULL;
    errno = EINVAL;
    FILE *file = S_ISREG(status.st_mode) ? fopen(path, "re") : NULL;
    if (!file || confine_allows(fileno(file), NULL)) return file;
    fclose(file);
    errno = EACCES;
    return NULL;
}

static bool build(struct annotation *annotation, const struct profile *profile,
                  const struct frame_names *names, struct error *error) {
    struct view_options calls = *annotation->view;
    calls.by = MEASURE_CALLS;
    return group_list_build(&annotation->files, &groupings[GROUP_FILES], profile, names,
                            annotation->view, error) &&
           group_list_build(&annotation->lines, &groupings[GROUP_LINES], profile, names,
                            annotation->view, error) &&
           group_list_build(&annotation->calls, &groupings[GROUP_LINES], profile, names, &calls,
                            error);
}

static void close_annotation(struct annotation *annotation) {
    group_list_free(&annotation->files);
    group_list_free(&annotation->lines);
    group_list_free(&annotation->calls);
}

// Opens the source, too. False with an error; then there is nothing to close.
static bool open_annotation(struct annotation *annotation, const struct profile *profile,
                            const struct frame_names *names, const char *wanted, FILE **source,
                            struct error *error) {
    bool is_ok = build(annotation, profile, names, error) && choose_file(annotation, wanted, error);
    if (is_ok) {
        *source = annotate_open_source(annotation->path);
        // a source that was moved: as the user named it
        if (!*source && wanted) *source = annotate_open_source(wanted);
        if (*source) return true;
        error_set(error, "%s: %s", annotation->path, strerror(errno));
    }
    close_annotation(annotation);
    return false;
}

enum annotated_column {
    ANNOTATED_SELF,
    ANNOTATED_TOTAL,
    ANNOTATED_CALLS,
    ANNOTATED_LINE,
    ANNOTATED_TEXT,
    ANNOTATED_COLUMNS
};

struct annotated {
    struct annotation annotation;
    FILE *source;
    unsigned number, last;  // the last one that people see
    bool is_left;           // a line was read that is not told yet
    char line[LINE_BYTES], text[LINE_BYTES];
    struct answer_column columns[ANNOTATED_COLUMNS];
};

static void set_line(struct annotated *annotated, struct answer_row *row) {
    const struct annotation *annotation = &annotated->annotation;
    const unsigned number = annotated->number;
    const struct group *figures = group_of_line(annotation, &annotation->lines, number);
    const struct group *calls = group_of_line(annotation, &annotation->calls, number);
    annotate_expand(annotated->line, annotated->text, sizeof annotated->text);
    row->is_strong = figures;
    if (figures) answer_set_measured(row, ANNOTATED_SELF, figures->self);
    if (figures) answer_set_measured(row, ANNOTATED_TOTAL, figures->total);
    if (calls) answer_set_measured(row, ANNOTATED_CALLS, calls->total);
    answer_set(row, ANNOTATED_LINE, number);
    answer_set_text(row, ANNOTATED_TEXT, annotated->text);
}

// Lines without figures are for programs alone where they are far from all that have some; dots
// stand for them on a screen.
static bool next_line(struct answer *answer, struct answer_row *row) {
    struct annotated *annotated = answer->state;
    if (!annotated->is_left) {
        if (!fgets(annotated->line, sizeof annotated->line, annotated->source)) return false;
        annotated->number++;
    }
    annotated->is_left = false;
    bool is_for_people = is_wanted(&annotated->annotation, annotated->number);
    if (is_for_people && annotated->number > annotated->last + 1) {
        annotated->last = annotated->number - 1;
        annotated->is_left = true;
        row->use = ANSWER_FOR_PEOPLE;
        row->instead = "...";
        return true;
    }
    if (is_for_people)
        annotated->last = annotated->number;
    else
        row->use = ANSWER_FOR_PROGRAMS;
    set_line(annotated, row);
    return true;
}

static void close_annotated(void *state) {
    struct annotated *annotated = state;
    fclose(annotated->source);
    close_annotation(&annotated->annotation);
    free(annotated);
}

static size_t count_lines(FILE *source) {
    char line[LINE_BYTES];
    size_t count = 0;
    while (fgets(line, sizeof line, source)) count++;
    rewind(source);
    return count;
}

// On a screen samples have intervals in the place of calls, which are estimates as well.
static void set_columns(struct annotated *annotated, const struct view_options *view,
                        bool is_sampled) {
    const enum answer_unit unit = measure_about(view->by)->is_bytes ? ANSWER_BYTES : ANSWER_COUNT;
    const enum answer_note note = is_sampled ? ANSWER_NARROW_NOTE : ANSWER_NO_NOTE;
    const size_t size = view->is_plain_number ? PLAIN_SIZE_COLUMNS : SIZE_COLUMNS;
    const struct answer_column columns[ANNOTATED_COLUMNS] = {
        [ANNOTATED_SELF] = ANSWER_FIGURES("self", "self", unit, size, .is_estimate = true,
                                          .is_blank = true, .note = note),
        [ANNOTATED_TOTAL] = ANSWER_FIGURES("total", "total", unit, size, .is_estimate = true,
                                           .is_blank = true, .note = note),
        [ANNOTATED_CALLS] =
            ANSWER_FIGURES("calls", "calls", ANSWER_COUNT, CALLS_COLUMNS, .is_estimate = true,
                           .shown_from = is_sampled ? SIZE_MAX : 0),
        [ANNOTATED_LINE] =
            ANSWER_FIGURES("line", "line", ANSWER_NUMBER, NUMBER_COLUMNS + 1, .style = STYLE_DIM),
        [ANNOTATED_TEXT] = {
            .key = "text", .head = "text", .place = ANSWER_TAIL_LINE, .before = "  "}};
    memcpy(annotated->columns, columns, sizeof columns);
}

bool annotate_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     const char *wanted, struct error *error) {
    struct annotated *annotated = calloc(1, sizeof *annotated);
    if (!annotated) {
        error_set(error, "no memory for a source file");
        return false;
    }
    annotated->annotation.view = view;
    if (!open_annotation(&annotated->annotation, profile, names, wanted, &annotated->source,
                         error)) {
        free(annotated);
        return false;
    }
    size_t count = count_lines(annotated->source);
    set_columns(annotated, view, profile->sampling.is_on != 0);
    *answer = (struct answer){.profile = profile,
                              .options = view,
                              .measure = measure_name(view->by),
                              .columns = annotated->columns,
                              .column_count = ANNOTATED_COLUMNS,
                              .is_path = true,
                              .has_heads_always = true,
                              .whole = measure_total(view->by, profile).value,
                              .shown = count,
                              .count = count,
                              .next_row = next_line,
                              .close = close_annotated,
                              .state = annotated};
    tell_heading(answer, &annotated->annotation, annotated->source);
    return true;
}
