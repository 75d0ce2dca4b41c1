// SPDX-License-Identifier: Apache-2.0
// Lines of source side by side. A line is told by its function, file, and distance from the first
// line of that function that has figures: what moved as a whole is the same. Lines that are left on
// one side alone are joined in their order with those of the same function on the other.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/render/diff.h"

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
    if (!group_list_build(&list, grouping_find("lines"), profile, names, view, error)) {
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
