// SPDX-License-Identifier: Apache-2.0
// A line a row as compilers print errors, "file:line: text", which editors jump to: of a stack the
// frame that leads, of a source line itself. Rows without a place have the text alone.
#include <ctype.h>
#include <string.h>

#include "tool/answer/forms.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"

static void put_text(FILE *out, const char *text) {
    answer_put_safe(out, text, "", "\n", ' ');
}

// A text that ends as "file:line" does.
static bool is_place(const char *text) {
    const char *colon = text ? strrchr(text, ':') : NULL;
    return colon && colon > text && isdigit((unsigned char)colon[1]) &&
           !colon[1 + strspn(colon + 1, "0123456789")];
}

static void put_place(FILE *out, const struct frame *frame) {
    answer_put_safe(out, frame->file, "", "\n:", ' ');
    fprintf(out, ":%u: ", frame->line ? frame->line : 1);
}

static const char *word_of(const struct answer_column *column, int64_t value) {
    if (column->noun) return column->noun[value != 1];
    return column->unit == ANSWER_SHARE ? NULL : column->head ? column->head : column->key;
}

static void put_figure(FILE *out, const struct answer *answer, const struct answer_column *column,
                       const struct answer_cell *cell) {
    const char *word = word_of(column, cell->measured.value);
    fputs(answer_value_text(answer, column, cell).text, out);
    if (column->has_share && cell->measured.value)
        fprintf(out, " (%s)", units_percent(cell->measured.value, answer->whole).text);
    if (column->is_estimate && answer_is_sampled(answer))
        fprintf(out, " (%s)", interval_note(cell->measured).text);
    size_t size = word ? strlen(word) : 0;
    bool is_one = column->unit == ANSWER_COUNT && cell->measured.value == 1;
    if (is_one && !column->noun && size && word[size - 1] == 's') size--;
    if (size) fprintf(out, " %.*s", (int)size, word);
}

// Writes what people see of a row but for its place: figures first, then texts.
static void put_cells(FILE *out, const struct answer *answer, const struct answer_row *row,
                      const char *place) {
    bool has_any = false;
    for (int are_texts = 0; are_texts < 2; are_texts++) {
        for (size_t i = 0; i < answer->column_count; i++) {
            const struct answer_column *column = &answer->columns[i];
            const struct answer_cell *cell = &row->cells[i];
            bool is_text = column->unit == ANSWER_TEXT;
            if (column->place == ANSWER_NOWHERE || column->place >= ANSWER_PHRASE ||
                column->is_left_out || is_text != are_texts || cell->state != ANSWER_KNOWN ||
                (place && is_text && is_place(cell->text)))
                continue;
            if (has_any) fputs(", ", out);
            has_any = true;
            if (is_text)
                put_text(out, cell->text);
            else
                put_figure(out, answer, column, cell);
        }
    }
}

// Returns the place that a row tells, the longest one: programs have the path of the file.
static const char *place_in(const struct answer *answer, const struct answer_row *row) {
    const char *place = NULL;
    for (size_t i = 0; i < answer->column_count; i++) {
        const char *text = row->cells[i].text;
        bool is_one = answer->columns[i].unit == ANSWER_TEXT &&
                      row->cells[i].state == ANSWER_KNOWN && is_place(text);
        if (is_one && (!place || strlen(text) > strlen(place))) place = text;
    }
    return place;
}

static void put_function(FILE *out, const struct frame *frame, const char *before) {
    if (!frame || !frame->function) return;
    fputs(before, out);
    put_text(out, frame->function);
}

static void put_row(FILE *out, const struct answer *answer, const struct answer_row *row) {
    const char *place = row->frames ? NULL : place_in(answer, row);
    struct frame_lead lead = {.frame = NULL};
    if (row->frames) {
        struct frame_list frames = *row->frames;
        frames.are_all_shown = answer->options->has_all_frames;
        lead = frame_list_lead(&frames);
    }
    if (lead.frame && lead.frame->file) {
        put_place(out, lead.frame);
    } else if (place) {
        put_text(out, place);
        fputs(": ", out);
    }
    put_cells(out, answer, row, place);
    put_function(out, lead.frame, ": ");
    put_function(out, lead.callee, " \xe2\x86\x92 ");
    fputc('\n', out);
}

bool answer_print_unix(FILE *out, struct answer *answer, struct error *error) {
    struct answer_row row;
    while (answer_next(answer, ANSWER_FOR_PROGRAMS, &row)) put_row(out, answer, &row);
    return answer_check(answer, error);
}
