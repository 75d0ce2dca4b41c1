// SPDX-License-Identifier: Apache-2.0
// The screen: a heading, heads of columns, a line a row, notes. It is the same on a terminal and in
// a pipe, but for colours.
#include <stdlib.h>
#include <string.h>

#include "tool/answer/blocks.h"
#include "tool/answer/branches.h"
#include "tool/answer/forms.h"
#include "tool/base/text.h"
#include "tool/render/columns.h"
#include "tool/render/interval.h"
#include "tool/render/shorten.h"

enum {
    SHARE_COLUMNS = 7,
    NOUN_COLUMNS = 8,  // " blocks "
    NAME_COLUMNS_MIN = 22,
    CUT_COLUMNS_MIN = 8,
    TAIL_BYTES = 8192,
    TAIL_GAP = 2,
    TITLE_INDENT = 2,
};

static size_t note_columns(const struct answer_column *column) {
    if (column->note == ANSWER_NO_NOTE) return 0;
    return 2 +
           (column->note == ANSWER_NARROW_NOTE ? INTERVAL_NARROW_COLUMNS : INTERVAL_NOTE_COLUMNS);
}

static bool is_figure(const struct terminal *terminal, const struct answer_column *column) {
    return column->place == ANSWER_FIGURE && !column->is_left_out &&
           terminal->columns >= column->shown_from;
}

static bool is_tail(const struct answer_column *column) {
    return column->place > ANSWER_FIGURE && column->place < ANSWER_PHRASE && !column->is_left_out;
}

static bool has_share(const struct terminal *terminal, const struct answer_column *column) {
    return column->has_share && terminal->columns >= column->share_from;
}

static size_t value_width(const struct terminal *terminal, const struct answer_column *column) {
    return column->width + (has_share(terminal, column) ? SHARE_COLUMNS : 0);
}

// Columns that figures take, with blanks before and between them.
static size_t figures_width(const struct terminal *terminal, const struct answer *answer) {
    size_t width = answer->indent, count = 0;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        if (!is_figure(terminal, column)) continue;
        width += (count++ ? answer->gap : 0) + value_width(terminal, column) +
                 note_columns(column) + (column->noun ? NOUN_COLUMNS : 0);
    }
    return width;
}

struct line {
    char text[512];
    size_t used, columns;  // bytes and columns of it
};

// A head that is longer than its column reaches into the one on its left.
static void add_head(struct line *line, const char *head, size_t end) {
    size_t length = strlen(head), columns = text_columns(head);
    size_t start = end > columns ? end - columns : 0;
    size_t least = line->used ? line->columns + 1 : 0;
    if (start < least) start = least;
    size_t pad = start - line->columns;
    if (!length || line->used + pad + length >= sizeof line->text) return;
    memset(line->text + line->used, ' ', pad);
    memcpy(line->text + line->used + pad, head, length + 1);
    line->used += pad + length;
    line->columns = start + columns;
}

static void print_heads(const struct terminal *terminal, const struct answer *answer) {
    struct line line = {.text = ""};
    size_t end = answer->indent, count = 0;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        if (!is_figure(terminal, column)) continue;
        end += (count++ ? answer->gap : 0) + value_width(terminal, column);
        if (column->head) add_head(&line, column->head, end);
        if (column->note == ANSWER_NARROW_NOTE && column->head)
            add_head(&line, INTERVAL_NARROW_HEADING,
                     end + 2 + text_columns(INTERVAL_NARROW_HEADING));
        end += note_columns(column) + (column->noun ? NOUN_COLUMNS : 0);
    }
    if (!line.used) return;
    if (answer->tail_head)
        terminal_print(terminal, STYLE_DIM, "%-*s", (int)end, line.text);
    else
        terminal_print(terminal, STYLE_DIM, "%s", line.text);
    fprintf(terminal->out, "%s%s\n", answer->tail_head ? "  " : "",
            answer->tail_head ? answer->tail_head : "");
}

// Prints a text among the figures, at the right or at the left of its column.
static void print_word(const struct terminal *terminal, const struct answer_column *column,
                       const struct answer_cell *cell, size_t all) {
    char text[TAIL_BYTES];
    snprintf(text, sizeof text, "%s", cell->text ? cell->text : "");
    if (column->is_left) text_cut(text, all);
    const size_t used = text_columns(text), pad = all > used ? all - used : 0;
    if (!column->is_left) terminal_indent(terminal, pad);
    terminal_print(terminal, cell->style ? cell->style : column->style, "%s", text);
    if (column->is_left) terminal_indent(terminal, pad);
}

static void print_figure(const struct terminal *terminal, const struct answer *answer,
                         const struct answer_column *column, const struct answer_cell *cell) {
    const int width = (int)column->width;
    const size_t all = value_width(terminal, column);
    const int64_t value = cell->measured.value;
    if (cell->state == ANSWER_ABSENT || (column->is_blank && !value && !cell->text)) {
        terminal_indent(terminal, all);
    } else if (cell->text) {
        print_word(terminal, column, cell, all);
    } else if (cell->state == ANSWER_UNKNOWN || (column->has_dash && !value)) {
        terminal_print(terminal, STYLE_DIM, "%*s", (int)all, "-");
    } else {
        if (has_share(terminal, column))
            terminal_print(terminal, STYLE_STRONG, "%*s", SHARE_COLUMNS,
                           units_percent(value, answer->whole).text);
        const char *blank = column->has_dash || column->noun ? " " : "";
        terminal_print(terminal, column->style, "%s%*s", blank, width - (int)strlen(blank),
                       answer_value_text(answer, column, cell).text);
    }
    if (column->note && cell->state == ANSWER_KNOWN && value)
        interval_print(terminal, cell->measured, column->note == ANSWER_NARROW_NOTE);
    else if (column->note)
        terminal_indent(terminal, note_columns(column));
    if (column->noun) fprintf(terminal->out, " %-6s ", column->noun[value != 1]);
}

// A path loses directories at its front, another name what shorten_function takes.
static void fit(char *label, size_t columns) {
    static const char ellipsis[] = "\xe2\x80\xa6";
    char *cut = label;
    bool is_path = *label == '/';
    if (text_columns(label) <= columns) return;
    if (!is_path) {
        shorten_function(label, columns);
        text_cut(label, columns);
        return;
    }
    while (cut && text_columns(cut) + 1 > columns) cut = strchr(cut + 1, '/');
    if (!cut) cut = strrchr(label, '/');
    if (cut - label >= (int)sizeof ellipsis - 1) {
        cut -= sizeof ellipsis - 1;
        memcpy(cut, ellipsis, sizeof ellipsis - 1);
        memmove(label, cut, strlen(cut) + 1);
    }
    text_cut(label, columns);
}

static void tail_text(const struct answer *answer, const struct answer_column *column,
                      const struct answer_cell *cell, char text[TAIL_BYTES]) {
    *text = 0;
    if (cell->state == ANSWER_UNKNOWN && column->unknown)
        snprintf(text, TAIL_BYTES, "%s", column->unknown);
    if (cell->state != ANSWER_KNOWN) return;
    if (column->unit == ANSWER_TEXT)
        text_escape(text, TAIL_BYTES, cell->text);
    else
        snprintf(text, TAIL_BYTES, "%s", answer_value_text(answer, column, cell).text);
}

// A name that leaves a third of the room to what stands behind it.
static void print_name(const struct terminal *terminal, size_t room, char *name, char *behind,
                       enum style style) {
    size_t wanted = text_columns(name);
    size_t behind_columns = *behind ? text_columns(behind) + 1 : 0;
    if (behind_columns > room / 3) behind_columns = room / 3;
    fit(name, wanted + behind_columns > room ? room - behind_columns : wanted);
    terminal_print(terminal, style, "%s", name);
    size_t left = room - text_columns(name);
    if (!*behind || left <= 1) return;
    fit(behind, left - 1);
    terminal_print(terminal, STYLE_DIM, " %s", behind);
}

// Prints what is behind the figures, and ends the line.
static void print_tail(const struct terminal *terminal, const struct answer *answer,
                       const struct answer_row *row) {
    size_t used = figures_width(terminal, answer) + TAIL_GAP, columns = terminal->columns;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        char text[TAIL_BYTES], behind[TAIL_BYTES];
        bool is_last = i + 1 == answer->column_count;
        const bool is_line = column->place == ANSWER_TAIL_LINE && !row->instead;
        enum style style = row->use == ANSWER_FOR_PEOPLE ? STYLE_DIM
                           : row->is_strong              ? STYLE_STRONG
                                                         : column->style;
        if (!is_tail(column)) continue;
        tail_text(answer, column, &row->cells[i], text);
        if (!*text && !is_line) continue;
        terminal_print(terminal, style, "%s", column->before);
        if (is_line && terminal->is_terminal)
            text_cut(text, columns > used + 1 ? columns - used : 1);
        if (column->place == ANSWER_TAIL_CUT)
            text_cut(text, columns > used + CUT_COLUMNS_MIN ? columns - used : CUT_COLUMNS_MIN);
        if (column->place == ANSWER_TAIL_WRAP) {
            terminal_print_wrapped(terminal, used, used, text);
            return;
        }
        if (column->place != ANSWER_TAIL_NAME) {
            terminal_print(terminal, style, "%s%s", text, column->behind ? column->behind : "");
            continue;
        }
        *behind = 0;
        if (!is_last) tail_text(answer, column + 1, &row->cells[i + 1], behind);
        print_name(terminal, columns > used + NAME_COLUMNS_MIN ? columns - used : NAME_COLUMNS_MIN,
                   text, behind, style);
        i++;
    }
    fputc('\n', terminal->out);
}

// Prints how sure the figures of a row are, on a line of its own.
static void print_intervals(const struct terminal *terminal, const struct answer *answer,
                            const struct answer_row *row) {
    struct parts parts = {.terminal = terminal};
    if (!answer_is_sampled(answer)) return;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        if (!column->interval_name || row->cells[i].state != ANSWER_KNOWN) continue;
        interval_add_part(&parts, column->interval_name, row->cells[i].measured,
                          column->unit == ANSWER_BYTES, answer->options->is_plain_number);
    }
    parts_end(&parts);
}

static void print_row(const struct terminal *terminal, const struct answer *answer,
                      const struct answer_row *row) {
    size_t count = 0;
    if (row->heading) terminal_print(terminal, STYLE_STRONG, "%s", row->heading);
    if (row->heading) fprintf(terminal->out, "%s\n", row->heading_rest ? row->heading_rest : "");
    if (row->is_heading) return;
    if (row->instead)
        terminal_print(terminal, STYLE_DIM, "%*s", (int)figures_width(terminal, answer),
                       row->instead);
    for (size_t i = 0; i < answer->column_count && !row->instead; i++) {
        if (!is_figure(terminal, &answer->columns[i])) continue;
        terminal_indent(terminal, count++ ? answer->gap : answer->indent);
        print_figure(terminal, answer, &answer->columns[i], &row->cells[i]);
    }
    print_tail(terminal, answer, row);
    print_intervals(terminal, answer, row);
}

static void print_lines(const struct terminal *terminal, const struct answer *answer,
                        bool are_above) {
    for (size_t i = 0; i < answer->note_count; i++)
        if (answer->notes[i].is_above == are_above)
            terminal_print_line(terminal, answer->notes[i].style, "%s", answer->notes[i].text);
}

static void print_title(const struct terminal *terminal, struct answer *answer) {
    static const char separator[] = " \xc2\xb7 ";
    const size_t rest = text_columns(answer->title_rest);
    size_t used = 0;
    if (!*answer->title && !answer->subject) return;
    if (answer->subject) {
        terminal_print(terminal, STYLE_STRONG, "%s", answer->subject);
        fputs(separator, terminal->out);
        used = text_columns(answer->subject) + text_columns(separator);
    }
    if (answer->is_path)
        shorten_path(answer->title, terminal->columns > rest ? terminal->columns - rest : 0);
    used = terminal_print_words(terminal, answer->subject ? STYLE_PLAIN : STYLE_STRONG, used,
                                TITLE_INDENT, answer->title);
    list_print_cut(terminal, answer->options, answer->shown, answer->count);
    terminal_print_words(terminal, STYLE_DIM, used, TITLE_INDENT, answer->title_rest);
    fputc('\n', terminal->out);
}

static void print_table(const struct terminal *terminal, struct answer *answer) {
    struct answer_row row;
    print_title(terminal, answer);
    print_lines(terminal, answer, true);
    if (!answer->count && *answer->none)
        terminal_print_line(terminal, STYLE_DIM, "%s", answer->none);
    if (answer->count || answer->has_heads_always) print_heads(terminal, answer);
    while (answer_next(answer, ANSWER_FOR_PEOPLE, &row)) print_row(terminal, answer, &row);
    print_lines(terminal, answer, false);
}

static bool print_one(const struct terminal *terminal, struct answer *answer, struct error *error) {
    if (answer->draw) return answer->draw(terminal, answer, error);
    if (answer->are_blocks)
        blocks_print(terminal, answer);
    else if (answer->are_branches)
        branches_print(terminal, answer);
    else
        print_table(terminal, answer);
    return answer_check(answer, error);
}

bool answer_print_text(const struct terminal *terminal, struct answer *answer,
                       struct error *error) {
    answer->is_screen = true;
    if (answer->to_screen && !answer->to_screen(answer, terminal->columns, error)) return false;
    if (answer->above) {
        if (!answer_print_text(terminal, answer->above, error)) return false;
        fputc('\n', terminal->out);
    }
    if (!print_one(terminal, answer, error)) return false;
    if (!answer->below) return true;
    fputc('\n', terminal->out);
    return answer_print_text(terminal, answer->below, error);
}
