// SPDX-License-Identifier: Apache-2.0
// A function that was inlined without debug information, or that a new compiler made a function of
// its own, is one frame less or more. Such stacks are joined with the nearest one of the other
// side: one has to hold all frames of the other in their order, with at most a third more, and the
// same outermost frame. Only the largest rows of each side are tried, so that the time stays
// bounded.
#include <stdlib.h>
#include <string.h>

#include "tool/render/diff.h"

enum { TRIED_MAX = 400, FRAMES_MAX = 256, EXTRA_DIVISOR = 3, FRAMES_MIN = 2 };

struct candidate {
    uint32_t row;
    int64_t value;
    uint32_t frame_count;
    const char **frames;
    bool is_joined;
};

struct candidates {
    ARRAY(struct candidate) list;
};

static int compare(const void *a, const void *b) {
    const struct candidate *first = a, *second = b;
    if (first->value != second->value) return first->value < second->value ? 1 : -1;
    return (first->row > second->row) - (first->row < second->row);
}

static void free_candidates(struct candidates *candidates) {
    for (size_t i = 0; i < candidates->list.count; i++) {
        free(candidates->list.items[i].frames);
    }
    array_free(&candidates->list);
}

// Rows with values on one side alone.
static bool collect(const struct diff *diff, enum change_kind kind, struct candidates *candidates) {
    for (uint32_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_change(diff, diff_values(diff, i), NULL);
        if (change.kind != kind) continue;
        struct candidate *candidate = array_push(&candidates->list);
        if (!candidate) return false;
        *candidate =
            (struct candidate){.row = i, .value = figures_add(change.before, change.after)};
    }
    if (candidates->list.count)
        qsort(candidates->list.items, candidates->list.count, sizeof(struct candidate), compare);
    if (candidates->list.count > TRIED_MAX) candidates->list.count = TRIED_MAX;
    return true;
}

static bool cut_into_frames(const struct diff *diff, struct candidate *candidate) {
    const struct diff_row *row = &diff->rows.items[candidate->row];
    candidate->frame_count = row->count < FRAMES_MAX ? row->count : FRAMES_MAX;
    candidate->frames = calloc((size_t)candidate->frame_count + 1, sizeof *candidate->frames);
    if (!candidate->frames) return false;
    for (uint32_t i = 0; i < candidate->frame_count; i++)
        candidate->frames[i] = diff_name(diff, row, i);
    return true;
}

// Equal names, or addresses in the same module, which another build has elsewhere.
static bool is_same(const char *a, const char *b) {
    if (!a || !b) return false;
    const char *plus_a = strstr(a, "+0x"), *plus_b = strstr(b, "+0x");
    if (plus_a && plus_b) return plus_a - a == plus_b - b && !strncmp(a, b, (size_t)(plus_a - a));
    return !strcmp(a, b);
}

// Frames of the longer stack that the shorter one lacks; UINT32_MAX: another stack.
static uint32_t distance(const struct candidate *a, const struct candidate *b) {
    const struct candidate *small = a->frame_count <= b->frame_count ? a : b;
    const struct candidate *large = small == a ? b : a;
    uint32_t extra = large->frame_count - small->frame_count, at = 0;
    if (small->frame_count < FRAMES_MIN || extra * EXTRA_DIVISOR > large->frame_count)
        return UINT32_MAX;
    if (!is_same(small->frames[small->frame_count - 1], large->frames[large->frame_count - 1]))
        return UINT32_MAX;
    for (uint32_t i = 0; i < large->frame_count && at < small->frame_count; i++)
        if (is_same(small->frames[at], large->frames[i])) at++;
    return at == small->frame_count ? extra : UINT32_MAX;
}

static void join(struct diff *diff, struct candidate *gone, struct candidate *added) {
    diff_join_rows(diff, gone->row, added->row);
    added->is_joined = true;
}

static void join_best(struct diff *diff, struct candidate *gone, struct candidates *added) {
    struct candidate *best = NULL;
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < added->list.count; i++) {
        struct candidate *candidate = &added->list.items[i];
        uint32_t extra = candidate->is_joined ? UINT32_MAX : distance(gone, candidate);
        if (extra >= least) continue;
        least = extra;
        best = candidate;
    }
    if (best) join(diff, gone, best);
}

bool diff_join_similar(struct diff *diff, struct error *error) {
    struct candidates gone = {0}, added = {0};
    bool is_ok = collect(diff, CHANGE_GONE, &gone) && collect(diff, CHANGE_NEW, &added);
    for (size_t i = 0; i < gone.list.count && is_ok; i++)
        is_ok = cut_into_frames(diff, &gone.list.items[i]);
    for (size_t i = 0; i < added.list.count && is_ok; i++)
        is_ok = cut_into_frames(diff, &added.list.items[i]);
    for (size_t i = 0; i < gone.list.count && is_ok; i++)
        join_best(diff, &gone.list.items[i], &added);
    free_candidates(&gone);
    free_candidates(&added);
    if (!is_ok) error_set(error, "no memory for the comparison");
    return is_ok;
}
