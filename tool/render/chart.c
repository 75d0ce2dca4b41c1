// SPDX-License-Identifier: Apache-2.0
#include "tool/render/chart.h"

#include <stdlib.h>
#include <string.h>

#include "tool/base/text.h"
#include "tool/base/units.h"
#include "tool/model/heaps.h"
#include "tool/model/timeline.h"
#include "tool/render/interval.h"
#include "tool/render/stack_area.h"

enum {
    ROWS = 10,
    STEPS = 8,  // of a block character
    AXIS_COLUMNS = 12,
    PLAIN_AXIS_COLUMNS = 16,
    MARK_BYTES = 4 * CAIRN_LABEL_BYTES,
    MARKS_BYTES = 1024,
    PEAK_BYTES = 160,  // "13.3 MiB ± 1.2 MiB (62 samples)"
};

// What happened in the time that a column stands for.
struct column {
    uint64_t low_bytes, high_bytes;
    uint64_t rss_bytes;  // highest; 0: nobody looked
    bool is_used;
};

struct chart {
    struct column columns[AREA_COLUMNS_MAX];
    size_t count;
    uint64_t end_ns, most_bytes, peak_ns, peak_from_ns;
    bool has_rss;
};

static uint64_t end_of(const struct profile *profile) {
    const struct cairn_header *header = &profile->recording->header;
    uint64_t end = header->end_ns;
    size_t points = recording_count(profile->recording, CAIRN_SECTION_POINTS);
    struct cairn_point point;
    for (size_t i = points; !end && i-- > 0;)
        if (recording_point(profile->recording, i, &point) && point.is_used)
            end = (i + 1) * header->totals.point_ns;
    if (end <= profile->peak.at_ns) end = profile->peak.at_ns + 1;
    return end ? end : 1;
}

static size_t column_of(const struct chart *chart, uint64_t ns) {
    if (ns >= chart->end_ns) return chart->count - 1;
    size_t column = (size_t)((double)ns / (double)chart->end_ns * (double)chart->count);
    return column < chart->count ? column : chart->count - 1;
}

static void add_span(struct chart *chart, const struct timeline_span *span) {
    if (span->start_ns >= chart->end_ns || span->end_ns <= span->start_ns) return;
    size_t first = column_of(chart, span->start_ns), last = column_of(chart, span->end_ns - 1);
    for (size_t i = first; i <= last; i++) {
        struct column *column = &chart->columns[i];
        if (!column->is_used || span->low_bytes < column->low_bytes)
            column->low_bytes = span->low_bytes;
        if (!column->is_used || span->high_bytes > column->high_bytes)
            column->high_bytes = span->high_bytes;
        column->is_used = true;
    }
}

// Columns in which nobody looked have the value before them.
static void fill_rss(struct chart *chart, const struct recording *recording) {
    struct cairn_resident value;
    uint64_t last = 0;
    for (size_t i = 0; i < CAIRN_RESIDENT_LIMIT && recording_resident(recording, i, &value); i++) {
        struct column *column = &chart->columns[column_of(chart, value.at_ns)];
        if (value.rss_bytes > column->rss_bytes) column->rss_bytes = value.rss_bytes;
        if (value.rss_bytes > chart->most_bytes) chart->most_bytes = value.rss_bytes;
        chart->has_rss = true;
    }
    for (size_t i = 0; i < chart->count; i++) {
        if (!chart->columns[i].rss_bytes) chart->columns[i].rss_bytes = last;
        last = chart->columns[i].rss_bytes;
    }
}

// `heap`: of the heap by name that the profile is of; NULL: of malloc's.
static void fill(struct chart *chart, const struct profile *profile,
                 const struct cairn_heap_points *heap) {
    const struct profile_peak *peak = &profile->peak;
    struct timeline timeline;
    struct timeline_span span;
    if (heap)
        timeline_start_heap(&timeline, profile->recording, heap, peak->bytes, peak->at_ns);
    else
        timeline_start(&timeline, profile->recording);
    while (timeline_next(&timeline, &span)) add_span(chart, &span);
    chart->most_bytes = timeline.peak_bytes ? timeline.peak_bytes : 1;
    chart->peak_ns = peak->at_ns;
    chart->peak_from_ns = peak->from_ns;
    if (!heap) fill_rss(chart, profile->recording);
}

// Resident memory ends in this row.
static bool is_rss_row(const struct chart *chart, const struct column *column, unsigned row) {
    double rows = (double)column->rss_bytes / (double)chart->most_bytes * ROWS;
    unsigned at = rows > 0 ? (unsigned)(rows - 0.001) : 0;
    return column->rss_bytes && row == (at < ROWS ? at : ROWS - 1);
}

// Eighths of a row that `bytes` fill in `row` (0: the lowest).
static unsigned steps_of(const struct chart *chart, uint64_t bytes, unsigned row) {
    double steps = (double)bytes / (double)chart->most_bytes * ROWS * STEPS;
    double above = steps - (double)row * STEPS;
    if (above <= 0) return 0;
    return above >= STEPS ? STEPS : (unsigned)(above + 0.5);
}

static void print_cell(const struct chart *chart, const struct terminal *terminal, size_t column,
                       unsigned row) {
    static const char *const blocks[] = {" ",
                                         "\xe2\x96\x81",
                                         "\xe2\x96\x82",
                                         "\xe2\x96\x83",
                                         "\xe2\x96\x84",
                                         "\xe2\x96\x85",
                                         "\xe2\x96\x86",
                                         "\xe2\x96\x87",
                                         "\xe2\x96\x88"};
    static const char light[] = "\xe2\x96\x91", line[] = "\xe2\x94\x80";
    const struct column *at = &chart->columns[column];
    unsigned low = steps_of(chart, at->low_bytes, row), high = steps_of(chart, at->high_bytes, row);
    if (low)
        terminal_print(terminal, STYLE_NAME, "%s", blocks[low]);
    else if (high > STEPS / 2)
        terminal_print(terminal, STYLE_DIM, "%s", light);
    else
        terminal_print(terminal, STYLE_DIM, "%s", is_rss_row(chart, at, row) ? line : " ");
}

static void print_rows(const struct chart *chart, const struct terminal *terminal,
                       const struct view_options *view, int axis_columns) {
    for (unsigned row = ROWS; row-- > 0;) {
        uint64_t top = chart->most_bytes / ROWS * (row + 1);
        bool has_label = row + 1 == ROWS || row + 1 == ROWS / 2;
        if (row + 1 == ROWS) top = chart->most_bytes;
        struct unit_text label = units_size_as((int64_t)top, view->is_plain_number);
        terminal_print(terminal, STYLE_DIM, "%*s \xe2\x94\x82", axis_columns - 2,
                       has_label ? label.text : "");
        for (size_t i = 0; i < chart->count; i++) print_cell(chart, terminal, i, row);
        fputc('\n', terminal->out);
    }
}

static void print_axis(const struct chart *chart, const struct terminal *terminal,
                       int axis_columns) {
    struct unit_text end = units_duration(chart->end_ns);
    terminal_print(terminal, STYLE_DIM, "%*s \xe2\x94\x94", axis_columns - 2, "0 B");
    for (size_t i = 0; i < chart->count; i++)
        terminal_print(terminal, STYLE_DIM, "%s", "\xe2\x94\x80");
    terminal_print(terminal, STYLE_DIM, "\n%*s%-4s%*s\n", axis_columns, "", "0 s",
                   (int)chart->count - 4, end.text);
}

// How sure the heights of the chart are that samples give: the interval grows with the root of what
// is live, so its share of a quarter of the peak is twice that of the peak.
static void print_sureness(const struct terminal *terminal, struct measured peak) {
    const int64_t part = 4, wider = 2;
    int64_t interval = measured_interval(peak);
    if (!interval) return;
    terminal_print(
        terminal, STYLE_DIM,
        "  estimated from samples: \xc2\xb1 %s at the peak, about \xc2\xb1 %s at a quarter "
        "of it\n",
        units_percent(interval, peak.value).text,
        units_percent(interval / wider, peak.value / part).text);
}

// "▲ peak 13.3 MiB ± 1.2 MiB (62 samples) at 0.32 s" below its column.
static void print_peak(const struct chart *chart, const struct terminal *terminal,
                       const char *bytes, int axis_columns) {
    char text[MARK_BYTES];
    snprintf(text, sizeof text, "peak %s at %s%s%s", bytes, units_duration(chart->peak_ns).text,
             chart->peak_from_ns ? ", perhaps from " : "",
             chart->peak_from_ns ? units_duration(chart->peak_from_ns).text : "");
    const size_t at = (size_t)axis_columns + column_of(chart, chart->peak_ns);
    const size_t columns = text_columns(text) + 1, indent = 2;
    const bool is_left = at > columns + indent, is_right = at + 1 + columns <= terminal->columns;
    terminal_indent(terminal, is_left ? at - columns : at);
    if (is_left) fprintf(terminal->out, "%s ", text);
    terminal_print(terminal, STYLE_WARNING, "\xe2\x96\xb2");
    if (!is_left && is_right) fprintf(terminal->out, " %s", text);
    fputc('\n', terminal->out);
    if (!is_left && !is_right)
        terminal_print_line(terminal, STYLE_PLAIN, "%*s%s", (int)indent, "", text);
}

// "marks: warm at 1.00 s, load at 5.00 s", each with a tick below the axis.
static void print_marks(const struct chart *chart, const struct terminal *terminal,
                        const struct recording *recording, int axis_columns) {
    char ticks[AREA_COLUMNS_MAX + 1], text[MARKS_BYTES] = "";
    struct cairn_snapshot snapshot;
    size_t count = 0;
    memset(ticks, ' ', sizeof ticks);
    for (size_t i = 0; i < CAIRN_SNAPSHOT_LIMIT && recording_snapshot(recording, i, &snapshot);
         i++) {
        bool is_shown = snapshot.reason == CAIRN_SNAPSHOT_MARK || *snapshot.label;
        if (!is_shown) continue;
        char raw[CAIRN_LABEL_BYTES] = "", label[MARK_BYTES];
        size_t used = strlen(text);
        memcpy(raw, snapshot.label, sizeof raw - 1);
        text_escape(label, sizeof label, *raw ? raw : "mark");
        ticks[column_of(chart, snapshot.time_ns)] = '^';
        snprintf(text + used, sizeof text - used, "%s%s at %s", count++ ? ", " : "", label,
                 units_duration(snapshot.time_ns).text);
    }
    if (!count) return;
    ticks[chart->count] = 0;
    terminal_indent(terminal, (size_t)axis_columns);
    terminal_print(terminal, STYLE_WARNING, "%s\n", ticks);
    text_cut(text, terminal->columns - 9);
    fprintf(terminal->out, "  marks: %s\n", text);
}

static struct chart *chart_start(const struct terminal *terminal, int axis_columns,
                                 struct error *error) {
    struct chart *chart = calloc(1, sizeof *chart);
    if (!chart) {
        error_set(error, "no memory for the timeline");
        return NULL;
    }
    chart->count = terminal->columns - (size_t)axis_columns - 1;
    if (chart->count > AREA_COLUMNS_MAX) chart->count = AREA_COLUMNS_MAX;
    return chart;
}

bool chart_draw(const struct terminal *terminal, const struct answer *answer, struct error *error) {
    const struct profile *profile = answer->profile;
    const struct view_options *view = answer->options;
    int axis_columns = view->is_plain_number ? PLAIN_AXIS_COLUMNS : AXIS_COLUMNS;
    struct measured peak = measure_total(MEASURE_PEAK, profile);
    struct cairn_heap_points heap;
    char bytes[PEAK_BYTES];
    struct chart *chart = chart_start(terminal, axis_columns, error);
    if (!chart) return false;
    chart->end_ns = end_of(profile);
    bool is_of_heap =
        profile->heap && heap_points_find(profile->recording, profile->heap_scope, &heap);
    fill(chart, profile, is_of_heap ? &heap : NULL);
    terminal_print(terminal, STYLE_STRONG,
                   profile->heap ? "heap by name over time" : "heap over time");
    if (chart->has_rss) terminal_print(terminal, STYLE_DIM, ", and resident memory as a line");
    fputc('\n', terminal->out);
    print_rows(chart, terminal, view, axis_columns);
    print_axis(chart, terminal, axis_columns);
    snprintf(bytes, sizeof bytes, "%s%s%s",
             units_size_as(measured_shown(peak), view->is_plain_number).text,
             interval_amount(peak, true, view->is_plain_number).text, interval_samples(peak).text);
    print_peak(chart, terminal, bytes, axis_columns);
    print_sureness(terminal, peak);
    print_marks(chart, terminal, profile->recording, axis_columns);
    struct area_frame frame = {
        .columns = chart->count, .axis_columns = axis_columns, .end_ns = chart->end_ns};
    for (size_t i = 0; i < chart->count; i++) {
        frame.low_bytes[i] = chart->columns[i].low_bytes;
        frame.high_bytes[i] = chart->columns[i].high_bytes;
    }
    free(chart);
    return stack_area_print(terminal, profile, answer->names, view, &frame, error);
}

// A process that still runs has no end: the last thing that is known is taken for it.
static uint64_t last_known_ns(const struct combined *combined) {
    for (size_t i = combined->changes.count; i-- > 0;)
        if (combined->changes.items[i].at_ns != UINT64_MAX) return combined->changes.items[i].at_ns;
    return 0;
}

static void fill_combined(struct chart *chart, const struct combined *combined) {
    const struct combined_change *changes = combined->changes.items;
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < combined->changes.count; i++) {
        uint64_t from = changes[i].at_ns - changes[0].at_ns;
        uint64_t to = i + 1 < combined->changes.count ? changes[i + 1].at_ns - changes[0].at_ns
                                                      : chart->end_ns;
        low = figures_add(low, changes[i].low_bytes);
        high = figures_add(high, changes[i].high_bytes);
        struct timeline_span span = {from, to, low > 0 ? (uint64_t)low : 0,
                                     high > 0 ? (uint64_t)high : 0};
        add_span(chart, &span);
        if (to > from && span.high_bytes > chart->most_bytes) {
            chart->most_bytes = span.high_bytes;
            chart->peak_ns = from;
        }
    }
}

bool chart_print_combined(const struct terminal *terminal, struct combined *combined,
                          const struct view_options *view, struct error *error) {
    int axis_columns = view->is_plain_number ? PLAIN_AXIS_COLUMNS : AXIS_COLUMNS;
    struct chart *chart = chart_start(terminal, axis_columns, error);
    char bytes[PEAK_BYTES];
    if (!chart) return false;
    struct combined_peak peak = combined_find(combined);
    const struct measured highest = measured_bytes((int64_t)peak.high_bytes, &peak.estimate);
    uint64_t start = combined->changes.count ? combined->changes.items[0].at_ns : 0;
    chart->end_ns = last_known_ns(combined) > start ? last_known_ns(combined) - start : 1;
    fill_combined(chart, combined);
    if (!chart->most_bytes) chart->most_bytes = 1;
    const struct measured lowest = measured_bytes((int64_t)peak.low_bytes, &peak.estimate);
    struct unit_text least = units_size_as(measured_shown(lowest), view->is_plain_number);
    struct unit_text most = units_size_as(measured_shown(highest), view->is_plain_number);
    bool is_one = !strcmp(least.text, most.text);
    snprintf(bytes, sizeof bytes, "%s%s%s%s%s", least.text, is_one ? "" : " to ",
             is_one ? "" : most.text, interval_amount(highest, true, view->is_plain_number).text,
             interval_samples(highest).text);
    terminal_print(terminal, STYLE_STRONG, "heap of all processes over time\n");
    print_rows(chart, terminal, view, axis_columns);
    print_axis(chart, terminal, axis_columns);
    print_peak(chart, terminal, bytes, axis_columns);
    print_sureness(terminal, highest);
    free(chart);
    return true;
}
