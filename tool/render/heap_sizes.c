// SPDX-License-Identifier: Apache-2.0
// What an allocator that gives each size pages of its own keeps, by size: on the pages of one size
// lie blocks that are handed out, blocks that wait in caches of threads, and the rest, which no
// block of another size can use.
#include <stdlib.h>

#include "tool/render/columns.h"
#include "tool/render/heap_screen.h"

void heap_print_empty(const struct terminal *terminal, const struct heap_state *state,
                      bool is_plain) {
    static const struct column items[] = {{"", 12, STYLE_PLAIN, false},
                                          {"", 11, STYLE_PLAIN, false}};
    enum { COLUMNS = sizeof items / sizeof *items };
    const struct columns columns = {items, COLUMNS, 0, 1};
    const struct unit_text texts[COLUMNS] = {{""},
                                             units_size_as((int64_t)state->empty_bytes, is_plain)};
    columns_print(terminal, &columns, texts);
    fprintf(terminal->out, "  free, of pages without a block");
    if (!state->is_core)
        fprintf(terminal->out, ", %s of them resident",
                units_size_as((int64_t)state->empty_resident_bytes, is_plain).text);
    fputc('\n', terminal->out);
}

static int compare_wasted(const void *a, const void *b) {
    const uint64_t left = heap_size_wasted(*(const struct heap_size *const *)a);
    const uint64_t right = heap_size_wasted(*(const struct heap_size *const *)b);
    return (left < right) - (left > right);
}

static void print_size(const struct terminal *terminal, const struct columns *columns,
                       const struct heap_size *size, bool is_plain) {
    const uint64_t wasted = heap_size_wasted(size);
    const struct unit_text texts[] = {
        units_size_as((int64_t)size->size, is_plain),
        units_count((int64_t)size->used.count),
        units_size_as((int64_t)size->page_bytes, is_plain),
        units_size_as((int64_t)size->used.bytes, is_plain),
        units_size_as((int64_t)size->cached.bytes, is_plain),
        units_size_as((int64_t)wasted, is_plain),
        units_percent((int64_t)wasted, (int64_t)size->page_bytes),
    };
    columns_print(terminal, columns, texts);
    fputc('\n', terminal->out);
}

void heap_print_sizes(const struct terminal *terminal, const struct heap_state *state,
                      const struct view_options *view) {
    static const struct column items[] = {{"blocks of", 11, STYLE_PLAIN, false},
                                          {"used", 10, STYLE_PLAIN, false},
                                          {"pages", 10, STYLE_PLAIN, false},
                                          {"used", 10, STYLE_PLAIN, false},
                                          {"cached", 10, STYLE_PLAIN, false},
                                          {"beside", 10, STYLE_PLAIN, false},
                                          {"", 6, STYLE_PLAIN, false}};
    const struct columns columns = {items, sizeof items / sizeof *items, 0, 1};
    const size_t count = state->sizes.count;
    const struct heap_size **sizes = calloc(count, sizeof *sizes);
    if (!sizes) return;
    for (size_t i = 0; i < count; i++) sizes[i] = &state->sizes.items[i];
    qsort(sizes, count, sizeof *sizes, compare_wasted);
    size_t shown = view->top && view->top < count ? view->top : count;
    fputc('\n', terminal->out);
    columns_print_heads(terminal, &columns);
    fputc('\n', terminal->out);
    for (size_t i = 0; i < shown; i++)
        print_size(terminal, &columns, sizes[i], view->is_plain_number);
    if (shown < count)
        terminal_print(terminal, STYLE_DIM, "%s: --top 0\n",
                       units_counted((int64_t)(count - shown), "more size", "more sizes").text);
    free(sizes);
}
