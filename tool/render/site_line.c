// SPDX-License-Identifier: Apache-2.0
#include "tool/render/site_line.h"

#include <inttypes.h>
#include <string.h>

#include "tool/base/text.h"

enum { LABEL_COLUMNS = 48, CALLERS_BYTES = 2048 };
static const char arrow[] = "\xe2\x86\x90 ";  // leftwards

// An address without a name, of the same module as the frame before it.
static bool is_same_module(const struct site *site, unsigned i) {
    const struct frame *frame = site->frames[i], *before = site->frames[i - 1];
    return !frame->function && frame->module && before->module && *frame->module &&
           !strcmp(frame->module, before->module);
}

// "← caller ← caller" of a site; empty if it has none.
static void callers_text(const struct site *site, char *out, size_t size) {
    *out = 0;
    for (unsigned i = 1; i < site->frame_count; i++) {
        char label[FRAME_TEXT_BYTES];
        size_t used = strlen(out);
        if (is_same_module(site, i))
            snprintf(label, sizeof label, "+0x%" PRIx64, site->frames[i]->offset);
        else
            frame_label(site->frames[i], label, sizeof label, LABEL_COLUMNS);
        snprintf(out + used, size - used, "%s%s%s", i > 1 ? " " : "", arrow, label);
    }
}

static void print_name(const struct terminal *terminal, const char *label, const char *location) {
    terminal_print(terminal, STYLE_NAME, "%s", label);
    if (*location) terminal_print(terminal, STYLE_DIM, "  %s", location);
}

void site_print(const struct terminal *terminal, const struct site *site, size_t figures_columns) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES], callers[CALLERS_BYTES];
    size_t room = terminal->columns - figures_columns;
    if (!site->frame_count) {
        terminal_print(terminal, STYLE_DIM, "%s\n", STACK_NOT_RECORDED);
        return;
    }
    frame_location(site->frames[0], location, sizeof location);
    text_cut(location, room / 2);
    size_t location_columns = *location ? text_columns(location) + 2 : 0;
    // on a wide screen a short name leaves room for its callers
    size_t label_room = room - location_columns;
    if (label_room > LABEL_COLUMNS) label_room = LABEL_COLUMNS;
    frame_label(site->frames[0], label, sizeof label, label_room);
    callers_text(site, callers, sizeof callers);
    size_t used = text_columns(label) + location_columns;
    print_name(terminal, label, location);
    if (*callers && used + 2 + text_columns(callers) > room) {
        fputc('\n', terminal->out);
        terminal_indent(terminal, figures_columns);
        text_cut(callers, room);
        terminal_print(terminal, STYLE_DIM, "%s", callers);
    } else if (*callers) {
        terminal_print(terminal, STYLE_DIM, "  %s", callers);
    }
    fputc('\n', terminal->out);
}
