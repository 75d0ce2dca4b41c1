// SPDX-License-Identifier: Apache-2.0
// A table in Markdown, for a comment or a page: the columns that people see, values as they read
// them, and of a stack the frame that leads with two callers.
#include <string.h>

#include "tool/answer/forms.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"

// A mark of Markdown or HTML in a name is no mark.
static void put_text(FILE *out, const char *text) {
    answer_put_safe(out, text, "\\`*_{}[]<>#|~&!", "\n", ' ');
}

static const struct answer_column *next_column(const struct answer *answer, size_t *index) {
    while (*index < answer->column_count) {
        const struct answer_column *column = &answer->columns[(*index)++];
        if (column->place != ANSWER_NOWHERE && column->place < ANSWER_PHRASE &&
            !column->is_left_out)
            return column;
    }
    return NULL;
}

static const char *head_of(const struct answer_column *column) {
    if (column->noun) return column->noun[1];
    if (column->head && *column->head) return column->head;
    return column->unit == ANSWER_SHARE ? "share" : column->key ? column->key : "";
}

static void put_heads(FILE *out, const struct answer *answer) {
    const struct answer_column *column;
    for (size_t index = 0; (column = next_column(answer, &index));) {
        fputs("| ", out);
        put_text(out, head_of(column));
        fputc(' ', out);
    }
    fputs(answer->has_frames ? "| stack |\n" : "|\n", out);
    for (size_t index = 0; (column = next_column(answer, &index));)
        fputs(column->unit == ANSWER_TEXT ? "|---" : "|---:", out);
    fputs(answer->has_frames ? "|---|\n" : "|\n", out);
}

static void put_stack(FILE *out, const struct answer *answer, const struct frame_list *list) {
    enum { FRAMES = 3 };
    struct frame_list frames = *list;
    char location[FRAME_TEXT_BYTES];
    frames.are_all_shown = answer->options->has_all_frames;
    const struct frame_lead lead = frame_list_lead(&frames);
    const struct frame *last = NULL;
    size_t index = lead.next;
    int told = 0;
    for (const struct frame *frame = lead.frame; frame && told < FRAMES;
         frame = frame_list_next(&frames, &index)) {
        char label[FRAME_TEXT_BYTES];
        if (last && frame_is_same_function(frame, last)) continue;
        frame_label(frame, label, sizeof label, sizeof label);
        frame_location(frame, location, sizeof location);
        fputs(told ? " \xe2\x86\x90 " : "", out);
        put_text(out, label);
        if (!told && *location) {
            fputc(' ', out);
            put_text(out, location);
        }
        last = frame;
        told++;
    }
}

static void put_cell(FILE *out, const struct answer *answer, const struct answer_column *column,
                     const struct answer_cell *cell) {
    if (cell->state == ANSWER_UNKNOWN) fputs("not known", out);
    if (cell->state != ANSWER_KNOWN) return;
    if (column->unit == ANSWER_TEXT)
        put_text(out, cell->text);
    else
        fputs(answer_value_text(answer, column, cell).text, out);
    if (column->has_share && cell->measured.value)
        fprintf(out, " (%s)", units_percent(cell->measured.value, answer->whole).text);
    if (column->is_estimate && answer_is_sampled(answer))
        fprintf(out, " (%s)", interval_note(cell->measured).text);
}

// Returns false for dots that a screen has in the place of rows.
static bool has_values(const struct answer *answer, const struct answer_row *row) {
    for (size_t i = 0; i < answer->column_count; i++)
        if (row->cells[i].state != ANSWER_ABSENT) return true;
    return false;
}

static void put_row(FILE *out, const struct answer *answer, const struct answer_row *row) {
    const struct answer_column *column;
    size_t indent = row->level;  // of the first text
    for (size_t index = 0; (column = next_column(answer, &index));) {
        fputs("| ", out);
        for (; column->unit == ANSWER_TEXT && indent; indent--) fputs("&nbsp;&nbsp;", out);
        put_cell(out, answer, column, &row->cells[index - 1]);
        fputc(' ', out);
    }
    if (answer->has_frames) fputs("| ", out);
    if (answer->has_frames && row->frames) put_stack(out, answer, row->frames);
    fputs(answer->has_frames ? " |\n" : "|\n", out);
}

bool answer_print_md(FILE *out, struct answer *answer, struct error *error) {
    struct answer_row row;
    fputs("**", out);
    put_text(out, answer->title);
    fputs("**", out);
    put_text(out, answer->title_rest);
    if (answer->shown < answer->count)
        fprintf(out, ", the first %s", units_count((int64_t)answer->shown).text);
    fputs("\n\n", out);
    if (answer->count) put_heads(out, answer);
    while (answer_next(answer, ANSWER_FOR_PEOPLE, &row))
        if (has_values(answer, &row)) put_row(out, answer, &row);
    if (!answer->count && *answer->none) {
        put_text(out, answer->none);
        fputc('\n', out);
    }
    for (size_t i = 0; i < answer->note_count; i++) {
        fputc('\n', out);
        put_text(out, answer->notes[i].text);
        fputc('\n', out);
    }
    return answer_check(answer, error);
}
