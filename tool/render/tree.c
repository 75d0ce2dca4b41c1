// SPDX-License-Identifier: Apache-2.0
// Figures stand in fixed columns at the left, the tree beside them. Only branching indents: a chain
// of single callers is a column of names, so that deep stacks stay readable in 80 columns.
#include "tool/render/tree.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/calls.h"
#include "tool/render/trust.h"

enum {
    THRESHOLD_DIVISOR = 100,  // branches below one percent are added up
    FIGURES_COLUMNS = 34,     // percent, size and blocks, with what separates them
    LABEL_COLUMNS_MIN = 12,
    PREFIX_BYTES = 4096,
};

struct printer {
    const struct terminal *terminal;
    const struct view_options *view;
    const struct calls *calls;
    int64_t whole, threshold;
    char prefix[PREFIX_BYTES];  // lines of the branches that are still open
    size_t prefix_size, prefix_columns;
};

static const char *noun_of(enum measure measure, int64_t count) {
    bool has_blocks = measure == MEASURE_PEAK || measure == MEASURE_EXIT;
    if (has_blocks) return count == 1 ? "block" : "blocks";
    return count == 1 ? "call" : "calls";
}

static void print_figures(const struct printer *printer, struct measured measured) {
    const struct view_options *view = printer->view;
    FILE *out = printer->terminal->out;
    terminal_print(printer->terminal, STYLE_STRONG, "%6s",
                   units_percent(measured.value, printer->whole).text);
    if (view->by == MEASURE_CALLS)
        fprintf(out, " %18s %-6s  ", units_count(measured.value).text,
                noun_of(view->by, measured.value));
    else
        fprintf(out, " %9s %8s %-6s  ", units_size_as(measured.value, view->is_plain_number).text,
                units_count(measured.blocks).text, noun_of(view->by, measured.blocks));
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
    frame_location(call->frame, location, sizeof location);
    if (*location) text_cut(location, room / 2);
    size_t location_columns = *location ? text_columns(location) + 1 : 0;
    frame_label(call->frame, label, sizeof label, room - location_columns);
    terminal_print(printer->terminal, STYLE_NAME, "%s", label);
    if (*location) terminal_print(printer->terminal, STYLE_DIM, " %s", location);
    fputc('\n', printer->terminal->out);
}

// Figures that are those of the line above are left out.
static void print_line(const struct printer *printer, const struct call *call, const char *branch,
                       bool has_figures) {
    if (has_figures)
        print_figures(printer, call->measured);
    else
        terminal_indent(printer->terminal, FIGURES_COLUMNS);
    print_prefix(printer, branch);
    print_name(printer, call, FIGURES_COLUMNS + printer->prefix_columns + text_columns(branch));
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
        if (has_room && child->measured.value >= printer->threshold) {
            shown++;
            continue;
        }
        rest->value += child->measured.value;
        rest->blocks += child->measured.blocks;
    }
    return shown;
}

static void print_rest(const struct printer *printer, size_t count, struct measured rest) {
    print_figures(printer, rest);
    print_prefix(printer, "\xe2\x94\x94\xe2\x94\x80 ");
    terminal_print(printer->terminal, STYLE_DIM, "%s others\n", units_count((int64_t)count).text);
}

// Callers that hold all of what is above them go on in the same column; then the tree branches.
static void print_below(struct printer *printer, const struct call *call) {
    static const char last[] = "\xe2\x94\x94\xe2\x94\x80 ", inner[] = "\xe2\x94\x9c\xe2\x94\x80 ";
    static const char closed[] = "   ", open[] = "\xe2\x94\x82  ";
    const struct call *nodes = printer->calls->nodes.items;
    struct measured rest;
    size_t shown = count_shown(printer, call, &rest);
    while (shown == 1 && nodes[call->first_child].measured.value == call->measured.value) {
        call = &nodes[call->first_child];
        print_line(printer, call, "", false);
        shown = count_shown(printer, call, &rest);
    }
    bool has_rest = call->child_count > shown && rest.value >= printer->threshold;
    uint32_t at = call->first_child;
    for (size_t i = 0; i < shown; i++, at = nodes[at].next_sibling) {
        bool is_last = i + 1 == shown && !has_rest;
        print_line(printer, &nodes[at], is_last ? last : inner, true);
        if (!prefix_push(printer, is_last ? closed : open)) continue;
        print_below(printer, &nodes[at]);
        prefix_pop(printer, is_last ? closed : open);
    }
    if (has_rest && shown) print_rest(printer, call->child_count - shown, rest);
}

static void print_root(const struct printer *printer, const struct profile *profile) {
    static const char *const words[] = {[MEASURE_PEAK] = "at the peak",
                                        [MEASURE_EXIT] = "at the end",
                                        [MEASURE_ALLOCATED] = "allocated",
                                        [MEASURE_CALLS] = "allocation calls"};
    char name[FRAME_TEXT_BYTES];
    program_name(profile, name, sizeof name);
    print_figures(printer, printer->calls->nodes.items[CALLS_ROOT].measured);
    terminal_print(printer->terminal, STYLE_STRONG, "%s", name);
    terminal_print(printer->terminal, STYLE_DIM, ", %s%s\n", words[printer->view->by],
                   printer->view->is_inverted ? ", by allocating function" : "");
}

bool tree_print(const struct terminal *terminal, const struct profile *profile,
                const struct frame_names *names, const struct view_options *view,
                struct error *error) {
    struct calls calls;
    bool is_ok = calls_build(&calls, profile, names, view, error);
    if (is_ok) {
        int64_t whole = calls.nodes.items[CALLS_ROOT].measured.value;
        struct printer printer = {.terminal = terminal,
                                  .view = view,
                                  .calls = &calls,
                                  .whole = whole,
                                  .threshold = (whole + THRESHOLD_DIVISOR - 1) / THRESHOLD_DIVISOR};
        print_root(&printer, profile);
        print_below(&printer, &calls.nodes.items[CALLS_ROOT]);
        if (calls.hidden_count)
            terminal_print(terminal, STYLE_DIM, "%s plumbing frames are hidden: --all-frames\n",
                           units_count((int64_t)calls.hidden_count).text);
    }
    calls_free(&calls);
    return is_ok;
}
