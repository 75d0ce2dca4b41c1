// SPDX-License-Identifier: Apache-2.0
// Figures stand in fixed columns at the left, the tree beside them. Only branching indents: a chain
// of single callers is a column of names, so that deep stacks stay readable in 80 columns.
#include "tool/render/tree.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/calls.h"
#include "tool/render/interval.h"
#include "tool/render/trust.h"

enum {
    WIDE_COLUMNS = 100,  // from here on there is room for the number of blocks too
    SIZE_COLUMNS = 18,   // percent and size, with what separates them ...
    COUNT_COLUMNS = 16,  // ... and the blocks
    NOTE_COLUMNS = INTERVAL_NOTE_COLUMNS + 2,  // of estimates instead: how sure they are
    LABEL_COLUMNS_MIN = 12,
    FIGURES_BYTES = 96,
    PREFIX_BYTES = 4096,
};

struct printer {
    const struct terminal *terminal;
    const struct view_options *view;
    const struct calls *calls;
    int64_t whole, threshold;
    size_t figures_columns;
    bool has_samples;
    char prefix[PREFIX_BYTES];  // lines of the branches that are still open
    size_t prefix_size, prefix_columns;
};

// The figures of a line as text; equal text is not repeated.
static void figures_text(const struct printer *printer, struct measured measured, char *out) {
    const struct view_options *view = printer->view;
    struct unit_text percent = units_percent(measured.value, printer->whole);
    const struct measure_row *about = measure_about(view->by);
    struct unit_text size = about->is_bytes
                                ? units_size_as(measured_shown(measured), view->is_plain_number)
                                : units_count(measured_shown(measured));
    int used = snprintf(out, FIGURES_BYTES, "%6s %9s  ", percent.text, size.text);
    if (printer->figures_columns == SIZE_COLUMNS) return;
    if (printer->has_samples) {
        struct unit_text note = interval_note(measured);
        int pad = NOTE_COLUMNS - (int)text_columns(note.text);
        snprintf(out + used, FIGURES_BYTES - (size_t)used, "%s%*s", note.text, pad, "");
        return;
    }
    if (!about->is_bytes)
        snprintf(out + used, FIGURES_BYTES - (size_t)used, "%*s", COUNT_COLUMNS, "");
    else
        snprintf(out + used, FIGURES_BYTES - (size_t)used, "%7s %-6s  ",
                 units_count(measured.blocks).text, about->noun[measured.blocks != 1]);
}

static void print_figures(const struct printer *printer, struct measured measured) {
    char text[FIGURES_BYTES];
    figures_text(printer, measured, text);
    terminal_print(printer->terminal, STYLE_PLAIN, "%s", text);
}

static void print_prefix(const struct printer *printer, const char *branch) {
    terminal_print(printer->terminal, STYLE_DIM, "%.*s%s", (int)printer->prefix_size,
                   printer->prefix, branch);
}

static void print_name(const struct printer *printer, const struct call *call, size_t used) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES] = "";
    size_t columns = printer->terminal->columns;
    size_t room = columns > used + LABEL_COLUMNS_MIN ? columns - used : LABEL_COLUMNS_MIN;
    if (!call->frame) {
        terminal_print(printer->terminal, STYLE_DIM, "%s\n", STACK_NOT_RECORDED);
        return;
    }
    call_location(call, location, sizeof location);
    if (*location) text_cut(location, room / 2);
    size_t location_columns = *location ? text_columns(location) + 1 : 0;
    frame_label(call->frame, label, sizeof label, room - location_columns);
    terminal_print(printer->terminal, STYLE_NAME, "%s", label);
    if (*location) terminal_print(printer->terminal, STYLE_DIM, " %s", location);
    fputc('\n', printer->terminal->out);
}

// Figures that read like those of the line above (`above`, may be NULL) are left out.
static void print_line(const struct printer *printer, const struct call *call, const char *branch,
                       const struct call *above) {
    char text[FIGURES_BYTES], text_above[FIGURES_BYTES] = "";
    figures_text(printer, call_measured(printer->calls, call), text);
    if (above) figures_text(printer, call_measured(printer->calls, above), text_above);
    if (strcmp(text, text_above) != 0)
        terminal_print(printer->terminal, STYLE_PLAIN, "%s", text);
    else
        terminal_indent(printer->terminal, printer->figures_columns);
    print_prefix(printer, branch);
    print_name(printer, call,
               printer->figures_columns + printer->prefix_columns + text_columns(branch));
}

// Opens a level of branches; the text is cut silently where even the prefix has no room.
static bool prefix_push(struct printer *printer, const char *text) {
    size_t size = strlen(text);
    if (printer->prefix_size + size >= sizeof printer->prefix) return false;
    memcpy(printer->prefix + printer->prefix_size, text, size);
    printer->prefix_size += size;
    printer->prefix_columns += text_columns(text);
    return true;
}

static void prefix_pop(struct printer *printer, const char *text) {
    printer->prefix_size -= strlen(text);
    printer->prefix_columns -= text_columns(text);
}

// Children that are worth a line; the others are added up in `rest`.
static size_t count_shown(const struct printer *printer, const struct call *call,
                          struct measured *rest) {
    size_t shown = 0;
    *rest = (struct measured){0};
    for (uint32_t at = call->first_child; at; at = printer->calls->nodes.items[at].next_sibling) {
        const struct call *child = &printer->calls->nodes.items[at];
        bool has_room = !printer->view->top || shown < printer->view->top;
        if (has_room && child->value >= printer->threshold) {
            shown++;
            continue;
        }
        measured_add(rest, call_measured(printer->calls, child));
    }
    return shown;
}

static void print_rest(const struct printer *printer, size_t count, struct measured rest) {
    print_figures(printer, rest);
    print_prefix(printer, "\xe2\x94\x94 ");
    terminal_print(printer->terminal, STYLE_DIM, "%s\n",
                   units_counted((int64_t)count, "other", "others").text);
}

// A level with only one branch worth a line goes on in the same column; then the tree branches.
static void print_below(struct printer *printer, const struct call *call) {
    static const char last[] = "\xe2\x94\x94 ", inner[] = "\xe2\x94\x9c ";
    static const char closed[] = "  ", open[] = "\xe2\x94\x82 ";
    const struct call *nodes = printer->calls->nodes.items;
    struct measured rest;
    size_t shown = count_shown(printer, call, &rest);
    while (shown == 1 && rest.value < printer->threshold) {
        const struct call *above = call;
        call = &nodes[call->first_child];
        print_line(printer, call, "", above);
        shown = count_shown(printer, call, &rest);
    }
    bool has_rest = shown && call->child_count > shown && rest.value >= printer->threshold;
    uint32_t at = call->first_child;
    for (size_t i = 0; i < shown; i++, at = nodes[at].next_sibling) {
        bool is_last = i + 1 == shown && !has_rest;
        print_line(printer, &nodes[at], is_last ? last : inner, NULL);
        if (!prefix_push(printer, is_last ? closed : open)) continue;
        print_below(printer, &nodes[at]);
        prefix_pop(printer, is_last ? closed : open);
    }
    if (has_rest) print_rest(printer, call->child_count - shown, rest);
}

static void print_root(const struct printer *printer, const struct profile *profile) {
    char name[FRAME_TEXT_BYTES];
    program_name(profile, name, sizeof name);
    print_figures(printer, call_measured(printer->calls, printer->calls->nodes.items));
    terminal_print(printer->terminal, STYLE_STRONG, "%s", name);
    bool is_of_owners = recording_is_of_owners(profile->recording);
    terminal_print(printer->terminal, STYLE_DIM, ", %s%s\n",
                   is_of_owners ? "by who keeps it" : measure_about(printer->view->by)->snapshot,
                   printer->view->is_inverted ? ", by allocating function" : "");
}

bool tree_print(const struct terminal *terminal, const struct profile *profile,
                const struct frame_names *names, const struct view_options *view,
                struct error *error) {
    struct calls calls;
    bool is_ok = calls_build(&calls, profile, names, view, error);
    if (is_ok) {
        int64_t whole = measure_total(view->by, profile).value;
        bool is_wide = terminal->columns >= WIDE_COLUMNS;
        size_t figures_columns = is_wide ? SIZE_COLUMNS + COUNT_COLUMNS : SIZE_COLUMNS;
        if (profile->sampling.is_on) figures_columns = SIZE_COLUMNS + NOTE_COLUMNS;
        struct printer printer = {.terminal = terminal,
                                  .view = view,
                                  .calls = &calls,
                                  .whole = whole,
                                  .figures_columns = figures_columns,
                                  .has_samples = profile->sampling.is_on != 0,
                                  .threshold = view_threshold(view, whole)};
        print_root(&printer, profile);
        print_below(&printer, &calls.nodes.items[CALLS_ROOT]);
        if (calls.hidden_count)
            terminal_print(terminal, STYLE_DIM, "%s hidden: --all-frames\n",
                           units_counted((int64_t)calls.hidden_count, "internal frame is",
                                         "internal frames are")
                               .text);
    }
    calls_free(&calls);
    return is_ok;
}
