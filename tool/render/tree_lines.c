// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "tool/render/calls.h"
#include "tool/render/interval.h"
#include "tool/render/tree.h"

enum { INDENT = 2 };

struct printer {
    FILE *out;
    const struct view_options *view;
    const struct calls *calls;
    int64_t threshold;
};

static void print_figures(const struct printer *printer, size_t level, int64_t calls,
                          struct measured measured) {
    bool is_bytes = measure_about(printer->view->by)->is_bytes;
    const char *unit = is_bytes ? "B" : " counted";
    fprintf(printer->out, "%*s->%" PRId64 " calls, %" PRId64 "%s", (int)(level * INDENT), "", calls,
            measured.value, unit);
    if (measured_interval(measured))
        fprintf(printer->out, " \xc2\xb1 %" PRId64 "%s%s", measured_interval(measured), unit,
                interval_samples(measured).text);
    fputs(": ", printer->out);
}

static void print_call(const struct printer *printer, size_t level, const struct call *call) {
    char label[FRAME_TEXT_BYTES] = STACK_NOT_RECORDED, location[FRAME_TEXT_BYTES] = "";
    if (call->frame) frame_label(call->frame, label, sizeof label, sizeof label);
    call_location(call, location, sizeof location);
    print_figures(printer, level, call->calls, call_measured(printer->calls, call));
    fprintf(printer->out, *location ? "%s (%s)\n" : "%s\n", label, location);
}

// What is left out of a call's children, as one line.
struct rest {
    struct measured measured;
    int64_t calls;
    size_t count;
};

static void print_rest(const struct printer *printer, size_t level, const struct rest *rest) {
    if (!rest->count) return;
    print_figures(printer, level, rest->calls, rest->measured);
    fprintf(printer->out, "[%zu more]\n", rest->count);
}

// The children of a call that are worth a line, from `at` on; others go into `rest`.
static uint32_t next_shown(const struct printer *printer, uint32_t at, size_t shown,
                           struct rest *rest) {
    const struct call *nodes = printer->calls->nodes.items;
    for (; at; at = nodes[at].next_sibling) {
        bool has_room = !printer->view->top || shown < printer->view->top;
        if (has_room && nodes[at].value >= printer->threshold) return at;
        measured_add(&rest->measured, call_measured(printer->calls, &nodes[at]));
        rest->calls = figures_add(rest->calls, nodes[at].calls);
        rest->count++;
    }
    return 0;
}

// A call whose children are being printed.
struct level {
    uint32_t next;
    size_t shown;
    struct rest rest;
};

// Without recursion, since stacks may be as deep as they like.
static bool print_all(const struct printer *printer) {
    ARRAY(struct level) levels = {0};
    const struct call *nodes = printer->calls->nodes.items;
    struct level *level = array_push(&levels);
    if (level) *level = (struct level){.next = nodes[CALLS_ROOT].first_child};
    while (level && levels.count) {
        level = &levels.items[levels.count - 1];
        uint32_t at = next_shown(printer, level->next, level->shown++, &level->rest);
        if (!at) {
            print_rest(printer, levels.count - 1, &level->rest);
            levels.count--;
            continue;
        }
        level->next = nodes[at].next_sibling;
        print_call(printer, levels.count - 1, &nodes[at]);
        level = array_push(&levels);
        if (level) *level = (struct level){.next = nodes[at].first_child};
    }
    bool is_ok = level != NULL;
    array_free(&levels);
    return is_ok;
}

bool tree_print_lines(FILE *out, const struct profile *profile, const struct frame_names *names,
                      const struct view_options *view, struct error *error) {
    struct calls calls;
    bool is_ok = calls_build(&calls, profile, names, view, error);
    if (is_ok) {
        int64_t whole = measure_total(view->by, profile).value;
        struct printer printer = {out, view, &calls, view_threshold(view, whole)};
        is_ok = print_all(&printer) || error_set(error, "no memory for the call tree");
    }
    calls_free(&calls);
    return is_ok;
}
