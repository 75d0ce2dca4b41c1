// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "format/looks.h"
#include "tool/answer/kept.h"
#include "tool/base/byte_buffer.h"
#include "tool/base/fnv.h"
#include "tool/model/index_table.h"

// Texts have numbers from here on; below it there is none, or a new one.
enum { TEXT_NONE, TEXT_NEW, TEXT_FIRST };

struct keeping {
    struct byte_buffer bytes;
    struct index_table index;  // of texts, by content
    ARRAY(char *) texts;
    bool has_failed;
};

static void put(struct keeping *keeping, uint64_t value) {
    byte_buffer_put_varint(&keeping->bytes, value);
}

static void put_signed(struct keeping *keeping, int64_t value) {
    enum { SIGN_BIT = 63 };
    put(keeping, (uint64_t)value << 1 ^ (uint64_t)(value >> SIGN_BIT));
}

// Returns true if an equal text was written before; then its number is written.
static bool put_earlier(struct keeping *keeping, const char *text, uint64_t hash) {
    struct index_probe probe = index_probe_start(&keeping->index, hash);
    for (uint32_t i; index_probe_next(&keeping->index, &probe, &i);) {
        if (strcmp(keeping->texts.items[i], text) != 0) continue;
        put(keeping, (uint64_t)i + TEXT_FIRST);
        return true;
    }
    return false;
}

static void put_text(struct keeping *keeping, const char *text) {
    if (!text) {
        put(keeping, TEXT_NONE);
        return;
    }
    const size_t length = strlen(text);
    uint64_t hash = hash_mix(fnv_add(FNV_START, text, length), index_table_seed());
    if (put_earlier(keeping, text, hash)) return;
    put(keeping, TEXT_NEW);
    put(keeping, length);
    byte_buffer_put(&keeping->bytes, text, length);
    char *copy = strdup(text), **slot = copy ? array_push(&keeping->texts) : NULL;
    if (slot) *slot = copy;
    if (!slot) free(copy);
    keeping->has_failed |=
        !slot || !index_table_insert(&keeping->index, hash, (uint32_t)(keeping->texts.count - 1));
}

static void put_column(struct keeping *keeping, const struct answer_column *column) {
    put_text(keeping, column->key);
    put_text(keeping, column->head);
    put(keeping, column->unit);
    put(keeping, column->place);
    put(keeping, column->style);
    put_text(keeping, column->before);
    put_text(keeping, column->behind);
}

static void put_head(struct keeping *keeping, const struct answer *answer) {
    put_text(keeping, answer->view);
    put_text(keeping, answer->title);
    put_text(keeping, answer->none);
    put(keeping, answer->note_count);
    for (size_t i = 0; i < answer->note_count; i++) put_text(keeping, answer->notes[i].text);
    put(keeping, (answer->has_levels ? CAIRN_LOOK_HAS_LEVELS : 0) |
                     (answer->has_frames ? CAIRN_LOOK_HAS_FRAMES : 0));
    put_signed(keeping, answer->whole);
    put(keeping, answer->count);
    size_t count = 0;
    for (size_t i = 0; i < answer->column_count; i++) count += !answer->columns[i].is_left_out;
    put(keeping, count);
    for (size_t i = 0; i < answer->column_count; i++)
        if (!answer->columns[i].is_left_out) put_column(keeping, &answer->columns[i]);
}

static void put_cell(struct keeping *keeping, const struct answer_column *column,
                     const struct answer_cell *cell) {
    bool is_real = column->unit == ANSWER_REAL || column->unit == ANSWER_RATE;
    put(keeping, cell->state);
    if (cell->state != ANSWER_KNOWN) return;
    if (column->unit == ANSWER_TEXT)
        put_text(keeping, cell->text);
    else if (is_real)
        byte_buffer_put(&keeping->bytes, &cell->real, sizeof cell->real);
    else
        put_signed(keeping, cell->measured.value);
    if (column->unit == ANSWER_RATIO) put_signed(keeping, cell->measured.blocks);
}

static void put_frame(struct keeping *keeping, const struct frame *frame, bool has_python) {
    put_text(keeping, frame->function);
    put_text(keeping, frame->file);
    put_text(keeping, frame->module);
    put(keeping, frame->line);
    put(keeping, frame->offset);
    put(keeping, (frame->is_inlined ? CAIRN_LOOK_FRAME_INLINED : 0) |
                     (frame_is_hidden(frame, has_python) ? CAIRN_LOOK_FRAME_HIDDEN : 0) |
                     (frame->is_own ? CAIRN_LOOK_FRAME_OWN : 0) |
                     (frame->is_python ? CAIRN_LOOK_FRAME_PYTHON : 0));
}

static void put_row(struct keeping *keeping, const struct answer *answer,
                    const struct answer_row *row) {
    put(keeping, 1);
    put(keeping, row->level);
    put(keeping, row->use);
    put_text(keeping, row->instead);
    for (size_t i = 0; i < answer->column_count; i++)
        if (!answer->columns[i].is_left_out) put_cell(keeping, &answer->columns[i], &row->cells[i]);
    if (!answer->has_frames) return;
    const size_t count = row->frames ? row->frames->frames.count : 0;
    put(keeping, count);
    for (size_t i = 0; i < count; i++)
        put_frame(keeping, row->frames->frames.items[i], row->frames->has_python);
}

static bool write_out(FILE *out, const struct keeping *keeping) {
    struct byte_buffer head = {0};
    byte_buffer_put_varint(&head, CAIRN_LOOK_ANSWERS_VERSION);
    byte_buffer_put_varint(&head, keeping->bytes.size);
    bool is_ok = !keeping->has_failed && !keeping->bytes.has_failed && !head.has_failed &&
                 fwrite(head.bytes, 1, head.size, out) == head.size &&
                 fwrite(keeping->bytes.bytes, 1, keeping->bytes.size, out) == keeping->bytes.size;
    byte_buffer_free(&head);
    return is_ok;
}

static void free_keeping(struct keeping *keeping) {
    for (size_t i = 0; i < keeping->texts.count; i++) free(keeping->texts.items[i]);
    array_free(&keeping->texts);
    index_table_free(&keeping->index);
    byte_buffer_free(&keeping->bytes);
}

// Fills the next row; false at the end.
static bool next_row(struct answer *answer, struct answer_row *row) {
    memset(row, 0, sizeof *row);
    return answer->next_row(answer, row);
}

bool answer_write_kept(FILE *out, struct answer *answer, struct error *error) {
    struct keeping keeping = {0};
    struct answer_row row;
    put_head(&keeping, answer);
    for (size_t i = 0; i < ANSWER_KEPT_ROWS && next_row(answer, &row); i++)
        put_row(&keeping, answer, &row);
    put(&keeping, 0);
    bool is_ok = write_out(out, &keeping);
    free_keeping(&keeping);
    return answer_check(answer, error) && (is_ok || error_set(error, "no memory to keep rows"));
}

const struct answer_form answer_form_kept = {.name = "kept", .print = answer_write_kept};
