// SPDX-License-Identifier: Apache-2.0
#include "tool/render/stacks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/render/columns.h"
#include "tool/render/interval.h"

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

// A sentence in phrases with commas between them; what does not fit goes to the next line.
struct phrases {
    const struct terminal *terminal;
    size_t used;  // columns of the line so far
};

static void phrases_add(struct phrases *phrases, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void phrases_add(struct phrases *phrases, const char *format, ...) {
    enum { PHRASE_BYTES = 256 };
    char phrase[PHRASE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(phrase, sizeof phrase, format, arguments);
    va_end(arguments);
    size_t columns = text_columns(phrase);
    bool is_new = phrases->used + 2 + columns > phrases->terminal->columns;
    if (phrases->used) fputs(is_new ? ",\n" : ", ", phrases->terminal->out);
    if (!phrases->used || is_new) terminal_indent(phrases->terminal, FRAME_INDENT);
    phrases->used = (phrases->used && !is_new ? phrases->used + 2 : FRAME_INDENT) + columns;
    terminal_print(phrases->terminal, STYLE_DIM, "%s", phrase);
}

// "20.7 MiB ± 1.2 MiB (62 samples)".
static void value_text(const struct stack *stack, enum measure measure, bool is_plain, char *out,
                       size_t size) {
    struct measured measured = measure_stack(measure, stack);
    snprintf(out, size, "%s%s%s", units_size_as(measured_shown(measured), is_plain).text,
             interval_amount(measured, true, is_plain).text, interval_samples(measured).text);
}

// What else there is to know about a stack than what it is ranked by, in as many lines as it takes.
static void print_others(const struct terminal *terminal, const struct profile *profile,
                         const struct stack *stack, const struct view_options *view) {
    enum { VALUE_BYTES = 128 };
    bool is_plain = view->is_plain_number;
    char value[VALUE_BYTES];
    struct phrases phrases = {.terminal = terminal};
    if (recording_is_of_owners(profile->recording)) return;
    struct measured calls = measure_stack(MEASURE_CALLS, stack);
    value_text(stack, MEASURE_ALLOCATED, is_plain, value, sizeof value);
    const char *verb = profile->is_of_mappings ? "mapped"
                       : profile->is_of_lost   ? "lost with its own blocks: it allocated"
                                               : "allocated";
    phrases_add(&phrases, "%s %s in %s%s %s", verb, value, units_count(measured_shown(calls)).text,
                interval_amount(calls, false, false).text,
                units_noun(calls.value, "call", "calls"));
    bool has_frees = profile_has_frees(profile);
    if (has_frees && view->by != MEASURE_PEAK) {
        value_text(stack, MEASURE_PEAK, is_plain, value, sizeof value);
        phrases_add(&phrases, "%s at the peak", value);
    }
    if (has_frees && view->by != MEASURE_EXIT) {
        value_text(stack, MEASURE_EXIT, is_plain, value, sizeof value);
        phrases_add(&phrases, "%s %s", value, profile_has_ended(profile) ? "at the end" : "now");
    }
    fputc('\n', terminal->out);
}

static void print_stack(const struct terminal *terminal, const struct profile *profile,
                        const struct view_options *view, const struct stack *stack, size_t rank) {
    struct measured measured = measure_stack(view->by, stack);
    struct measured whole = measure_total(view->by, profile);
    // of estimates that stand on samples of their own a part may be more than the whole
    if (whole.value < measured.value) whole = measured;
    terminal_print(terminal, STYLE_DIM, "\n%3zu ", rank);
    terminal_print(terminal, STYLE_STRONG, "%5s", units_percent(measured.value, whole.value).text);
    const struct measure_row *about = measure_about(view->by);
    struct measured blocks = measure_stack(about->in_blocks, stack);
    const char *noun = about->noun[measured.blocks != 1];
    bool are_mappings = profile->is_of_mappings && !strncmp(noun, "block", strlen("block"));
    if (are_mappings) noun = units_noun(measured.blocks, "mapping", "mappings");
    struct unit_text interval = interval_amount(measured, about->is_bytes, view->is_plain_number);
    if (about->is_bytes)
        fprintf(terminal->out, " %s%s in %s%s %s",
                units_size_as(measured_shown(measured), view->is_plain_number).text, interval.text,
                units_count(measured_shown(blocks)).text,
                interval_amount(blocks, false, false).text, noun);
    else
        fprintf(terminal->out, " %s%s %s", units_count(measured_shown(measured)).text,
                interval.text, noun);
    if (profile->sampling.is_on || view->by == MEASURE_SHORT)
        terminal_print(terminal, measured_is_unreliable(measured) ? STYLE_WARNING : STYLE_DIM,
                       ", %s", interval_note(measured).text);
    fputc('\n', terminal->out);
}

static void print_heading(const struct terminal *terminal, const struct profile *profile,
                          const struct view_options *view, size_t shown, size_t count) {
    bool is_now = view->by == MEASURE_EXIT && !profile_has_ended(profile);
    const struct measure_row *about = measure_about(view->by);
    terminal_print(terminal, STYLE_STRONG, "%s",
                   units_counted((int64_t)count, "stack", "stacks").text);
    if (count == 1)
        terminal_print(terminal, STYLE_STRONG, ", %s", is_now ? "now" : about->snapshot);
    else
        terminal_print(terminal, STYLE_STRONG, " by %s",
                       is_now ? "what they hold now" : about->order);
    list_print_cut(terminal, view, shown, count);
    fputc('\n', terminal->out);
}

static void print_unknown(const struct terminal *terminal, const struct profile *profile,
                          enum measure measure) {
    terminal_print(terminal, STYLE_STRONG, "%s are not known", measure_about(measure)->snapshot);
    fprintf(terminal->out, ": %s\n",
            profile->recording->header.imported
                ? "the imported file does not say when blocks were freed"
                : "too few blocks were allocated, or they were sampled");
}

static size_t count_with_value(const struct profile *profile, enum measure measure) {
    size_t count = 0;
    for (size_t i = 0; i < profile->stack_count; i++)
        count += measure_stack(measure, &profile->stacks[i]).value > 0;
    return count;
}

// Of the ranked stacks: those that are worth a line.
static size_t count_shown(const struct profile *profile, const struct view_options *view,
                          const uint32_t *ranking, size_t count) {
    int64_t least = view_threshold(view, measure_total(view->by, profile).value);
    size_t shown = count;
    if (view->threshold <= 0 && view->min_bytes <= 0) return shown;
    while (shown && measure_stack(view->by, &profile->stacks[ranking[shown - 1]]).value < least)
        shown--;
    return shown;
}

bool stacks_print_noted(const struct terminal *terminal, const struct profile *profile,
                        const struct frame_names *names, const struct view_options *view,
                        const struct stacks_notes *notes, struct error *error) {
    if (!measure_is_known(view->by, profile)) {
        print_unknown(terminal, profile, view->by);
        return true;
    }
    size_t count, hidden_count = 0;
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    uint32_t *ranking = measure_rank_most(view->by, profile, view->top, &count);
    bool is_ok = ranking != NULL;
    size_t shown = is_ok ? count_shown(profile, view, ranking, count) : 0;
    if (is_ok) print_heading(terminal, profile, view, shown, count_with_value(profile, view->by));
    for (size_t i = 0; i < shown && is_ok; i++) {
        const struct stack *stack = &profile->stacks[ranking[i]];
        is_ok = frame_list_fill(&frames, profile, names, stack->node, 0);
        if (!is_ok) break;
        hidden_count += frames.frames.count - frames.shown_count;
        print_stack(terminal, profile, view, stack, i + 1);
        print_others(terminal, profile, stack, view);
        if (notes->before) notes->before(terminal, profile, stack, view, notes->context);
        stacks_print_frames(terminal, &frames, stack->cut, view->depth);
        if (notes->after) notes->after(terminal, profile, stack, view, notes->context);
    }
    if (is_ok && hidden_count)
        terminal_print(terminal, STYLE_DIM, "\n%s internal %s hidden: --all-frames\n",
                       units_count((int64_t)hidden_count).text,
                       units_noun((int64_t)hidden_count, "frame is", "frames are"));
    free(ranking);
    frame_list_free(&frames);
    return is_ok || error_set(error, "no memory for the list of stacks");
}

bool stacks_print(const struct terminal *terminal, const struct profile *profile,
                  const struct frame_names *names, const struct view_options *view,
                  struct error *error) {
    const struct stacks_notes none = {0};
    return stacks_print_noted(terminal, profile, names, view, &none, error);
}
