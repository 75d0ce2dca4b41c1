// SPDX-License-Identifier: Apache-2.0
// A function that was inlined without debug information, or that a new compiler made a function of
// its own, is one frame less or more. Such stacks are joined with the nearest one of the other
// side: one has to hold all frames of the other in their order, with at most a third more, and the
// same outermost frame. Only the largest rows of each side are tried, so that the time stays
// bounded.
//
// Other profilers say less of a function than cairn does: `resize` or `std::vector<>::resize` for
// `std::vector<int>::resize`, an address for what has no name. Such names may be the same; of
// several stacks the one with the fewest of them is taken.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
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

// Behind the template arguments that begin here, or the end of the text.
static const char *skip_arguments(const char *at) {
    size_t depth = 0;
    for (; *at; at++) {
        depth += *at == '<';
        if (*at == '>' && !--depth) return at + 1;
    }
    return at;
}

// What follows the last "::" outside of template arguments.
static const char *bare_name(const char *name) {
    const char *bare = name;
    for (const char *at = name; *at;) {
        if (*at == '<') {
            at = skip_arguments(at);
            continue;
        }
        if (!strncmp(at, "::", 2)) bare = at + 2;
        at++;
    }
    return bare;
}

static bool is_same_without_arguments(const char *a, const char *b) {
    for (;;) {
        while (*a == '<') a = skip_arguments(a);
        while (*b == '<') b = skip_arguments(b);
        if (*a != *b) return false;
        if (!*a) return true;
        a++;
        b++;
    }
}

// One of the two does not say its template arguments, or what it is a member of, and they are the
// same without.
static bool is_alike(const char *a, const char *b) {
    const char *bare_a = bare_name(a), *bare_b = bare_name(b);
    bool is_bare = (bare_a == a) != (bare_b == b);
    bool is_unsaid = strstr(a, "<>") || strstr(b, "<>");
    if (!is_bare && !is_unsaid) return false;
    return is_same_without_arguments(is_bare ? bare_a : a, is_bare ? bare_b : b);
}

// Equal names, or addresses in the same module, which another build has elsewhere; 1: names that
// may be the same; UINT32_MAX: others.
static uint32_t difference(const char *a, const char *b) {
    if (!a || !b) return UINT32_MAX;
    const char *plus_a = strstr(a, "+0x"), *plus_b = strstr(b, "+0x");
    bool is_bare_a = !strncmp(a, "0x", 2), is_bare_b = !strncmp(b, "0x", 2);
    if ((is_bare_a || is_bare_b) && (is_bare_a || plus_a) && (is_bare_b || plus_b)) return 1;
    if (plus_a && plus_b) {
        bool is_module = plus_a - a == plus_b - b && !strncmp(a, b, (size_t)(plus_a - a));
        return is_module ? 0 : UINT32_MAX;
    }
    if (!strcmp(a, b)) return 0;
    return is_alike(a, b) ? 1 : UINT32_MAX;
}

// How far two stacks are from each other: first by frames of the longer one that the shorter one
// lacks, then by names that are only alike; UINT32_MAX: another stack.
static uint32_t distance(const struct candidate *a, const struct candidate *b) {
    const struct candidate *small = a->frame_count <= b->frame_count ? a : b;
    const struct candidate *large = small == a ? b : a;
    uint32_t extra = large->frame_count - small->frame_count, at = 0;
    // one frame says little, but that both hold as much says more
    bool is_enough = small->frame_count >= FRAMES_MIN || (!extra && a->value == b->value);
    if (!small->frame_count || !is_enough || extra * EXTRA_DIVISOR > large->frame_count)
        return UINT32_MAX;
    uint32_t alike =
        difference(small->frames[small->frame_count - 1], large->frames[large->frame_count - 1]);
    if (alike == UINT32_MAX) return UINT32_MAX;
    for (uint32_t i = 0; i < large->frame_count && at < small->frame_count; i++) {
        uint32_t one = difference(small->frames[at], large->frames[i]);
        if (one == UINT32_MAX) continue;
        alike += one;
        at++;
    }
    return at == small->frame_count ? extra * FRAMES_MAX * 2 + alike : UINT32_MAX;
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

// Lines of source side by side. A line is known by its function, file, and distance from the first
// line of that function that has figures: what moved as a whole is the same. Lines that are left on
// one side alone are joined in their order with those of the same function on the other.

struct line {
    const struct group *group;
    size_t path_length;  // of the group's label
    unsigned number;     // 0: not known
};

static struct line line_of(const struct group *group) {
    const char *colon = strrchr(group->label, ':');
    bool has_number = colon && *group->label != '[' && colon[1] && colon[1] != ':';
    char *end = NULL;
    unsigned long number = has_number ? strtoul(colon + 1, &end, 10) : 0;
    if (!has_number || *end) number = 0;
    return (struct line){group, number ? (size_t)(colon - group->label) : 0, (unsigned)number};
}

static int compare_places(const struct line *first, const struct line *second) {
    int order = strcmp(first->group->location, second->group->location);
    if (order) return order;
    if (first->path_length != second->path_length)
        return first->path_length < second->path_length ? -1 : 1;
    return strncmp(first->group->label, second->group->label, first->path_length);
}

static int compare_lines(const void *a, const void *b) {
    const struct line *first = a, *second = b;
    int order = compare_places(first, second);
    return order ? order : (first->number > second->number) - (first->number < second->number);
}

static bool add_line(struct diff *diff, size_t recording, const struct line *line, unsigned first) {
    enum { NUMBER_BYTES = 16 };
    char key[2 * GROUP_TEXT_BYTES + NUMBER_BYTES], where[3 * GROUP_TEXT_BYTES];
    char path[GROUP_TEXT_BYTES];
    const struct group *group = line->group;
    if (!line->number) return diff_add(diff, recording, group->label, group->label, group->self);
    snprintf(path, sizeof path, "%.*s", (int)line->path_length, group->label);
    // a checkout elsewhere has the same files
    snprintf(key, sizeof key, "%s\n%s\n+%u", group->location, text_base_name(path),
             line->number - first);
    snprintf(where, sizeof where, "%s\n%s\n", group->label, path);
    return diff_add(diff, recording, key, where, group->self);
}

static bool add_all(struct diff *diff, size_t recording, struct line *lines, size_t count) {
    unsigned first = 0;
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++) {
        if (!i || compare_places(&lines[i], &lines[i - 1])) first = lines[i].number;
        if (!add_line(diff, recording, &lines[i], first)) return false;
    }
    return true;
}

bool diff_add_lines(struct diff *diff, size_t recording, const struct profile *profile,
                    const struct frame_names *names, const struct view_options *view,
                    struct error *error) {
    struct group_list list;
    if (!group_list_build(&list, &groupings[GROUP_LINES], profile, names, view, error)) {
        group_list_free(&list);
        return false;
    }
    struct line *lines = calloc(list.groups.count + 1, sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; lines && i < list.groups.count; i++)
        if (list.groups.items[i].self.value) lines[count++] = line_of(&list.groups.items[i]);
    bool is_ok = lines && add_all(diff, recording, lines, count);
    free(lines);
    group_list_free(&list);
    return is_ok || error_set(error, "no memory for the comparison");
}

// A row that is on one side alone.
struct lonely {
    const struct diff_row *row;
    uint32_t index;
    unsigned offset;
    bool is_new;
};

static int compare_functions(const struct lonely *first, const struct lonely *second) {
    const uint32_t *a = first->row->names, *b = second->row->names;
    if (a[DIFF_LINE_FUNCTION] != b[DIFF_LINE_FUNCTION])
        return a[DIFF_LINE_FUNCTION] < b[DIFF_LINE_FUNCTION] ? -1 : 1;
    return (a[DIFF_LINE_PATH] > b[DIFF_LINE_PATH]) - (a[DIFF_LINE_PATH] < b[DIFF_LINE_PATH]);
}

static int compare_lonely(const void *a, const void *b) {
    const struct lonely *first = a, *second = b;
    int order = compare_functions(first, second);
    if (order) return order;
    if (first->is_new != second->is_new) return first->is_new ? 1 : -1;
    return (first->offset > second->offset) - (first->offset < second->offset);
}

// Of one function: the gone ones come first.
static void join_function(struct diff *diff, const struct lonely *rows, size_t count) {
    size_t gone = 0;
    while (gone < count && !rows[gone].is_new) gone++;
    for (size_t i = 0; i < gone && gone + i < count; i++)
        diff_join_rows(diff, rows[i].index, rows[gone + i].index);
}

bool diff_join_lines(struct diff *diff, struct error *error) {
    struct lonely *rows = calloc(diff->rows.count + 1, sizeof *rows);
    size_t count = 0;
    if (!rows) return error_set(error, "no memory for the comparison");
    for (uint32_t i = 0; i < diff->rows.count; i++) {
        const struct diff_row *row = &diff->rows.items[i];
        enum change_kind kind = diff_row_change(diff, i).kind;
        bool is_lonely = kind == CHANGE_NEW || kind == CHANGE_GONE;
        if (!is_lonely || row->count != DIFF_LINE_NAMES) continue;
        const char *offset = diff_name(diff, row, DIFF_LINE_OFFSET);
        rows[count++] =
            (struct lonely){row, i, (unsigned)strtoul(offset + 1, NULL, 10), kind == CHANGE_NEW};
    }
    qsort(rows, count, sizeof *rows, compare_lonely);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && !compare_functions(&rows[end], &rows[first]);) end++;
        join_function(diff, &rows[first], end - first);
    }
    free(rows);
    return true;
}
