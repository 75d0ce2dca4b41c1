// SPDX-License-Identifier: Apache-2.0
#include "tool/render/top_screen.h"

#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/timeline.h"
#include "tool/render/interval.h"
#include "tool/render/parts.h"
#include "tool/render/site.h"
#include "tool/render/spark.h"
#include "tool/render/stacks.h"
#include "tool/render/trust.h"

enum { TEXT_BYTES = 256, SPARK_COLUMNS_MAX = 120, STACK_COLUMNS_MIN = 18 };
static const char none[] = "-";

struct held_now top_held(const struct top_view *view, size_t index) {
    const struct stack *stack = &view->live->stacks.items[index];
    const struct live_stack *more = &view->live->more.items[index];
    if (view->are_survivors) return (struct held_now){more->survivor_bytes, more->survivor_blocks};
    return (struct held_now){stack->exit_bytes, stack->exit_blocks};
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
    snprintf(text.text, sizeof text.text, "%s%scalls/s", rate.text, has_unit ? " " : "");
    return text;
}

static struct unit_text share_text(uint64_t part, uint64_t whole) {
    struct unit_text text = {"-"};
    return part ? units_percent((int64_t)part, (int64_t)whole) : text;
}

static void print_title(const struct terminal *terminal, const struct top_view *view) {
    const struct cairn_header *header = &view->live->profile.recording->header;
    char name[TEXT_BYTES];
    program_name(&view->live->profile, name, sizeof name);
    terminal_print(terminal, STYLE_STRONG, "%s %d", name, view->pid);
    if (view->over)
        terminal_print(terminal, STYLE_WARNING, " %s", view->over);
    else if (header->control.is_off)
        terminal_print(terminal, STYLE_WARNING, " is off");
    else
        fputs(" is on", terminal->out);
    fprintf(terminal->out, " at %s", units_duration(live_now_ns(view->live)).text);
    if (view->is_frozen) terminal_print(terminal, STYLE_WARNING, " (frozen)");
    fputc('\n', terminal->out);
}

static void print_facts(const struct terminal *terminal, const struct top_view *view) {
    const struct profile *profile = &view->live->profile;
    struct parts parts = {.terminal = terminal};
    struct live_rate rate = live_rate_total(view->live);
    int64_t slope = (int64_t)live_slope(view->live);
    struct measured held = measure_total(MEASURE_EXIT, profile);
    parts_add(&parts, STYLE_PLAIN, "live %s%s in %s %s", size_text(view, held.value).text,
              interval_text(held, true, view->is_plain_number).text, units_count(held.blocks).text,
              held.blocks == 1 ? "block" : "blocks");
    if (slope) parts_add(&parts, STYLE_PLAIN, "%s/s", change_text(view, slope).text);
    if (view->rss_bytes)
        parts_add(&parts, STYLE_PLAIN, "RSS %s", size_text(view, (int64_t)view->rss_bytes).text);
    parts_add(&parts, STYLE_PLAIN, "peak %s", size_text(view, profile->peak.bytes).text);
    if (rate.calls >= 1)
        parts_add(&parts, STYLE_PLAIN, "allocates %s in %s", per_second_text(view, rate.bytes).text,
                  calls_text(rate.calls).text);
    else
        parts_add(&parts, STYLE_PLAIN, "allocates nothing");
    parts_add(&parts, STYLE_PLAIN, "allocated %s in %s %s",
              size_text(view, (int64_t)profile->totals.allocated_bytes).text,
              units_count((int64_t)profile->totals.allocations).text,
              profile->totals.allocations == 1 ? "call" : "calls");
    parts_end(&parts);
}

// The live heap since the start of the recording: the highest value of each column's time.
static void print_timeline(const struct terminal *terminal, const struct top_view *view) {
    static const char after[] = " from the start to now";
    int64_t values[SPARK_COLUMNS_MAX] = {0};
    size_t columns =
        terminal->columns > sizeof after + 4 ? terminal->columns - sizeof after - 2 : 1;
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
    spark_print(terminal, values, columns, columns);
    terminal_print(terminal, STYLE_DIM, "%s\n", after);
}

void top_print_head(const struct terminal *terminal, const struct top_view *view, bool is_short) {
    print_title(terminal, view);
    print_facts(terminal, view);
    if (is_short) return;
    print_timeline(terminal, view);
    trust_print(terminal, &view->live->profile, NULL);
}

void top_print_what(const struct terminal *terminal, const struct top_view *view,
                    const struct top_sums *sums) {
    static const char *const orders[LIVE_MEASURES] = {
        [LIVE_BYTES] = "what they hold",
        [LIVE_GROWTH] = "growth",
        [LIVE_RATE] = "what they allocate",
        [LIVE_TEMPORARY] = "temporary blocks",
    };
    char search[TEXT_BYTES / 2] = "", text[3 * TEXT_BYTES];
    if (view->search) {
        char safe[TEXT_BYTES / 2];
        text_escape(safe, sizeof safe - 16, view->search);
        snprintf(search, sizeof search, " through \"%s\"", safe);
    }
    int length = snprintf(text, sizeof text, "%s %s%s by %s%s: %s in %s %s",
                          units_count((int64_t)sums->stack_count).text,
                          sums->stack_count == 1 ? "stack" : "stacks", search, orders[view->by],
                          view->are_survivors ? " of what came since the mark" : "",
                          size_text(view, sums->bytes).text, units_count(sums->blocks).text,
                          sums->blocks == 1 ? "block" : "blocks");
    static const char since[] = "; growth since ";
    bool has_room =
        text_columns(text) + sizeof since + text_columns(view->since) <= terminal->columns;
    if (has_room) snprintf(text + length, sizeof text - (size_t)length, "%s%s", since, view->since);
    text_cut(text, terminal->columns);
    terminal_print(terminal, STYLE_STRONG, "%s", text);
    fputc('\n', terminal->out);
}

// A column of figures. What there is no room for is left out, the last ones first, but never that
// by which the list is ranked.
enum column { COLUMN_LIVE, COLUMN_GROWTH, COLUMN_RATE, COLUMN_TEMPORARY, COLUMN_BLOCKS, COLUMNS };
static const struct {
    const char *name;
    size_t columns;
} figures[COLUMNS] = {
    [COLUMN_LIVE] = {"LIVE", 9},      [COLUMN_GROWTH] = {"GROWTH", 10},
    [COLUMN_RATE] = {"RATE", 11},     [COLUMN_TEMPORARY] = {"TEMP", 6},
    [COLUMN_BLOCKS] = {"BLOCKS", 11},
};
enum { PLAIN_EXTRA = 6 };

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

// Which columns there is room for, as bits, and what they take.
static unsigned choose_columns(const struct terminal *terminal, const struct top_view *view,
                               size_t *used) {
    enum column ranked = ranked_column(view);
    unsigned chosen = 1u << ranked;
    *used = width_of(view, ranked);
    for (int column = 0; column < COLUMNS; column++) {
        size_t wanted = *used + width_of(view, column) + STACK_COLUMNS_MIN;
        bool is_wide = column == COLUMN_BLOCKS;
        if (chosen & 1u << column) continue;
        if (wanted + (is_wide ? STACK_COLUMNS_MIN : 0) > terminal->columns) continue;
        chosen |= 1u << column;
        *used += width_of(view, column);
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
    }
    terminal_print(terminal, STYLE_DIM, "  STACK\n");
}

static struct unit_text figure_text(const struct top_view *view, int column, size_t index) {
    const struct stack *stack = &view->live->stacks.items[index];
    struct held_now held = top_held(view, index);
    switch (column) {
    case COLUMN_GROWTH:
        return change_text(view, live_value(view->live, LIVE_GROWTH, index));
    case COLUMN_RATE:
        return per_second_text(view, live_rate_of(view->live, index).bytes);
    case COLUMN_TEMPORARY:
        return share_text(stack->temporary, stack->allocations);
    case COLUMN_BLOCKS:
        return units_count(held.blocks);
    default:
        return size_text(view, held.bytes);
    }
}

// "function  file.c:12 ← caller ← its caller" in `room` columns.
static void print_site(const struct terminal *terminal, const struct frame_list *frames,
                       size_t room) {
    static const char arrow[] = " \xe2\x86\x90 ";
    enum { ARROW_COLUMNS = 3, CALLER_COLUMNS_MIN = 4 };
    char label[FRAME_TEXT_BYTES], location[FRAME_TEXT_BYTES];
    const struct frame *frame, *last = NULL;
    size_t index = 0, used = 0;
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

bool top_print_row(const struct terminal *terminal, const struct top_view *view, size_t index) {
    const struct stack *stack = &view->live->stacks.items[index];
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
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
    }
    terminal_indent(terminal, 2);
    bool is_ok =
        frame_list_fill(&frames, &view->live->profile, view->names, stack->node, SITE_PLACES_MAX);
    size_t room = terminal->columns > used + 2 ? terminal->columns - used - 2 : 1;
    if (is_ok && frames.frames.count)
        print_site(terminal, &frames, room);
    else
        terminal_print(terminal, STYLE_DIM, "%s",
                       stack->cut ? cut_sentence(stack->cut) : STACK_NOT_RECORDED);
    fputc('\n', terminal->out);
    frame_list_free(&frames);
    return is_ok;
}

static void print_stack_figures(const struct terminal *terminal, const struct top_view *view,
                                size_t index) {
    const struct live *live = view->live;
    const struct stack *stack = &live->stacks.items[index];
    const struct live_stack *more = &live->more.items[index];
    struct live_rate rate = live_rate_of(live, index);
    struct measured held = measure_stack(MEASURE_EXIT, stack);
    int64_t growth = live_value(live, LIVE_GROWTH, index);
    struct parts parts = {.terminal = terminal};
    parts_add(&parts, STYLE_STRONG, "live %s%s in %s %s, %s of the heap",
              size_text(view, held.value).text,
              interval_text(held, true, view->is_plain_number).text, units_count(held.blocks).text,
              held.blocks == 1 ? "block" : "blocks",
              units_percent(held.value, live->profile.exit_bytes).text);
    if (growth)
        parts_add(&parts, STYLE_PLAIN, "growth %s since %s", change_text(view, growth).text,
                  view->since);
    else
        parts_add(&parts, STYLE_PLAIN, "no growth since %s", view->since);
    if (more->survivor_blocks)
        parts_add(&parts, STYLE_PLAIN, "%s in %s %s are younger than the mark",
                  size_text(view, more->survivor_bytes).text,
                  units_count(more->survivor_blocks).text,
                  more->survivor_blocks == 1 ? "block" : "blocks");
    parts_add(&parts, STYLE_PLAIN, "allocated %s in %s %s",
              size_text(view, (int64_t)stack->allocated_bytes).text,
              units_count((int64_t)stack->allocations).text,
              stack->allocations == 1 ? "call" : "calls");
    if (rate.calls >= 1)
        parts_add(&parts, STYLE_PLAIN, "%s in %s", per_second_text(view, rate.bytes).text,
                  calls_text(rate.calls).text);
    if (stack->temporary)
        parts_add(&parts, STYLE_PLAIN, "%s of its blocks temporary",
                  share_text(stack->temporary, stack->allocations).text);
    if (live->profile.sampling.is_on)
        parts_add(&parts, measured_is_unreliable(held) ? STYLE_WARNING : STYLE_DIM, "%s",
                  interval_note(held).text);
    parts_end(&parts);
}

bool top_print_stack(const struct terminal *terminal, const struct top_view *view, size_t index) {
    const struct stack *stack = &view->live->stacks.items[index];
    struct frame_list frames = {.are_all_shown = view->has_all_frames};
    bool is_ok = frame_list_fill(&frames, &view->live->profile, view->names, stack->node, 0);
    print_stack_figures(terminal, view, index);
    fputc('\n', terminal->out);
    if (is_ok) stacks_print_frames(terminal, &frames, stack->cut, 0);
    size_t hidden = frames.frames.count - frames.shown_count;
    if (is_ok && hidden)
        terminal_print(terminal, STYLE_DIM, "\n  %s plumbing %s hidden\n",
                       units_count((int64_t)hidden).text, hidden == 1 ? "frame is" : "frames are");
    frame_list_free(&frames);
    return is_ok;
}

void top_print_process_columns(const struct terminal *terminal) {
    terminal_print(terminal, STYLE_DIM, "%8s %9s %9s  PROGRAM\n", "PID", "LIVE", "PEAK");
}

void top_print_process(const struct terminal *terminal, const struct top_process *process) {
    enum { FIGURES = 30, REST_BYTES = 160 };
    char rest[REST_BYTES];
    fprintf(terminal->out, "%8d ", process->pid);
    terminal_print(terminal, STYLE_STRONG, "%9s", units_size(process->live_bytes).text);
    fprintf(terminal->out, " %9s  ", units_size((int64_t)process->peak_bytes).text);
    terminal_print(terminal, STYLE_NAME, "%s", process->name);
    int length = snprintf(rest, sizeof rest, " at %s%s", units_duration(process->age_ns).text,
                          process->is_off ? ", off" : "");
    if (process->run)
        snprintf(rest + length, sizeof rest - (size_t)length, ", run of %d", process->run);
    size_t used = FIGURES + text_columns(process->name);
    if (used + strlen(rest) <= terminal->columns) terminal_print(terminal, STYLE_DIM, "%s", rest);
    fputc('\n', terminal->out);
}
