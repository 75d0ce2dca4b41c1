// SPDX-License-Identifier: Apache-2.0
// Nothing of the bytes is trusted: each number is checked against what it may be, and against what
// is left. An answer whose bytes make no sense is none.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/looks.h"
#include "tool/answer/kept.h"
#include "tool/base/text.h"
#include "tool/base/units.h"

enum { TEXT_NONE, TEXT_NEW, TEXT_FIRST };
enum { KEPT_LEVELS_MAX = 64, KEPT_FRAMES_MAX = 1024, WORD_BITS = 64 };

struct kept_row {
    size_t level;
    enum answer_use use;
    const char *instead;
    size_t first_cell, first_frame, frame_count;
};

struct kept_answer {
    struct kept_bytes bytes;  // what is left of it
    bool is_wrong;
    ARRAY(char *) texts;
    ARRAY(struct kept_row) rows;
    ARRAY(struct answer_cell) cells;
    ARRAY(struct frame) frames;
    const char *view, *title, *none, *notes[ANSWER_NOTES_MAX];
    size_t note_count;
    uint64_t flags, count;
    int64_t whole;
    struct answer_column columns[ANSWER_COLUMNS_MAX];
    size_t column_count;
    // of the answer that is open
    size_t at, shown, shown_of;
    struct frame_list list;
};

// --- numbers and texts

static uint64_t get(struct kept_answer *kept) {
    enum { BITS = 7, MORE = 0x80 };
    uint64_t value = 0;
    for (unsigned shift = 0; shift < WORD_BITS && kept->bytes.at < kept->bytes.end; shift += BITS) {
        const uint8_t byte = *kept->bytes.at++;
        value |= (uint64_t)(byte & (MORE - 1)) << shift;
        if (!(byte & MORE)) return value;
    }
    kept->is_wrong = true;
    return 0;
}

static int64_t get_signed(struct kept_answer *kept) {
    const uint64_t value = get(kept);
    return (int64_t)(value >> 1 ^ -(value & 1));
}

// A number of at most `most`.
static uint64_t get_up_to(struct kept_answer *kept, uint64_t most) {
    const uint64_t value = get(kept);
    kept->is_wrong |= value > most;
    return value > most ? 0 : value;
}

// A number of bytes that follow.
static uint64_t get_size(struct kept_answer *kept) {
    const uint64_t size = get(kept), left = (uint64_t)(kept->bytes.end - kept->bytes.at);
    kept->is_wrong |= size > left;
    return size > left ? left : size;
}

static double get_real(struct kept_answer *kept) {
    double value = 0;
    if ((size_t)(kept->bytes.end - kept->bytes.at) < sizeof value) {
        kept->is_wrong = true;
        return 0;
    }
    memcpy(&value, kept->bytes.at, sizeof value);
    kept->bytes.at += sizeof value;
    if (fabs(value) < 0x1p60) return value;
    kept->is_wrong = true;
    return 0;
}

static const char *new_text(struct kept_answer *kept) {
    const uint64_t length = get_size(kept);
    char *copy = kept->is_wrong ? NULL : strndup((const char *)kept->bytes.at, (size_t)length);
    char **slot = copy ? array_push(&kept->texts) : NULL;
    kept->is_wrong |= !slot;
    if (!slot) {
        free(copy);
        return NULL;
    }
    *slot = copy;
    kept->bytes.at += length;
    return copy;
}

static const char *get_text(struct kept_answer *kept) {
    const uint64_t number = get_up_to(kept, TEXT_NEW + kept->texts.count);
    if (number == TEXT_NONE) return NULL;
    return number == TEXT_NEW ? new_text(kept) : kept->texts.items[number - TEXT_FIRST];
}

// A text of the tool's own, which forms print as it is; `others` may be in it.
static const char *get_plain_text(struct kept_answer *kept, const char *others) {
    const char *text = get_text(kept);
    for (const char *at = text; at && *at; at++)
        kept->is_wrong |= (*at < ' ' || *at > '~') && !strchr(others, *at);
    return kept->is_wrong ? NULL : text;
}

static const char *get_some_text(struct kept_answer *kept) {
    const char *text = get_text(kept);
    return text ? text : "";
}

// --- an answer

static void read_column(struct kept_answer *kept, struct answer_column *column) {
    column->key = get_plain_text(kept, "");
    column->head = get_plain_text(kept, "");
    column->unit = (enum answer_unit)get_up_to(kept, ANSWER_BOOL);
    column->place = (enum answer_place)get_up_to(kept, ANSWER_TAIL_NAME);
    column->style = (enum style)get_up_to(kept, STYLE_WARNING);
    column->before = get_plain_text(kept, "\n");
    column->behind = get_plain_text(kept, "");
    if (!column->before) column->before = "";
}

static void read_head(struct kept_answer *kept) {
    kept->view = get_some_text(kept);
    kept->title = get_some_text(kept);
    kept->none = get_some_text(kept);
    kept->note_count = get_up_to(kept, ANSWER_NOTES_MAX);
    for (size_t i = 0; i < kept->note_count; i++) kept->notes[i] = get_some_text(kept);
    kept->flags = get(kept);
    kept->whole = get_signed(kept);
    kept->count = get(kept);
    kept->column_count = get_up_to(kept, ANSWER_COLUMNS_MAX);
    for (size_t i = 0; i < kept->column_count; i++) read_column(kept, &kept->columns[i]);
}

static void read_cell(struct kept_answer *kept, const struct answer_column *column) {
    struct answer_cell cell = {.state = (enum answer_state)get_up_to(kept, ANSWER_KNOWN)};
    struct answer_cell *slot = array_push(&kept->cells);
    if (cell.state == ANSWER_KNOWN && column->unit == ANSWER_TEXT)
        cell.text = get_some_text(kept);
    else if (cell.state == ANSWER_KNOWN &&
             (column->unit == ANSWER_REAL || column->unit == ANSWER_RATE))
        cell.real = get_real(kept);
    else if (cell.state == ANSWER_KNOWN)
        cell.measured.value = cell.measured.blocks = get_signed(kept);
    if (cell.state == ANSWER_KNOWN && column->unit == ANSWER_RATIO)
        cell.measured.blocks = get_signed(kept);
    kept->is_wrong |= !slot;
    if (slot) *slot = cell;
}

static void read_frame(struct kept_answer *kept) {
    struct frame *frame = array_push(&kept->frames);
    struct frame read = {.function = get_text(kept)};
    read.file = get_text(kept);
    read.module = get_text(kept);
    read.line = (unsigned)get_up_to(kept, UINT32_MAX);
    read.offset = get(kept);
    const uint64_t flags = get(kept);
    read.is_inlined = flags & CAIRN_LOOK_FRAME_INLINED;
    read.is_hidden = flags & CAIRN_LOOK_FRAME_HIDDEN;
    read.is_own = flags & CAIRN_LOOK_FRAME_OWN;
    read.is_python = flags & CAIRN_LOOK_FRAME_PYTHON;
    kept->is_wrong |= !frame;
    if (frame) *frame = read;
}

static void read_row(struct kept_answer *kept) {
    struct kept_row *row = array_push(&kept->rows);
    if (!row) {
        kept->is_wrong = true;
        return;
    }
    *row = (struct kept_row){.level = get_up_to(kept, KEPT_LEVELS_MAX),
                             .first_cell = kept->cells.count,
                             .first_frame = kept->frames.count};
    row->use = (enum answer_use)get_up_to(kept, ANSWER_FOR_PEOPLE);
    row->instead = get_plain_text(kept, "");
    for (size_t i = 0; i < kept->column_count && !kept->is_wrong; i++)
        read_cell(kept, &kept->columns[i]);
    if (kept->flags & CAIRN_LOOK_HAS_FRAMES) row->frame_count = get_up_to(kept, KEPT_FRAMES_MAX);
    for (size_t i = 0; i < row->frame_count && !kept->is_wrong; i++) read_frame(kept);
}

struct kept_answer *kept_answer_read(struct kept_bytes *bytes) {
    struct kept_answer *kept = calloc(1, sizeof *kept);
    if (!kept || bytes->at == bytes->end) {
        free(kept);
        return NULL;
    }
    kept->bytes = *bytes;
    const uint64_t version = get(kept);
    const uint64_t size = get_size(kept);
    bytes->at = kept->bytes.end = kept->bytes.at + size;
    kept->is_wrong |= version != CAIRN_LOOK_ANSWERS_VERSION;
    if (!kept->is_wrong) read_head(kept);
    while (!kept->is_wrong && kept->rows.count <= ANSWER_KEPT_ROWS && get_up_to(kept, 1))
        read_row(kept);
    if (!kept->is_wrong) return kept;
    kept_answer_free(kept);
    return NULL;
}

void kept_answer_free(struct kept_answer *kept) {
    if (!kept) return;
    for (size_t i = 0; i < kept->texts.count; i++) free(kept->texts.items[i]);
    array_free(&kept->texts);
    array_free(&kept->rows);
    array_free(&kept->cells);
    array_free(&kept->frames);
    frame_list_free(&kept->list);
    free(kept);
}

const char *kept_answer_view(const struct kept_answer *kept) {
    return kept->view;
}

// --- rows again

// Spells out the frames of a row; without memory it has none.
static void fill_frames(struct kept_answer *kept, const struct kept_row *from,
                        struct answer_row *row) {
    struct frame_list *list = &kept->list;
    list->frames.count = list->shown_count = list->first_hidden = 0;
    list->has_python = false;
    for (size_t i = 0; i < from->frame_count; i++) {
        const struct frame *frame = &kept->frames.items[from->first_frame + i];
        const struct frame **slot = array_push(&list->frames);
        if (!slot) return;
        *slot = frame;
        list->shown_count += !frame->is_hidden;
        list->has_python |= frame->is_python;
        if (frame->is_hidden && !list->shown_count) list->first_hidden++;
    }
    if (from->frame_count) row->frames = list;
}

static bool next_row(struct answer *answer, struct answer_row *row) {
    struct kept_answer *kept = answer->state;
    if (kept->at == kept->rows.count) return false;
    const struct kept_row *from = &kept->rows.items[kept->at];
    if (!from->level && kept->shown_of++ == kept->shown) return false;
    kept->at++;
    row->level = from->level;
    row->use = from->use;
    row->instead = from->instead;
    for (size_t i = 0; i < kept->column_count; i++)
        row->cells[i] = kept->cells.items[from->first_cell + i];
    if (kept->flags & CAIRN_LOOK_HAS_FRAMES) fill_frames(kept, from, row);
    return true;
}

// Columns are as wide as what is in them.
static void measure(struct kept_answer *kept, struct answer *answer) {
    for (size_t i = 0; i < kept->column_count; i++) {
        struct answer_column *column = &kept->columns[i];
        if (column->place != ANSWER_FIGURE) continue;
        column->width = column->head ? text_columns(column->head) : 0;
        for (size_t row = 0; row < kept->rows.count; row++) {
            const struct answer_cell *cell =
                &kept->cells.items[kept->rows.items[row].first_cell + i];
            const struct unit_text text = answer_value_text(answer, column, cell);
            size_t columns = cell->state == ANSWER_KNOWN ? text_columns(text.text) : 1;
            if (columns > column->width) column->width = columns;
        }
    }
}

void kept_answer_open(struct kept_answer *kept, const struct view_options *options,
                      struct answer *answer) {
    size_t outer = 0;
    for (size_t i = 0; i < kept->rows.count; i++) outer += !kept->rows.items[i].level;
    kept->at = kept->shown_of = 0;
    kept->shown = answer_cut(options->top, outer);
    *answer = (struct answer){.view = kept->view,
                              .options = options,
                              .columns = kept->columns,
                              .column_count = kept->column_count,
                              .indent = 1,
                              .gap = 2,
                              .has_levels = kept->flags & CAIRN_LOOK_HAS_LEVELS,
                              .has_frames = kept->flags & CAIRN_LOOK_HAS_FRAMES,
                              .whole = kept->whole,
                              .shown = kept->shown,
                              .count = (size_t)kept->count,
                              .next_row = next_row,
                              .state = kept};
    text_escape(answer->title, sizeof answer->title, kept->title);
    text_escape(answer->none, sizeof answer->none, kept->none);
    for (size_t i = 0; i < kept->note_count; i++) {
        char note[ANSWER_NOTE_BYTES];
        text_escape(note, sizeof note, kept->notes[i]);
        answer_note(answer, "%s", note);
    }
    measure(kept, answer);
}
