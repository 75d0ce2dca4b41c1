// SPDX-License-Identifier: Apache-2.0
#include "tool/render/top_screen.h"

#include <stdarg.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/timeline.h"
#include "tool/render/interval.h"
#include "tool/render/site.h"
#include "tool/render/stacks.h"
#include "tool/render/terminal.h"
#include "tool/render/trust.h"

enum { TEXT_BYTES = 256, SPARK_COLUMNS_MAX = 120, STACK_COLUMNS_MIN = 18 };
static const char none[] = "-";

struct held_now top_held(const struct top_view *view, size_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    const struct live_stack *more = &live_shown(view->live)->more.items[index];
    if (view->are_survivors)
        return (struct held_now){.bytes = more->survivor_bytes, .blocks = more->survivor_blocks};
    return (struct held_now){stack->exit_bytes, stack->exit_blocks,
                             stack_more(stack)->estimates[ESTIMATED_EXIT]};
}

static struct unit_text size_text(const struct top_view *view, int64_t bytes) {
    return units_size_as(bytes, view->is_plain_number);
}

// "+1.2 MiB", "-340 B", "-" for nothing.
static struct unit_text change_text(const struct top_view *view, int64_t bytes) {
    struct unit_text text;
    snprintf(text.text, sizeof text.text, "%s%s", bytes > 0 ? "+" : "",
             bytes ? size_text(view, bytes).text : none);
    return text;
}

static struct unit_text per_second_text(const struct top_view *view, double bytes) {
    const double most = 0x1p62;
    struct unit_text text;
    int64_t rounded = (int64_t)(bytes < most ? bytes : most);
    snprintf(text.text, sizeof text.text, "%s%s", rounded ? size_text(view, rounded).text : none,
             rounded ? "/s" : "");
    return text;
}

// "24.7 k calls/s".
static struct unit_text calls_text(double calls_per_s) {
    const uint64_t second_ns = 1000000000, most = 1ull << 62;
    struct unit_text text, rate;
    rate = units_rate(calls_per_s < (double)most ? (uint64_t)calls_per_s : most, second_ns);
    rate.text[strcspn(rate.text, "/")] = 0;
    bool has_unit = rate.text[strcspn(rate.text, "kMG")];
    bool is_one = !strcmp(rate.text, "1 ");
    snprintf(text.text, sizeof text.text, "%s%s%s/s", rate.text, has_unit ? " " : "",
             is_one ? "call" : "calls");
    return text;
}

static struct unit_text share_text(uint64_t part, uint64_t whole) {
    struct unit_text text = {"-"};
    return part ? units_percent((int64_t)part, (int64_t)whole) : text;
}

// A part of the title, if the line has room for it.
static void add_to_title(const struct terminal *terminal, size_t *used, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_to_title(const struct terminal *terminal, size_t *used, const char *format, ...) {
    enum { SEPARATOR_COLUMNS = 3 };
    char part[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
    size_t columns = text_columns(part) + SEPARATOR_COLUMNS;
    if (*used + columns > terminal->columns) return;
    terminal_print(terminal, STYLE_DIM, " \xc2\xb7 ");
    fputs(part, terminal->out);
    *used += columns;
}

// "redis-server 4711", and whether it is recorded. Returns its columns.
static size_t print_state(const struct terminal *terminal, const struct top_view *view) {
    const struct cairn_header *header = &view->live->profile.recording->header;
    const char *state = view->over                       ? view->over
                        : cairn_is_off(&header->control) ? "not recording"
                                                         : "recording";
    const char *frozen = view->is_frozen ? " (frozen)" : "";
    char name[TEXT_BYTES], text[3 * TEXT_BYTES];
    struct unit_text at = units_duration(live_now_ns(view->live));
    program_name(&view->live->profile, name, sizeof name);
    terminal_print(terminal, STYLE_STRONG, "%s %d", name, view->pid);
    bool is_unusual = view->over || cairn_is_off(&header->control);
    terminal_print(terminal, is_unusual ? STYLE_WARNING : STYLE_PLAIN, " %s", state);
    fprintf(terminal->out, ", %s", at.text);
    terminal_print(terminal, STYLE_WARNING, "%s", frozen);
    snprintf(text, sizeof text, "%s %d %s, %s%s", name, view->pid, state, at.text, frozen);
    return text_columns(text);
}

// What is said of the heap is malloc's, while others are listed.
static const char *whose(const struct top_view *view) {
    return live_part_is_of_heaps(&view->live->part) ? "malloc: " : "";
}

void top_print_title(const struct terminal *terminal, const struct top_view *view) {
    const struct profile *profile = &view->live->profile;
    struct measured held = measure_total(MEASURE_EXIT, profile);
    struct measured slope = live_slope_measured(view->live);
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    size_t used = print_state(terminal, view);
    add_to_title(terminal, &used, "%slive %s%s", whose(view),
                 size_text(view, measured_shown(held)).text,
                 interval_amount(held, true, view->is_plain_number).text);
    if (slope.value) add_to_title(terminal, &used, "%s/s", change_text(view, slope.value).text);
    if (view->rss_bytes)
        add_to_title(terminal, &used, "RSS %s", size_text(view, (int64_t)view->rss_bytes).text);
    add_to_title(terminal, &used, "peak %s", size_text(view, measured_shown(peak)).text);
    fputc('\n', terminal->out);
}

// "live 20.7 MiB ± 1.2 MiB in 812 ± 90 blocks (62 samples)".
static void add_held(struct parts *parts, const struct top_view *view, const char *of,
                     struct measured held, struct measured blocks, const char *more) {
    parts_add(parts, STYLE_PLAIN, "%slive %s%s in %s%s %s%s%s", of,
              size_text(view, measured_shown(held)).text,
              interval_amount(held, true, view->is_plain_number).text,
              units_count(measured_shown(blocks)).text, interval_amount(blocks, false, false).text,
              blocks.value == 1 ? "block" : "blocks", interval_samples(held).text, more);
}

static void print_facts(const struct terminal *terminal, const struct top_view *view) {
    const struct profile *profile = &view->live->profile;
    struct parts parts = {.terminal = terminal};
    struct live_rate rate = live_rate_total(view->live);
    struct measured slope = live_slope_measured(view->live);
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    add_held(&parts, view, whose(view), measure_total(MEASURE_EXIT, profile),
             measure_total(MEASURE_EXIT_BLOCKS, profile), "");
    if (slope.value)
        parts_add(&parts, STYLE_PLAIN, "%s/s%s", change_text(view, slope.value).text,
                  interval_text(slope, true, view->is_plain_number).text);
    if (view->rss_bytes)
        parts_add(&parts, STYLE_PLAIN, "RSS %s", size_text(view, (int64_t)view->rss_bytes).text);
    parts_add(&parts, STYLE_PLAIN, "peak %s%s%s", size_text(view, measured_shown(peak)).text,
              interval_amount(peak, true, view->is_plain_number).text, interval_samples(peak).text);
    if (rate.calls >= 1)
        parts_add(&parts, STYLE_PLAIN, "allocates %s in %s", per_second_text(view, rate.bytes).text,
                  calls_text(rate.calls).text);
    else
        parts_add(&parts, STYLE_PLAIN, "idle");
    parts_add(&parts, STYLE_PLAIN, "allocated %s in %s %s",
              size_text(view, (int64_t)profile->totals.allocated_bytes).text,
              units_count((int64_t)profile->totals.allocations).text,
              profile->totals.allocations == 1 ? "call" : "calls");
    parts_end(&parts);
}

// The live heap since the start of the recording: the highest value of each column's time.
static void print_timeline(const struct terminal *terminal, const struct top_view *view) {
    const char *after = live_part_is_of_heaps(&view->live->part)
                            ? " malloc's heap from the start to now"
                            : " from the start to now";
    int64_t values[SPARK_COLUMNS_MAX] = {0};
    size_t columns =
        terminal->columns > strlen(after) + 5 ? terminal->columns - strlen(after) - 3 : 1;
    if (columns > SPARK_COLUMNS_MAX) columns = SPARK_COLUMNS_MAX;
    uint64_t now_ns = live_now_ns(view->live);
    struct timeline timeline;
    struct timeline_span span;
    timeline_start(&timeline, view->live->profile.recording);
    // where the heap never was larger than now, the recording has no time of its peak yet
    if (view->live->profile.exit_bytes >= view->live->profile.peak.bytes) timeline.peak_ns = now_ns;
    while (now_ns && timeline_next(&timeline, &span) && span.start_ns < now_ns) {
        uint64_t end_ns = span.end_ns < now_ns ? span.end_ns : now_ns;
        size_t from = (size_t)((double)span.start_ns / (double)now_ns * (double)columns);
        size_t to = (size_t)((double)end_ns / (double)now_ns * (double)columns);
        for (size_t i = from; i <= to && i < columns; i++)
            if ((int64_t)span.high_bytes > values[i]) values[i] = (int64_t)span.high_bytes;
    }
    values[columns - 1] = view->live->profile.exit_bytes;
    terminal_indent(terminal, 2);
    spark_print(terminal, values, columns);
    terminal_print(terminal, STYLE_DIM, "%s\n", after);
}

void top_print_details(const struct terminal *terminal, const struct top_view *view) {
    print_facts(terminal, view);
    print_timeline(terminal, view);
    trust_print(terminal, &view->live->profile, NULL);
}

// A column of figures. What there is no room for is left out, the last ones first, but never that
// by which the list is ranked. Figures of samples have their intervals beside them, and those that
// samples do not have are left out.
enum column { COLUMN_LIVE, COLUMN_GROWTH, COLUMN_RATE, COLUMN_TEMPORARY, COLUMN_BLOCKS, COLUMNS };
static const struct {
    const char *name;
    size_t columns;
} figures[COLUMNS] = {
    [COLUMN_LIVE] = {"LIVE", 9},      [COLUMN_GROWTH] = {"GROWTH", 10},
    [COLUMN_RATE] = {"RATE", 11},     [COLUMN_TEMPORARY] = {"TEMP", 6},
    [COLUMN_BLOCKS] = {"BLOCKS", 11},
};
enum { PLAIN_EXTRA = 6, NOTE_COLUMNS = INTERVAL_NARROW_COLUMNS + 2 };

static bool is_sampled(const struct top_view *view) {
    return view->live->profile.sampling.is_on != 0;
}

static enum column ranked_column(const struct top_view *view) {
    static const enum column of[LIVE_MEASURES] = {
        [LIVE_BYTES] = COLUMN_LIVE,
        [LIVE_GROWTH] = COLUMN_GROWTH,
        [LIVE_RATE] = COLUMN_RATE,
        [LIVE_TEMPORARY] = COLUMN_TEMPORARY,
    };
    return of[view->by];
}

static size_t width_of(const struct top_view *view, int column) {
    return figures[column].columns + (view->is_plain_number ? PLAIN_EXTRA : 0);
}

static size_t room_of(const struct top_view *view, int column) {
    return width_of(view, column) + (is_sampled(view) ? NOTE_COLUMNS : 0);
}

// Which columns there is room for, as bits, and what they take.
static unsigned choose_columns(const struct terminal *terminal, const struct top_view *view,
                               size_t *used) {
    enum column ranked = ranked_column(view);
    unsigned chosen = 1u << ranked;
    *used = room_of(view, ranked);
    for (int column = 0; column < COLUMNS; column++) {
        size_t wanted = *used + room_of(view, column) + STACK_COLUMNS_MIN;
        bool is_wide = column == COLUMN_BLOCKS;
        if (chosen & 1u << column) continue;
        if (is_sampled(view) && column >= COLUMN_TEMPORARY) continue;
        if (wanted + (is_wide ? STACK_COLUMNS_MIN : 0) > terminal->columns) continue;
        chosen |= 1u << column;
        *used += room_of(view, column);
    }
    return chosen;
}

void top_print_columns(const struct terminal *terminal, const struct top_view *view) {
    size_t used;
    unsigned chosen = choose_columns(terminal, view, &used);
    for (int column = 0; column < COLUMNS; column++) {
        if (!(chosen & 1u << column)) continue;
        bool is_ranked = column == (int)ranked_column(view);
        bool is_left = column == COLUMN_LIVE && view->are_survivors;
        terminal_print(terminal, is_ranked ? STYLE_STRONG : STYLE_DIM, "%*s",
                       (int)width_of(view, column), is_left ? "LEFT" : figures[column].name);
        if (!is_sampled(view)) continue;
        terminal_print(terminal, STYLE_DIM, "  %s", INTERVAL_NARROW_HEADING);
        terminal_indent(terminal, NOTE_COLUMNS - 2 - text_columns(INTERVAL_NARROW_HEADING));
    }
    const struct live_part *part = &view->live->part;
    const char *name = part->kind == LIVE_BY_HEAPS    ? "HEAP"
                       : part->kind == LIVE_BY_LABELS ? "CONTEXT"
                                                      : "STACK";
    terminal_print(terminal, STYLE_DIM, "  %s\n", name);
}

static struct unit_text figure_text(const struct top_view *view, int column, size_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    struct held_now held = top_held(view, index);
    switch (column) {
    case COLUMN_GROWTH:
        return change_text(view, live_value(view->live, LIVE_GROWTH, index));
    case COLUMN_RATE:
        return per_second_text(view, live_rate_of(view->live, index).bytes);
    case COLUMN_TEMPORARY:
        return share_text(stack->temporary, stack->allocations);
    case COLUMN_BLOCKS:
        return units_count(measured_shown(measured_blocks(held.blocks, &held.estimate)));
    default:
        return size_text(view, measured_shown(measured_bytes(held.bytes, &held.estimate)));
    }
}

// Where the line of a stack begins: behind the library's frames inside of the first own one.
static size_t first_own_index(const struct frame_list *frames) {
    const struct frame *own = frames->are_all_shown ? NULL : frame_list_first_own(frames), *frame;
    size_t index = 0, before = 0;
    while ((frame = frame_list_next(frames, &index)) && frame != own) before = index;
    return own && frame ? before : 0;
}

// "function file.c:12 ← caller ← its caller" in `room` columns, from the first own function on.
static void print_site(const struct terminal *terminal, const struct frame_list *frames,
                       size_t room) {
    static const char arrow[] = " \xe2\x86\x90 ";
    enum { ARROW_COLUMNS = 3, CALLER_COLUMNS_MIN = 4 };
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    const struct frame *frame, *last = NULL;
    size_t index = first_own_index(frames), used = 0;
    while ((frame = frame_list_next(frames, &index))) {
        if (last && frame_is_same_function(frame, last)) continue;
        if (last && used + ARROW_COLUMNS + CALLER_COLUMNS_MIN > room) return;
        if (last) terminal_print(terminal, STYLE_DIM, "%s", arrow);
        used += last ? ARROW_COLUMNS : 0;
        frame_label(frame, label, sizeof label, room - used);
        terminal_print(terminal, last ? STYLE_PLAIN : STYLE_NAME, "%s", label);
        used += text_columns(label);
        frame_location(frame, location, sizeof location);
        if (!last && frame->file && used + 1 + text_columns(location) <= room) {
            terminal_print(terminal, STYLE_DIM, " %s", location);
            used += 1 + text_columns(location);
        }
        last = frame;
    }
}

// What has no number of its own any more says so.
static void print_set(const struct terminal *terminal, const struct top_view *view, size_t row,
                      size_t room) {
    char name[FRAME_TEXT_BYTES], note[TEXT_BYTES];
    const struct live_set *set = &view->live->part.sets.items[row];
    bool is_other = live_set_is_other(set);
    top_set_name(view, row, name, sizeof name);
    text_cut(name, room);
    terminal_print(terminal, set->bytes ? STYLE_NAME : STYLE_DIM, "%s", name);
    snprintf(note, sizeof note, "  labels after the first %u", CAIRN_LABEL_LIMIT);
    if (is_other && text_columns(name) + strlen(note) <= room)
        terminal_print(terminal, STYLE_DIM, "%s", note);
}

// Where the stack was, or why that is not known. False without memory.
static bool print_place(const struct terminal *terminal, const struct top_view *view,
                        const struct stack *stack, size_t room) {
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok =
        frame_list_fill(&frames, &view->live->profile, view->names, stack->node, SITE_PLACES_MAX);
    if (is_ok && frames.frames.count)
        print_site(terminal, &frames, room);
    else
        terminal_print(terminal, STYLE_DIM, "%s",
                       stack->cut ? cut_sentence(stack->cut) : STACK_NOT_RECORDED);
    frame_list_free(&frames);
    return is_ok;
}

bool top_print_row(const struct terminal *terminal, const struct top_view *view, size_t index) {
    static const enum live_measure measures[COLUMNS] = {[COLUMN_LIVE] = LIVE_BYTES,
                                                        [COLUMN_GROWTH] = LIVE_GROWTH,
                                                        [COLUMN_RATE] = LIVE_RATE,
                                                        [COLUMN_TEMPORARY] = LIVE_TEMPORARY,
                                                        [COLUMN_BLOCKS] = LIVE_BYTES};
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    size_t used;
    unsigned chosen = choose_columns(terminal, view, &used);
    for (int column = 0; column < COLUMNS; column++) {
        if (!(chosen & 1u << column)) continue;
        bool is_ranked = column == (int)ranked_column(view);
        struct unit_text text = figure_text(view, column, index);
        size_t width = width_of(view, column), columns = text_columns(text.text);
        if (columns >= width) width = columns + 1;
        used += width - width_of(view, column);
        terminal_indent(terminal, width - columns);
        terminal_print(terminal, is_ranked ? STYLE_STRONG : STYLE_PLAIN, "%s", text.text);
        if (is_sampled(view))
            interval_print(terminal, live_measured(view->live, measures[column], index), true);
    }
    terminal_indent(terminal, 2);
    size_t room = terminal->columns > used + 2 ? terminal->columns - used - 2 : 1;
    bool is_ok = true;
    if (live_part_is_of_sets(&view->live->part))
        print_set(terminal, view, index, room);
    else
        is_ok = print_place(terminal, view, stack, room);
    fputc('\n', terminal->out);
    return is_ok;
}

// "+1.2 MiB ± 0.4 MiB (9 samples)".
static void add_change(struct parts *parts, const struct top_view *view, size_t index) {
    struct measured growth = live_measured(view->live, LIVE_GROWTH, index);
    if (growth.value)
        parts_add(parts, STYLE_PLAIN, "growth %s%s since %s%s",
                  change_text(view, growth.value).text,
                  interval_text(growth, true, view->is_plain_number).text, view->since,
                  interval_samples(growth).text);
    else
        parts_add(parts, STYLE_PLAIN, "no growth since %s", view->since);
}

static void add_allocated(struct parts *parts, const struct top_view *view, size_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    struct live_rate rate = live_rate_of(view->live, index);
    struct measured bytes = measure_stack(MEASURE_ALLOCATED, stack);
    struct measured calls = measure_stack(MEASURE_CALLS, stack);
    struct measured per_second = live_measured(view->live, LIVE_RATE, index);
    bool is_plain = view->is_plain_number;
    parts_add(parts, STYLE_PLAIN, "allocated %s%s in %s%s %s%s", size_text(view, bytes.value).text,
              interval_text(bytes, true, is_plain).text, units_count(calls.value).text,
              interval_text(calls, false, false).text, calls.value == 1 ? "call" : "calls",
              interval_samples(bytes).text);
    if (rate.calls >= 1)
        parts_add(parts, STYLE_PLAIN, "%s%s in %s%s", per_second_text(view, rate.bytes).text,
                  interval_text(per_second, true, is_plain).text, calls_text(rate.calls).text,
                  interval_samples(per_second).text);
}

// What the heap that the stack is of holds.
static int64_t heap_bytes(const struct live *live) {
    int64_t bytes = 0;
    if (live->part.kind != LIVE_OF_HEAP) return live->profile.exit_bytes;
    for (size_t i = 0; i < live->part_rows.stacks.count; i++)
        bytes = figures_add(bytes, live->part_rows.stacks.items[i].exit_bytes);
    return bytes;
}

static void print_stack_figures(const struct terminal *terminal, const struct top_view *view,
                                size_t index) {
    const struct live *live = view->live;
    const struct stack *stack = &live_shown(live)->stacks.items[index];
    const struct live_stack *more = &live_shown(live)->more.items[index];
    struct measured held = measure_stack(MEASURE_EXIT, stack);
    struct parts parts = {.terminal = terminal};
    char share[TEXT_BYTES];
    snprintf(share, sizeof share, ", %s of the heap",
             units_percent(stack->exit_bytes, heap_bytes(live)).text);
    add_held(&parts, view, "", held, measure_stack(MEASURE_EXIT_BLOCKS, stack), share);
    add_change(&parts, view, index);
    if (more->survivor_blocks)
        parts_add(&parts, STYLE_PLAIN, "%s in %s %s are younger than the mark",
                  size_text(view, more->survivor_bytes).text,
                  units_count(more->survivor_blocks).text,
                  more->survivor_blocks == 1 ? "block" : "blocks");
    add_allocated(&parts, view, index);
    if (stack->temporary)
        parts_add(&parts, STYLE_PLAIN, "%s of its blocks temporary",
                  share_text(stack->temporary, stack->allocations).text);
    if (is_sampled(view))
        parts_add(&parts, measured_is_unreliable(held) ? STYLE_WARNING : STYLE_DIM, "%s",
                  interval_note(held).text);
    parts_end(&parts);
}

bool top_print_stack(const struct terminal *terminal, const struct top_view *view, size_t index) {
    const struct stack *stack = &live_shown(view->live)->stacks.items[index];
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = frame_list_fill(&frames, &view->live->profile, view->names, stack->node, 0);
    print_stack_figures(terminal, view, index);
    fputc('\n', terminal->out);
    if (is_ok) stacks_print_frames(terminal, &frames, stack->cut, 0);
    size_t hidden = frames.frames.count - frames.shown_count;
    if (is_ok && hidden)
        terminal_print(terminal, STYLE_DIM, "\n  %s internal %s hidden\n",
                       units_count((int64_t)hidden).text, hidden == 1 ? "frame is" : "frames are");
    frame_list_free(&frames);
    return is_ok;
}
