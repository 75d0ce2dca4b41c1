// SPDX-License-Identifier: Apache-2.0
#include "tool/render/diff.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/narrow.h"

const char *change_word(enum change_kind kind) {
    static const char *const words[CHANGE_KINDS] = {"same", "new", "gone", "grown", "shrunk"};
    return words[kind];
}

void diff_start(struct diff *diff, size_t recording_count, size_t first_count) {
    *diff = (struct diff){.recording_count = recording_count, .first_count = first_count};
}

void diff_free(struct diff *diff) {
    for (size_t i = 0; i < diff->rows.count; i++) {
        free(diff->rows.items[i].key);
        free(diff->rows.items[i].where);
    }
    array_free(&diff->rows);
    array_free(&diff->values);
    index_table_free(&diff->table);
}

const int64_t *diff_values(const struct diff *diff, size_t row) {
    return &diff->values.items[row * diff->recording_count];
}

static uint64_t hash_of(const char *text) {
    uint64_t hash = index_table_seed();
    for (; *text; text++) hash = hash_mix(hash, (unsigned char)*text);
    return hash;
}

static bool add_row(struct diff *diff, uint64_t hash, const char *key, const char *where) {
    uint32_t index = (uint32_t)diff->rows.count;
    struct diff_row *row = array_push(&diff->rows);
    if (!row) return false;
    *row = (struct diff_row){.key = strdup(key), .where = strdup(where)};
    for (size_t i = 0; i < diff->recording_count; i++) {
        int64_t *value = array_push(&diff->values);
        if (!value) return false;
        *value = 0;
    }
    return row->key && row->where && index_table_insert(&diff->table, hash, index);
}

static bool find(const struct diff *diff, uint64_t hash, const char *key, uint32_t *index) {
    struct index_probe probe = index_probe_start(&diff->table, hash);
    while (index_probe_next(&diff->table, &probe, index))
        if (!strcmp(diff->rows.items[*index].key, key)) return true;
    return false;
}

bool diff_add(struct diff *diff, size_t recording, const char *key, const char *where,
              int64_t value) {
    uint64_t hash = hash_of(key);
    uint32_t index;
    if (!find(diff, hash, key, &index)) {
        index = (uint32_t)diff->rows.count;
        if (!add_row(diff, hash, key, where)) return false;
    } else if (strcmp(diff->rows.items[index].where, where) != 0) {
        char *newer = strdup(where);
        if (!newer) return false;
        free(diff->rows.items[index].where);
        diff->rows.items[index].where = newer;
    }
    int64_t *sum = &diff->values.items[index * diff->recording_count + recording];
    *sum = figures_add(*sum, value);
    return true;
}

// Lines of text that grow.
struct lines {
    ARRAY(char) text;
};

static bool lines_add(struct lines *lines, const char *text) {
    if (lines->text.count) lines->text.items[lines->text.count - 1] = '\n';
    for (const char *at = text;; at++) {
        char *slot = array_push(&lines->text);
        if (!slot) return false;
        *slot = *at;
        if (!*at) return true;
    }
}

// The functions of a stack and their places; recursion is one line.
static bool spell(const struct frame_list *frames, struct lines *key, struct lines *where) {
    char text[FRAME_TEXT_BYTES];
    const struct frame *frame, *before = NULL;
    size_t index = 0;
    key->text.count = where->text.count = 0;
    while ((frame = frame_list_next(frames, &index))) {
        if (before && frame_is_same_function(frame, before)) continue;
        before = frame;
        frame_label(frame, text, sizeof text, sizeof text);
        if (!lines_add(key, text)) return false;
        frame_location(frame, text, sizeof text);
        if (!lines_add(where, text)) return false;
    }
    return key->text.count || (lines_add(key, STACK_NOT_RECORDED) && lines_add(where, ""));
}

bool diff_add_stacks(struct diff *diff, size_t recording, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    struct lines key = {0}, where = {0};
    bool is_ok = true;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        int64_t value = measure_stack(view->by, &profile->stacks[i]).value;
        if (value <= 0) continue;
        is_ok = frame_list_fill(&frames, profile, names, profile->stacks[i].node, 0) &&
                spell(&frames, &key, &where) &&
                diff_add(diff, recording, key.text.items, where.text.items, value);
    }
    frame_list_free(&frames);
    array_free(&key.text);
    array_free(&where.text);
    return is_ok || error_set(error, "no memory for the comparison");
}

bool diff_keep_growth(const struct diff *diff, struct profile *profile,
                      const struct frame_names *names, const struct view_options *view,
                      struct error *error) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    struct lines key = {0}, where = {0};
    bool *are_kept = calloc(profile->stack_count + 1, sizeof *are_kept);
    bool is_ok = are_kept != NULL;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        uint32_t row;
        is_ok = frame_list_fill(&frames, profile, names, profile->stacks[i].node, 0) &&
                spell(&frames, &key, &where);
        if (!is_ok || !find(diff, hash_of(key.text.items), key.text.items, &row)) continue;
        enum change_kind kind = diff_change(diff, diff_values(diff, row)).kind;
        are_kept[i] = kind == CHANGE_NEW || kind == CHANGE_GROWN;
    }
    if (is_ok) profile_keep_stacks(profile, are_kept);
    free(are_kept);
    frame_list_free(&frames);
    array_free(&key.text);
    array_free(&where.text);
    return is_ok || error_set(error, "no memory for the comparison");
}

bool diff_add_groups(struct diff *diff, size_t recording, const struct grouping *grouping,
                     const struct profile *profile, const struct frame_names *names,
                     const struct view_options *view, struct error *error) {
    struct group_list list;
    bool is_ok = group_list_build(&list, grouping, profile, names, view, error), has_memory = true;
    for (size_t i = 0; i < list.groups.count && is_ok && has_memory; i++) {
        const struct group *group = &list.groups.items[i];
        has_memory = diff_add(diff, recording, group->label, group->location, group->self.value);
    }
    group_list_free(&list);
    if (!has_memory) error_set(error, "no memory for the comparison");
    return is_ok && has_memory;
}

static int compare_values(const void *a, const void *b) {
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

// Lowest, median and highest value of a side. Sides are short: at most this many are looked at.
struct side {
    int64_t low, median, high;
};
enum { SIDE_MAX = 64 };

static struct side side_of(const int64_t *values, size_t count) {
    int64_t sorted[SIDE_MAX] = {0};
    if (count > SIDE_MAX) count = SIDE_MAX;
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare_values);
    size_t below = (count - 1) / 2, above = count / 2;  // the same for an odd number
    uint64_t gap = (uint64_t)sorted[above] - (uint64_t)sorted[below];
    int64_t median = (int64_t)((uint64_t)sorted[below] + gap / 2);
    return (struct side){sorted[0], median, sorted[count - 1]};
}

struct change diff_change(const struct diff *diff, const int64_t *values) {
    size_t second_count = diff->recording_count - diff->first_count;
    struct side before = side_of(values, diff->first_count);
    struct side after = side_of(values + diff->first_count, second_count);
    bool is_apart = after.low > before.high || after.high < before.low;
    int64_t difference = (int64_t)((uint64_t)after.median - (uint64_t)before.median);
    struct change change = {before.median, after.median, difference, CHANGE_NONE, false};
    bool differs = before.low != after.low || before.high != after.high ||
                   before.low != before.high || after.low != after.high;
    if (!is_apart)
        change.is_noise = differs;
    else if (!before.high)
        change.kind = CHANGE_NEW;
    else if (!after.high)
        change.kind = CHANGE_GONE;
    else
        change.kind = after.low > before.high ? CHANGE_GROWN : CHANGE_SHRUNK;
    return change;
}

struct ranked {
    uint64_t size;
    uint32_t row;
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *first = a, *second = b;
    if (first->size != second->size) return first->size < second->size ? 1 : -1;
    return (first->row > second->row) - (first->row < second->row);
}

uint32_t *diff_rank(const struct diff *diff, size_t *count, size_t *noise_count) {
    struct ranked *ranked = calloc(diff->rows.count + 1, sizeof *ranked);
    uint32_t *rows = calloc(diff->rows.count + 1, sizeof *rows);
    *count = *noise_count = 0;
    if (!ranked || !rows) {
        free(ranked);
        free(rows);
        return NULL;
    }
    for (uint32_t i = 0; i < diff->rows.count; i++) {
        struct change change = diff_change(diff, diff_values(diff, i));
        *noise_count += change.is_noise;
        uint64_t delta = (uint64_t)change.delta, size = change.delta < 0 ? 0 - delta : delta;
        if (change.kind != CHANGE_NONE) ranked[(*count)++] = (struct ranked){size, i};
    }
    qsort(ranked, *count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < *count; i++) rows[i] = ranked[i].row;
    free(ranked);
    return rows;
}
