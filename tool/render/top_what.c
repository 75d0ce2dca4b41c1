// SPDX-License-Identifier: Apache-2.0
// What the list of `cairn top` is of: stacks, of some labels or of a heap by name; contexts; heaps.
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/interval.h"
#include "tool/render/top_screen.h"

enum { TEXT_BYTES = 256 };

static void add_labels(const struct live_set *set, bool are_values, char *name, size_t size) {
    size_t used = 0;
    *name = 0;
    for (const char *label = NULL; (label = live_set_next(set, label)) && used + 1 < size;) {
        if (used) name[used++] = ' ';
        text_escape(name + used, size - used, label + (are_values ? strcspn(label, "=") + 1 : 0));
        used += strlen(name + used);
    }
}

void top_set_name(const struct top_view *view, size_t row, char *name, size_t size) {
    const struct live_part *part = &view->live->part;
    add_labels(&part->sets.items[row], part->of.bytes != 0, name, size);
    if (!*name) snprintf(name, size, "(none)");
}

// "3 stacks of tenant=7", "5 values of tenant".
static void name_rows(const struct top_view *view, size_t count, char *text, size_t size) {
    const struct live_part *part = &view->live->part;
    char of[TEXT_BYTES / 2];
    struct unit_text counted = units_count((int64_t)count);
    add_labels(&part->of, false, of, sizeof of);
    if (part->kind == LIVE_BY_LABELS && *of)
        snprintf(text, size, "%s %s of %s", counted.text, count == 1 ? "value" : "values", of);
    else if (part->kind == LIVE_BY_LABELS)
        snprintf(text, size, "%s %s", counted.text, count == 1 ? "context" : "contexts");
    else if (part->kind == LIVE_BY_HEAPS)
        snprintf(text, size, "%s %s", counted.text, count == 1 ? "heap" : "heaps");
    else
        snprintf(text, size, "%s %s%s%s%s", counted.text, count == 1 ? "stack" : "stacks",
                 *of ? " of " : "", part->kind == LIVE_OF_HEAP ? "heap " : "", of);
}

void top_print_what(const struct terminal *terminal, const struct top_view *view,
                    const struct top_sums *sums) {
    static const char *const orders[LIVE_MEASURES] = {
        [LIVE_BYTES] = "what they hold",
        [LIVE_GROWTH] = "growth",
        [LIVE_RATE] = "what they allocate",
        [LIVE_TEMPORARY] = "temporary blocks",
    };
    char search[TEXT_BYTES / 2] = "", rows[TEXT_BYTES], text[4 * TEXT_BYTES];
    if (view->search) {
        char safe[TEXT_BYTES / 2];
        text_escape(safe, sizeof safe - 16, view->search);
        bool is_of_sets = live_part_is_of_sets(&view->live->part);
        snprintf(search, sizeof search, " %s \"%s\"", is_of_sets ? "with" : "through", safe);
    }
    const struct measured held = measured_bytes(sums->bytes, &sums->estimate);
    name_rows(view, sums->stack_count, rows, sizeof rows);
    int length = snprintf(
        text, sizeof text, "%s%s by %s%s: %s%s in %s %s%s", rows, search, orders[view->by],
        view->are_survivors ? " of what came since the mark" : "",
        units_size_as(measured_shown(held), view->is_plain_number).text,
        interval_amount(held, true, view->is_plain_number).text, units_count(sums->blocks).text,
        sums->blocks == 1 ? "block" : "blocks", interval_samples(held).text);
    static const char since[] = "; growth since ";
    bool has_room =
        text_columns(text) + sizeof since + text_columns(view->since) <= terminal->columns;
    if (has_room) snprintf(text + length, sizeof text - (size_t)length, "%s%s", since, view->since);
    text_cut(text, terminal->columns);
    terminal_print(terminal, STYLE_STRONG, "%s", text);
    fputc('\n', terminal->out);
}
