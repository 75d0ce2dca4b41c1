// SPDX-License-Identifier: Apache-2.0
// The heap over time as rows: an interval of the timeline each, with the bounds of what was live.
#include <stdlib.h>

#include "tool/base/units.h"
#include "tool/model/heaps.h"
#include "tool/model/timeline.h"
#include "tool/render/chart.h"

enum { FIGURE_COLUMNS = 11 };

enum timeline_column {
    TIMELINE_START,
    TIMELINE_END,
    TIMELINE_LOW,
    TIMELINE_HIGH,
    TIMELINE_COLUMNS
};

static const struct answer_column timeline_columns[TIMELINE_COLUMNS] = {
    [TIMELINE_START] = ANSWER_FIGURES("start_ns", "from", ANSWER_TIME, FIGURE_COLUMNS),
    [TIMELINE_END] = ANSWER_FIGURES("end_ns", "to", ANSWER_TIME, FIGURE_COLUMNS),
    [TIMELINE_LOW] = ANSWER_FIGURES("low_bytes", "lowest", ANSWER_BYTES, FIGURE_COLUMNS),
    [TIMELINE_HIGH] = ANSWER_FIGURES("high_bytes", "highest", ANSWER_BYTES, FIGURE_COLUMNS)};

struct timeline_list {
    struct timeline timeline;
    struct cairn_heap_points heap;
};

static void start(struct timeline_list *list, const struct profile *profile) {
    const struct profile_peak *peak = &profile->peak;
    if (profile->heap)
        timeline_start_heap(&list->timeline, profile->recording, &list->heap, peak->bytes,
                            peak->at_ns);
    else
        timeline_start(&list->timeline, profile->recording);
}

// Fills the next interval that is one.
static bool next_interval(struct timeline_list *list, struct timeline_span *span) {
    while (timeline_next(&list->timeline, span))
        if (span->end_ns > span->start_ns) return true;
    return false;
}

static bool next_span(struct answer *answer, struct answer_row *row) {
    struct timeline_span span;
    if (!next_interval(answer->state, &span)) return false;
    answer_set(row, TIMELINE_START, (int64_t)span.start_ns);
    if (span.end_ns == UINT64_MAX)
        answer_set_unknown(row, TIMELINE_END);
    else
        answer_set(row, TIMELINE_END, (int64_t)span.end_ns);
    answer_set(row, TIMELINE_LOW, (int64_t)span.low_bytes);
    answer_set(row, TIMELINE_HIGH, (int64_t)span.high_bytes);
    return true;
}

static bool find_heap(struct timeline_list *list, const struct profile *profile,
                      struct error *error) {
    if (profile_is_sum(profile))
        return error_set(error, "rows of the timeline are known of each process alone");
    return !profile->heap ||
           heap_points_find(profile->recording, profile->heap_scope, &list->heap) ||
           error_set(error,
                     "--heap %s: over time the first %u heaps and names within them are known, in "
                     "recordings of earlier versions whole heaps, or none",
                     profile->heap, CAIRN_HEAP_POINTS_LIMIT);
}

bool timeline_answer(struct answer *answer, const struct profile *profile,
                     const struct frame_names *names, const struct view_options *view,
                     struct error *error) {
    struct timeline_list *list = calloc(1, sizeof *list);
    struct timeline_span span;
    size_t count = 0;
    if (!list) return error_set(error, "no memory for the timeline");
    if (!find_heap(list, profile, error)) {
        free(list);
        return false;
    }
    start(list, profile);
    while (next_interval(list, &span)) count++;
    start(list, profile);
    *answer = (struct answer){.profile = profile,
                              .names = names,
                              .draw = chart_draw,
                              .options = view,
                              .columns = timeline_columns,
                              .column_count = TIMELINE_COLUMNS,
                              .gap = 1,
                              .shown = count,
                              .count = count,
                              .next_row = next_span,
                              .close = free,
                              .state = list};
    snprintf(answer->title, sizeof answer->title, "heap over time, %s",
             units_counted((int64_t)count, "interval", "intervals").text);
    return true;
}
