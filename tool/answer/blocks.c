// SPDX-License-Identifier: Apache-2.0
#include "tool/answer/blocks.h"

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/columns.h"
#include "tool/render/interval.h"
#include "tool/render/stacks.h"

enum { PHRASE_BYTES = 256, RANK_COLUMNS = 4, SHARE_COLUMNS = 5, TITLE_INDENT = 2 };

// A sentence in phrases with commas between them; what does not fit goes to the next line.
struct phrases {
    const struct terminal *terminal;
    size_t used;  // columns of the line so far
};

static void phrases_add(struct phrases *phrases, const char *phrase) {
    const struct terminal *terminal = phrases->terminal;
    size_t columns = text_columns(phrase);
    bool is_new = phrases->used + 2 + columns > terminal->columns;
    if (phrases->used) fputs(is_new ? ",\n" : ", ", terminal->out);
    if (!phrases->used || is_new) terminal_indent(terminal, STACKS_NOTE_INDENT);
    phrases->used = phrases->used && !is_new ? phrases->used + 2 : STACKS_NOTE_INDENT;
    phrases->used =
        terminal_print_words(terminal, STYLE_DIM, phrases->used, STACKS_NOTE_INDENT + 2, phrase);
}

struct amount {
    char text[2 * sizeof(struct unit_text)];
};

// "20.7 MiB ± 1.2 MiB".
static struct amount amount_of(const struct answer *answer, const struct answer_column *column,
                               struct measured measured) {
    const bool is_bytes = column->unit == ANSWER_BYTES;
    const bool is_plain = is_bytes && answer->options->is_plain_number;
    struct unit_text value = is_bytes ? units_size_as(measured_shown(measured), is_plain)
                                      : units_count(measured_shown(measured));
    struct amount amount;
    snprintf(amount.text, sizeof amount.text, "%s%s", value.text,
             interval_amount(measured, is_bytes, is_plain).text);
    return amount;
}

// Writes "allocated 20.7 MiB ± 1.2 MiB (62 samples) in 812 calls": the column, and those that go on
// with its phrase.
static void phrase_text(const struct answer *answer, const struct answer_row *row, size_t column,
                        char phrase[PHRASE_BYTES]) {
    size_t used = 0;
    for (size_t i = column; i < answer->column_count && used < PHRASE_BYTES; i++) {
        const struct answer_column *part = &answer->columns[i];
        const struct measured measured = row->cells[i].measured;
        if (i > column && part->place != ANSWER_PHRASE_ON) return;
        used += (size_t)snprintf(
            phrase + used, PHRASE_BYTES - used, "%s%s%s%s%s%s", part->before ? part->before : "",
            amount_of(answer, part, measured).text,
            i == column ? interval_samples(measured).text : "", part->noun ? " " : "",
            part->noun ? part->noun[measured.value != 1] : "", part->behind ? part->behind : "");
    }
}

static void print_phrases(const struct terminal *terminal, const struct answer *answer,
                          const struct answer_row *row) {
    struct terminal narrower = *terminal;  // by the comma that may follow
    struct phrases phrases = {.terminal = &narrower};
    narrower.columns--;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        char phrase[PHRASE_BYTES] = "";
        if (column->place != ANSWER_PHRASE || column->is_left_out) continue;
        phrase_text(answer, row, i, phrase);
        phrases_add(&phrases, phrase);
    }
    if (phrases.used) fputc('\n', terminal->out);
}

// Prints the figures of a row from column `used` on, and how sure the first of them is; NULL: that
// is not said.
static void print_amounts(const struct terminal *terminal, const char *amounts, size_t used,
                          const struct measured *sure) {
    char note[PHRASE_BYTES];
    used = terminal_print_words(terminal, STYLE_PLAIN, used, STACKS_NOTE_INDENT, amounts);
    if (!sure) return;
    snprintf(note, sizeof note, " %s", interval_note(*sure).text);
    terminal_print_words(terminal, measured_is_unreliable(*sure) ? STYLE_WARNING : STYLE_DIM, used,
                         STACKS_NOTE_INDENT, note);
}

// "  1  75 % 20.7 MiB ± 1.2 MiB in 812 ± 90 blocks, ± 6 %, 62 samples".
static void print_head(const struct terminal *terminal, const struct answer *answer,
                       const struct answer_row *row) {
    const struct measured *first = NULL;
    const char *noun = "";
    bool has_note = false;
    char amounts[PHRASE_BYTES] = "";
    size_t bytes = 0, used = RANK_COLUMNS;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        const struct measured *measured = &row->cells[i].measured;
        if (column->place != ANSWER_FIGURE || column->is_left_out) continue;
        if (column->unit == ANSWER_SHARE) {
            // of estimates that stand on samples of their own a part may be more than the whole
            int64_t whole = answer->whole > measured->value ? answer->whole : measured->value;
            terminal_print(terminal, STYLE_STRONG, "%*s", SHARE_COLUMNS,
                           units_percent(measured->value, whole).text);
            used += SHARE_COLUMNS;
            continue;
        }
        if (bytes < sizeof amounts)
            bytes +=
                (size_t)snprintf(amounts + bytes, sizeof amounts - bytes, "%s%s",
                                 first ? " in " : " ", amount_of(answer, column, *measured).text);
        if (!first) noun = answer->noun[measured->blocks != 1];
        if (!first) first = measured;
        has_note |= column->note != ANSWER_NO_NOTE;
    }
    has_note &= first != NULL;
    if (bytes < sizeof amounts)
        snprintf(amounts + bytes, sizeof amounts - bytes, "%s%s%s", *noun ? " " : "", noun,
                 has_note ? "," : "");
    print_amounts(terminal, amounts, used, has_note ? first : NULL);
    fputc('\n', terminal->out);
}

static void print_block(const struct terminal *terminal, struct answer *answer,
                        const struct answer_row *row, size_t rank) {
    terminal_print(terminal, STYLE_DIM, "\n%*zu ", RANK_COLUMNS - 1, rank);
    if (answer->noun) print_head(terminal, answer, row);
    if (answer->noun) print_phrases(terminal, answer, row);
    if (!answer->noun) answer->say(terminal, answer, ANSWER_SAY_FIGURES);
    if (answer->say) answer->say(terminal, answer, ANSWER_SAY_ABOVE);
    if (row->frames) stacks_print_frames(terminal, row->frames, row->cut, answer->options->depth);
    if (answer->say) answer->say(terminal, answer, ANSWER_SAY_BELOW);
}

static void print_notes(const struct terminal *terminal, const struct answer *answer,
                        bool are_above) {
    struct parts parts = {.terminal = terminal};
    for (size_t i = 0; i < answer->note_count; i++) {
        const struct answer_line *line = &answer->notes[i];
        if (line->is_above != are_above) continue;
        if (!are_above && !parts.used) fputc('\n', terminal->out);
        if (line->is_part)
            parts_add(&parts, line->style, "%s", line->text);
        else
            terminal_print_line(terminal, line->style, "%s", line->text);
    }
    parts_end(&parts);
}

void blocks_print(const struct terminal *terminal, struct answer *answer) {
    struct answer_row row;
    size_t rank = 0, hidden = 0;
    const size_t used =
        terminal_print_words(terminal, STYLE_STRONG, 0, TITLE_INDENT, answer->title);
    terminal_print_words(terminal, STYLE_PLAIN, used, TITLE_INDENT, answer->title_rest);
    list_print_cut(terminal, answer->options, answer->shown, answer->count);
    fputc('\n', terminal->out);
    print_notes(terminal, answer, true);
    if (!answer->count && *answer->none)
        terminal_print_line(terminal, STYLE_DIM, "%s", answer->none);
    while (answer_next(answer, ANSWER_FOR_PEOPLE, &row)) {
        if (answer->noun) hidden += row.frames->frames.count - row.frames->shown_count;
        print_block(terminal, answer, &row, ++rank);
    }
    if (hidden)
        terminal_print(terminal, STYLE_DIM, "\n%s internal %s hidden: --all-frames\n",
                       units_count((int64_t)hidden).text,
                       units_noun((int64_t)hidden, "frame is", "frames are"));
    print_notes(terminal, answer, false);
}
