// SPDX-License-Identifier: Apache-2.0
// Figures stand in fixed columns at the left, the tree beside them. Only branching indents: a chain
// of single rows is a column of names, so that deep trees stay readable in 80 columns.
#include "tool/answer/branches.h"

#include <string.h>

#include "tool/answer/forms.h"
#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/shorten.h"

enum {
    WIDE_COLUMNS = 100,  // from here on there is room for the number of blocks too
    SIZE_COLUMNS = 18,   // percent and size, with what separates them ...
    COUNT_COLUMNS = 16,  // ... and the blocks
    NOTE_COLUMNS = INTERVAL_NOTE_COLUMNS + 2,  // of estimates instead: how sure they are
    LABEL_COLUMNS_MIN = 12,
    FIGURES_BYTES = 96,
    PREFIX_BYTES = 4096,
};

struct printer {
    const struct terminal *terminal;
    const struct answer *answer;
    size_t share, value, name;    // columns; the place is behind the name
    char figures[FIGURES_BYTES];  // of the last row
    char prefix[PREFIX_BYTES];    // lines of the branches that are still open
    ARRAY(size_t) starts;         // bytes of the prefix that rows of each level have
    size_t hidden_from;           // rows of this level on are left out: the prefix has no room
};

static void add_size(const struct printer *printer, struct measured measured, char *figures) {
    const struct answer *answer = printer->answer;
    int used = (int)strlen(figures), room = FIGURES_BYTES - used;
    if (answer_is_sampled(answer)) {
        struct unit_text note = interval_note(measured);
        snprintf(figures + used, (size_t)room, "%s%*s", note.text,
                 NOTE_COLUMNS - (int)text_columns(note.text), "");
    } else if (printer->terminal->columns >= WIDE_COLUMNS && answer->noun) {
        snprintf(figures + used, (size_t)room, "%7s %-6s  ", units_count(measured.blocks).text,
                 answer->noun[measured.blocks != 1]);
    } else if (printer->terminal->columns >= WIDE_COLUMNS) {
        snprintf(figures + used, (size_t)room, "%*s", COUNT_COLUMNS, "");
    }
}

// Prints the figures, and blanks for a single branch with those of the row above.
static void print_figures(struct printer *printer, const struct answer_row *row) {
    const struct answer *answer = printer->answer;
    const struct answer_cell *value = &row->cells[printer->value];
    char figures[FIGURES_BYTES];
    snprintf(figures, sizeof figures, "%6s %9s  ",
             units_percent(row->cells[printer->share].measured.value, answer->whole).text,
             answer_value_text(answer, &answer->columns[printer->value], value).text);
    add_size(printer, value->measured, figures);
    if (row->branch == ANSWER_ONLY && !strcmp(figures, printer->figures))
        terminal_indent(printer->terminal, text_columns(figures));
    else
        terminal_print(printer->terminal, STYLE_PLAIN, "%s", figures);
    memcpy(printer->figures, figures, sizeof figures);
}

static enum style style_of(const struct answer_row *row, enum style usual) {
    if (row->branch == ANSWER_STEM) return STYLE_STRONG;
    return row->use == ANSWER_FOR_PEOPLE || row->is_dim ? STYLE_DIM : usual;
}

// Prints the name, with its place behind it, in the room behind `used` columns.
static void print_name(const struct printer *printer, const struct answer_row *row, size_t used) {
    const struct terminal *terminal = printer->terminal;
    const struct answer_column *column = &printer->answer->columns[printer->name];
    const char *place = row->cells[printer->name + 1].text;
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    size_t columns = terminal->columns;
    size_t room = columns > used + LABEL_COLUMNS_MIN ? columns - used : LABEL_COLUMNS_MIN;
    const bool is_cut = row->branch != ANSWER_STEM && !row->is_dim;
    snprintf(label, sizeof label, "%s", row->cells[printer->name].text);
    snprintf(location, sizeof location, "%s", place ? place : "");
    if (is_cut && *location) text_cut(location, room / 2);
    if (*location) room -= text_columns(location) + 1;
    if (is_cut && !row->is_address) shorten_function(label, room);
    if (is_cut) text_cut(label, room);
    terminal_print(terminal, style_of(row, column->style), "%s", label);
    if (*location)
        terminal_print(terminal, STYLE_DIM, "%s%s", row->branch == ANSWER_STEM ? "" : " ",
                       location);
    fputc('\n', terminal->out);
}

// Returns false if rows below this one have no room.
static bool open_below(struct printer *printer, const struct answer_row *row, size_t start) {
    const char *stem = row->branch == ANSWER_INNER  ? "\xe2\x94\x82 "
                       : row->branch == ANSWER_LAST ? "  "
                                                    : "";
    size_t below = start + strlen(stem);
    if (below >= PREFIX_BYTES) return false;
    memcpy(printer->prefix + start, stem, below - start);
    if (row->branch != ANSWER_STEM) printer->starts.items[row->level + 1] = below;
    return true;
}

static void print_row(struct printer *printer, const struct answer_row *row) {
    const char *branch = row->branch == ANSWER_INNER  ? "\xe2\x94\x9c "
                         : row->branch == ANSWER_LAST ? "\xe2\x94\x94 "
                                                      : "";
    const size_t start = printer->starts.items[row->level];
    print_figures(printer, row);
    printer->prefix[start] = 0;
    terminal_print(printer->terminal, STYLE_DIM, "%s%s", printer->prefix, branch);
    print_name(printer, row,
               text_columns(printer->figures) + text_columns(printer->prefix) +
                   text_columns(branch));
    printer->hidden_from = open_below(printer, row, start) ? SIZE_MAX : row->level + 1;
}

static void find_columns(struct printer *printer) {
    const struct answer *answer = printer->answer;
    for (size_t i = 0; i < answer->column_count; i++) {
        const struct answer_column *column = &answer->columns[i];
        if (column->unit == ANSWER_SHARE) printer->share = i;
        if (column->place == ANSWER_TAIL_NAME) printer->name = i;
    }
    printer->value = printer->share + 1;
}

// Makes room for the rows of a level. False without memory.
static bool has_level(struct printer *printer, size_t level) {
    while (printer->starts.count <= level) {
        size_t *start = array_push(&printer->starts);
        if (!start) return false;
        *start = 0;
    }
    return printer->starts.items != NULL;
}

void branches_print(const struct terminal *terminal, struct answer *answer) {
    struct printer printer = {.terminal = terminal, .answer = answer, .hidden_from = SIZE_MAX};
    struct answer_row row;
    find_columns(&printer);
    while (answer_next(answer, ANSWER_FOR_PEOPLE, &row)) {
        if (row.level >= printer.hidden_from) continue;
        answer->is_failed |= !has_level(&printer, row.level + 1);
        if (answer->is_failed) break;
        print_row(&printer, &row);
    }
    array_free(&printer.starts);
    if (answer->hidden_count)
        terminal_print(
            terminal, STYLE_DIM, "%s hidden: --all-frames\n",
            units_counted((int64_t)answer->hidden_count, "internal frame is", "internal frames are")
                .text);
}
