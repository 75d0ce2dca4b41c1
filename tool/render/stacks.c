// SPDX-License-Identifier: Apache-2.0
#include "tool/render/stacks.h"

#include "tool/base/text.h"
#include "tool/base/units.h"

enum { FRAME_INDENT = STACKS_NOTE_INDENT, LABEL_COLUMNS_MIN = 24, LABEL_COLUMNS_MAX = 56 };

// A line of a stack; direct recursion is one line with a count.
struct entry {
    const struct frame *frame;
    size_t count;
};

static bool next_entry(const struct frame_list *frames, size_t *index, struct entry *entry) {
    *entry = (struct entry){.frame = frame_list_next(frames, index)};
    if (!entry->frame) return false;
    for (entry->count = 1;; entry->count++) {
        size_t ahead = *index;
        const struct frame *next = frame_list_next(frames, &ahead);
        if (!next || !frame_is_same(next, entry->frame)) return true;
        *index = ahead;
    }
}

// Columns of the longest name, so that the places stand in one column behind it.
static size_t label_columns(const struct terminal *terminal, const struct frame_list *frames,
                            size_t depth) {
    size_t most = (terminal->columns - FRAME_INDENT) * 3 / 5, widest = LABEL_COLUMNS_MIN;
    if (most > LABEL_COLUMNS_MAX) most = LABEL_COLUMNS_MAX;
    struct entry entry;
    size_t index = 0;
    for (size_t line = 0; (!depth || line < depth) && next_entry(frames, &index, &entry); line++) {
        char label[FRAME_TEXT_BYTES];
        frame_label(entry.frame, label, sizeof label, most);
        size_t columns = text_columns(label);
        if (columns > widest) widest = columns;
    }
    return widest < most ? widest : most;
}

static void print_entry(const struct terminal *terminal, const struct entry *entry,
                        size_t columns) {
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    frame_location(entry->frame, location, sizeof location);
    // without a place behind it a name may take the line
    size_t room = terminal->columns - FRAME_INDENT;
    frame_label(entry->frame, label, sizeof label, *location ? columns : room);
    terminal_indent(terminal, FRAME_INDENT);
    terminal_print(terminal, STYLE_NAME, "%s", label);
    if (*location) {
        size_t used = text_columns(label);
        terminal_indent(terminal, columns - used + 2);
        text_cut(location, room - columns - 2);
        terminal_print(terminal, STYLE_DIM, "%s", location);
    }
    if (entry->frame->is_inlined) terminal_print(terminal, STYLE_DIM, " inlined");
    if (entry->count > 1)
        terminal_print(terminal, STYLE_DIM, " (%s times)", units_count((int64_t)entry->count).text);
    fputc('\n', terminal->out);
}

static void print_note(const struct terminal *terminal, const char *format, const char *text) {
    terminal_indent(terminal, FRAME_INDENT);
    terminal_print(terminal, STYLE_DIM, format, text);
    fputc('\n', terminal->out);
}

void stacks_print_frames(const struct terminal *terminal, const struct frame_list *frames,
                         uint32_t cut, size_t depth) {
    size_t columns = label_columns(terminal, frames, depth), index = 0, line = 0, left = 0;
    struct entry entry;
    while (next_entry(frames, &index, &entry)) {
        if (!depth || line++ < depth)
            print_entry(terminal, &entry, columns);
        else
            left += entry.count;
    }
    if (!frames->frames.count && !cut) print_note(terminal, "%s", STACK_NOT_RECORDED);
    if (left)
        print_note(terminal, "\xe2\x80\xa6 %s: --depth 0",
                   units_counted((int64_t)left, "more frame", "more frames").text);
    if (cut == CAIRN_CUT_GUESSED)
        print_note(terminal, "(%s)", cut_sentence(cut));
    else if (cut && !frame_of_cut(cut))
        print_note(terminal, "[incomplete: %s]", cut_sentence(cut));
}
