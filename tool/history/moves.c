// SPDX-License-Identifier: Apache-2.0
// The stacks behind a step.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool/history/history.h"

void history_moves_free(struct history_moves *moves) {
    for (size_t i = 0; i < moves->list.count; i++) {
        free(moves->list.items[i].frames);
        free(moves->list.items[i].place);
    }
    array_free(&moves->list);
}

static char *spell(const struct diff *diff, const struct diff_row *row, uint32_t first) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    if (first >= row->count) first = 0;
    for (uint32_t i = first; i < row->count; i++)
        fprintf(out, "%s%s", i > first ? " \xe2\x86\x90 " : "", diff_name(diff, row, i));
    fclose(out);
    return text;
}

static bool add_move(struct history_moves *moves, const struct diff *diff, uint32_t row,
                     const struct store_places *places) {
    const int64_t *values = diff_values(diff, row);
    const struct store_place *place = row < places->list.count ? &places->list.items[row] : NULL;
    struct history_moved *moved = array_push(&moves->list);
    if (!moved) return false;
    *moved = (struct history_moved){
        .before = values[0],
        .after = values[1],
        .frames = spell(diff, &diff->rows.items[row], place ? place->frame : 0),
        .place = place && place->place ? strdup(place->place) : NULL};
    return moved->frames != NULL;
}

static bool list_moves(const struct diff *diff, const struct store_places *places, bool is_up,
                       size_t most, struct history_moves *moves) {
    size_t count, noise_count;
    uint32_t *rows = diff_rank(diff, &count, &noise_count);
    bool is_ok = rows != NULL;
    for (size_t i = 0; i < count && is_ok; i++) {
        const int64_t *values = diff_values(diff, rows[i]);
        if (values[1] == values[0] || (values[1] > values[0]) != is_up) continue;
        if (moves->list.count < most)
            is_ok = add_move(moves, diff, rows[i], places);
        else
            moves->more++;
    }
    free(rows);
    return is_ok;
}

// A stack that moved the other way, if it is a good part of the step: without it the others would
// say more than the figure does.
static bool add_opposite(const struct diff *diff, const struct store_places *places,
                         const struct history_step *step, struct history_moves *moves) {
    const double least_part = 0.25;
    double moved = (double)step->new_level - (double)step->old_level;
    size_t count, noise_count, found = SIZE_MAX;
    uint32_t *rows = diff_rank(diff, &count, &noise_count);
    for (size_t i = 0; rows && i < count && found == SIZE_MAX; i++) {
        const int64_t *values = diff_values(diff, rows[i]);
        double by = (double)values[1] - (double)values[0];
        if (by * moved < 0 && fabs(by) >= least_part * fabs(moved)) found = i;
    }
    bool is_ok = rows && (found == SIZE_MAX || add_move(moves, diff, rows[found], places));
    free(rows);
    return is_ok;
}

bool history_moves_find(struct history *history, const struct history_step *step, size_t most,
                        struct history_moves *moves, struct error *error) {
    const struct history_point *points = history->series.items[step->series].points.items;
    const struct history_point *before = &points[step->before], *after = &points[step->after];
    struct diff diff = {0};
    struct store_places places = {0};
    *moves = (struct history_moves){0};
    if (step->measure >= HISTORY_STACK_MEASURES || !before->stack_set || !after->stack_set)
        return true;
    bool is_ok = store_compare(&history->store, before->stack_set, after->stack_set, step->measure,
                               &diff, &places, error);
    if (is_ok && (!list_moves(&diff, &places, step->new_level > step->old_level, most, moves) ||
                  !add_opposite(&diff, &places, step, moves)))
        is_ok = error_set(error, "no memory for the stacks");
    diff_free(&diff);
    store_places_free(&places);
    if (!is_ok) history_moves_free(moves);
    return is_ok;
}
