// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/answer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void answer_set(struct answer_row *row, size_t column, int64_t value) {
    answer_set_measured(row, column, (struct measured){.value = value, .blocks = value});
}

void answer_set_measured(struct answer_row *row, size_t column, struct measured measured) {
    row->cells[column] = (struct answer_cell){.state = ANSWER_KNOWN, .measured = measured};
}

void answer_set_real(struct answer_row *row, size_t column, double value) {
    row->cells[column] = (struct answer_cell){.state = ANSWER_KNOWN, .real = value};
}

void answer_set_ratio(struct answer_row *row, size_t column, int64_t part, int64_t whole) {
    answer_set_measured(row, column, (struct measured){.value = part, .blocks = whole});
}

void answer_set_text(struct answer_row *row, size_t column, const char *text) {
    row->cells[column] =
        (struct answer_cell){.state = text ? ANSWER_KNOWN : ANSWER_UNKNOWN, .text = text};
}

void answer_set_unknown(struct answer_row *row, size_t column) {
    row->cells[column] = (struct answer_cell){.state = ANSWER_UNKNOWN};
}

const struct answer_column answer_share_column = {.key = "share",
                                                  .unit = ANSWER_SHARE,
                                                  .place = ANSWER_FIGURE,
                                                  .style = STYLE_STRONG,
                                                  .width = 6};

struct answer_column answer_value_column(enum measure by, size_t width) {
    const struct measure_row *about = measure_about(by);
    return (struct answer_column){.key = "value",
                                  .head = about->snapshot,
                                  .unit = about->is_bytes ? ANSWER_BYTES : ANSWER_COUNT,
                                  .place = ANSWER_FIGURE,
                                  .width = width};
}

struct answer_column answer_other_ids_column(const struct profile *profile) {
    return (struct answer_column)ANSWER_DATA("other_ids", ANSWER_TEXT,
                                             .is_left_out = !profile || !profile->joined.count);
}

bool answer_is_sampled(const struct answer *answer) {
    return answer->profile ? answer->profile->sampling.is_on != 0 : answer->is_sampled;
}

static void add_line(struct answer *answer, struct answer_line like, const char *format,
                     va_list arguments) {
    if (answer->note_count == ANSWER_NOTES_MAX) return;
    struct answer_line *line = &answer->notes[answer->note_count++];
    *line = like;
    vsnprintf(line->text, sizeof line->text, format, arguments);
}

void answer_note(struct answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_line(answer, (struct answer_line){.style = STYLE_DIM}, format, arguments);
    va_end(arguments);
}

void answer_show(struct answer *answer, const char *format, ...) {
    const struct answer_line like = {.is_for_people = true, .style = STYLE_DIM};
    va_list arguments;
    va_start(arguments, format);
    add_line(answer, like, format, arguments);
    va_end(arguments);
}

void answer_note_plain(struct answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_line(answer, (struct answer_line){.style = STYLE_PLAIN}, format, arguments);
    va_end(arguments);
}

void answer_note_above(struct answer *answer, enum style style, const char *format, ...) {
    const struct answer_line like = {.is_above = true, .style = style};
    va_list arguments;
    va_start(arguments, format);
    add_line(answer, like, format, arguments);
    va_end(arguments);
}

void answer_show_above(struct answer *answer, enum style style, const char *format, ...) {
    const struct answer_line like = {.is_above = true, .is_for_people = true, .style = style};
    va_list arguments;
    va_start(arguments, format);
    add_line(answer, like, format, arguments);
    va_end(arguments);
}

void answer_part(struct answer *answer, enum answer_readers readers, enum style style,
                 const char *format, ...) {
    const struct answer_line like = {
        .is_for_people = readers == ANSWER_PEOPLE, .is_part = true, .style = style};
    va_list arguments;
    va_start(arguments, format);
    add_line(answer, like, format, arguments);
    va_end(arguments);
}

static struct answer_cell *add_fact(struct answer *answer, const char *key, enum answer_unit unit) {
    assert(answer->fact_count < ANSWER_FACTS_MAX);
    struct answer_fact *fact = &answer->facts[answer->fact_count++];
    *fact = (struct answer_fact){.key = key, .unit = unit, .cell = {.state = ANSWER_UNKNOWN}};
    return &fact->cell;
}

void answer_fact(struct answer *answer, const char *key, enum answer_unit unit, int64_t value) {
    struct answer_cell *cell = add_fact(answer, key, unit);
    cell->state = ANSWER_KNOWN;
    cell->measured.value = value;
}

void answer_fact_known(struct answer *answer, const char *key, enum answer_unit unit, int64_t value,
                       bool is_known) {
    if (is_known)
        answer_fact(answer, key, unit, value);
    else
        (void)add_fact(answer, key, unit);
}

void answer_fact_cell(struct answer *answer, const char *key, enum answer_unit unit,
                      const struct answer_cell *cell) {
    *add_fact(answer, key, unit) = *cell;
}

void answer_fact_text(struct answer *answer, const char *key, const char *text) {
    struct answer_cell *cell = add_fact(answer, key, ANSWER_TEXT);
    cell->state = text ? ANSWER_KNOWN : ANSWER_UNKNOWN;
    cell->text = text;
}

bool answer_next(struct answer *answer, enum answer_use use, struct answer_row *row) {
    for (;;) {
        memset(row, 0, sizeof *row);
        if (!answer->next_row(answer, row)) return false;
        if (row->use == ANSWER_FOR_ALL || row->use == use) return true;
    }
}

bool answer_check(const struct answer *answer, struct error *error) {
    return !answer->is_failed ||
           error_set(error, "no memory for the rows of view %s", answer->view);
}

struct answer *answer_add_table(struct answer **place) {
    *place = calloc(1, sizeof **place);
    return *place;
}

static void close_table(struct answer *table) {
    if (table) answer_close(table);
    free(table);
}

void answer_close(struct answer *answer) {
    if (answer->close) answer->close(answer->state);
    close_table(answer->above);
    close_table(answer->below);
    *answer = (struct answer){0};
}
