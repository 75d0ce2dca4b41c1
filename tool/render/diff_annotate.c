// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/annotate.h"
#include "tool/render/diff_screen.h"
#include "tool/render/shorten.h"

enum { CONTEXT_LINES = 2, SIZE_COLUMNS = 12, PLAIN_COLUMNS = 17, NUMBER_COLUMNS = 6 };
enum { LINE_BYTES = 4096, LISTED_MAX = 6, LIST_BYTES = 512 };

// A row of the file that is shown, by the line where it is now.
struct mark {
    unsigned number;
    uint32_t row;
    struct change change;
};

struct sheet {
    const struct diff_screen *screen;
    const char *path;
    uint32_t path_number;
    ARRAY(struct mark) marks;  // by line
};

static bool is_line(const struct diff_row *row) {
    return row->count == DIFF_LINE_NAMES;
}

static int64_t size_of(int64_t delta) {
    return delta < 0 ? (int64_t)(0 - (uint64_t)delta) : delta;
}

// How much changed in each file, by the number of its name; for free().
static int64_t *sum_files(const struct diff *diff) {
    int64_t *sums = calloc(diff->texts.list.count + 1, sizeof *sums);
    for (uint32_t i = 0; sums && i < diff->rows.count; i++) {
        const struct diff_row *row = &diff->rows.items[i];
        struct change change = diff_row_change(diff, i);
        if (!is_line(row)) continue;
        int64_t *sum = &sums[row->where[DIFF_LINE_PATH]];
        *sum = figures_add(*sum, figures_add(size_of(change.delta), 1));
    }
    return sums;
}

static bool refuse(const struct sheet *sheet, const int64_t *sums, const char *wanted,
                   struct error *error) {
    const struct diff_texts *texts = &sheet->screen->diff->texts;
    char list[LIST_BYTES] = "";
    size_t listed = 0;
    for (size_t i = 0; i < texts->list.count && listed < LISTED_MAX; i++) {
        size_t used = strlen(list);
        if (!sums[i]) continue;
        snprintf(list + used, sizeof list - used, "%s%s", listed++ ? ", " : "",
                 text_base_name(texts->list.items[i]));
    }
    if (!listed)
        return error_set(error, "no stack knows its source: there is no debug information");
    if (wanted)
        return error_set(error, "--source '%s': no stack goes through it, but through %s", wanted,
                         list);
    return error_set(error, "no source file can be read here; the stacks go through %s", list);
}

// The file that is meant, or the one that changed most and can be read.
static bool choose(struct sheet *sheet, const char *wanted, struct error *error) {
    const struct diff_texts *texts = &sheet->screen->diff->texts;
    int64_t *sums = sum_files(sheet->screen->diff), most = 0;
    if (!sums) return error_set(error, "no memory for the comparison");
    for (uint32_t i = 0; i < texts->list.count; i++) {
        const char *path = texts->list.items[i];
        if (sums[i] <= most) continue;
        FILE *source = wanted ? NULL : annotate_open_source(path);
        bool is_right = wanted ? annotate_is_meant(path, wanted) : source != NULL;
        if (source) fclose(source);
        if (!is_right) continue;
        most = sums[i];
        sheet->path = path;
        sheet->path_number = i;
    }
    bool is_found = sheet->path || refuse(sheet, sums, wanted, error);
    free(sums);
    return is_found;
}

static int compare(const void *a, const void *b) {
    const struct mark *first = a, *second = b;
    if (first->number != second->number) return first->number < second->number ? -1 : 1;
    return (first->row > second->row) - (first->row < second->row);
}

static bool collect(struct sheet *sheet) {
    const struct diff *diff = sheet->screen->diff;
    for (uint32_t i = 0; i < diff->rows.count; i++) {
        const struct diff_row *row = &diff->rows.items[i];
        struct change change = diff_row_change(diff, i);
        bool is_there = change.before || change.after;
        if (!is_line(row) || row->where[DIFF_LINE_PATH] != sheet->path_number || !is_there)
            continue;
        const char *colon = strrchr(diff_where(diff, row, 0), ':');
        struct mark *mark = array_push(&sheet->marks);
        if (!mark) return false;
        *mark = (struct mark){colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0, i, change};
    }
    if (sheet->marks.count)
        qsort(sheet->marks.items, sheet->marks.count, sizeof *sheet->marks.items, compare);
    return true;
}

static int columns_of(const struct sheet *sheet) {
    return sheet->screen->view->is_plain_number ? PLAIN_COLUMNS : SIZE_COLUMNS;
}

// What changed at a line that is there now; functions may share it.
static struct change change_at(const struct sheet *sheet, unsigned number, bool *is_there) {
    struct change sum = {0};
    *is_there = false;
    for (size_t i = 0; i < sheet->marks.count; i++) {
        const struct mark *mark = &sheet->marks.items[i];
        if (mark->number != number || mark->change.kind == CHANGE_GONE) continue;
        *is_there = true;
        sum.after = figures_add(sum.after, mark->change.after);
        if (!mark->change.is_noise) sum.delta = figures_add(sum.delta, mark->change.delta);
    }
    return sum;
}

static void print_amounts(const struct sheet *sheet, struct change change) {
    const struct diff_screen *screen = sheet->screen;
    bool is_bytes = measure_about(screen->view->by)->is_bytes;
    bool is_plain = screen->view->is_plain_number;
    struct unit_text delta = diff_delta_text(change.delta, is_bytes, is_plain);
    struct unit_text now =
        is_bytes ? units_size_as(change.after, is_plain) : units_count(change.after);
    enum style style = change.delta > 0 ? STYLE_WARNING : STYLE_NAME;
    terminal_print(screen->terminal, style, "%*s", columns_of(sheet),
                   change.delta ? delta.text : "");
    fprintf(screen->terminal->out, "%*s", columns_of(sheet), now.text);
}

static void print_line(const struct sheet *sheet, unsigned number, const char *line) {
    const struct terminal *terminal = sheet->screen->terminal;
    char text[LINE_BYTES], safe[LINE_BYTES];
    bool is_there;
    size_t used = 2 * (size_t)columns_of(sheet) + NUMBER_COLUMNS + 3;
    struct change change = change_at(sheet, number, &is_there);
    if (is_there)
        print_amounts(sheet, change);
    else
        terminal_indent(terminal, 2 * (size_t)columns_of(sheet));
    terminal_print(terminal, STYLE_DIM, "%*u  ", NUMBER_COLUMNS, number);
    annotate_expand(line, text, sizeof text);
    text_escape(safe, sizeof safe, text);
    text_cut(safe, terminal->columns > used + 1 ? terminal->columns - used : 1);
    terminal_print(terminal, is_there ? STYLE_STRONG : STYLE_PLAIN, "%s\n", safe);
}

static bool is_near(const struct sheet *sheet, unsigned number) {
    bool is_there = !sheet->screen->view->top;
    for (unsigned i = number > CONTEXT_LINES ? number - CONTEXT_LINES : 1;
         !is_there && i <= number + CONTEXT_LINES; i++)
        change_at(sheet, i, &is_there);
    return is_there;
}

static void print_source(const struct sheet *sheet, FILE *source) {
    char line[LINE_BYTES];
    unsigned number = 0, last = 0;
    while (fgets(line, sizeof line, source)) {
        if (!is_near(sheet, ++number)) continue;
        if (number > last + 1)
            terminal_print(sheet->screen->terminal, STYLE_DIM, "%*s\n",
                           2 * columns_of(sheet) + NUMBER_COLUMNS, "...");
        last = number;
        print_line(sheet, number, line);
    }
}

static void print_gone(const struct sheet *sheet) {
    const struct diff *diff = sheet->screen->diff;
    const struct terminal *terminal = sheet->screen->terminal;
    for (size_t i = 0; i < sheet->marks.count; i++) {
        const struct mark *mark = &sheet->marks.items[i];
        const struct diff_row *row = &diff->rows.items[mark->row];
        if (mark->change.kind != CHANGE_GONE) continue;
        print_amounts(sheet, mark->change);
        terminal_print(terminal, STYLE_DIM, "  was at line %u, in ", mark->number);
        terminal_print(terminal, STYLE_NAME, "%s\n", diff_name(diff, row, DIFF_LINE_FUNCTION));
    }
}

bool diff_print_annotated(const struct diff_screen *screen, const char *wanted,
                          struct error *error) {
    struct sheet sheet = {.screen = screen};
    FILE *source = NULL;
    bool is_ok = choose(&sheet, wanted, error);
    is_ok = is_ok && (collect(&sheet) || error_set(error, "no memory for the comparison"));
    if (is_ok) {
        source = annotate_open_source(sheet.path);
        // a source that was moved: as the user named it
        if (!source && wanted) source = annotate_open_source(wanted);
        is_ok = source || error_set(error, "%s: %s", sheet.path, strerror(errno));
    }
    if (is_ok) {
        terminal_print(screen->terminal, STYLE_STRONG, "\n%s\n", sheet.path);
        terminal_print(screen->terminal, STYLE_DIM, "%*s%*s%*s\n", columns_of(&sheet), "change",
                       columns_of(&sheet), "now", NUMBER_COLUMNS, "line");
        print_source(&sheet, source);
        print_gone(&sheet);
        fclose(source);
    }
    array_free(&sheet.marks);
    return is_ok;
}
