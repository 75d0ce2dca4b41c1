// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/answer.h"

#include <stdarg.h>
#include <stdio.h>
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

bool answer_is_sampled(const struct answer *answer) {
    return answer->profile ? answer->profile->sampling.is_on != 0 : answer->is_sampled;
}

void answer_note(struct answer *answer, const char *format, ...) {
    va_list arguments;
    if (answer->note_count == ANSWER_NOTES_MAX) return;
    va_start(arguments, format);
    vsnprintf(answer->notes[answer->note_count++], ANSWER_NOTE_BYTES, format, arguments);
    va_end(arguments);
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

void answer_close(struct answer *answer) {
    if (answer->close) answer->close(answer->state);
    *answer = (struct answer){0};
}
