// SPDX-License-Identifier: Apache-2.0
#include "tool/web/life.h"

#include <string.h>

#include "tool/model/timeline.h"

// The last time that a recording tells of: one that goes on has an interval without an end.
static uint64_t end_of(const struct recording *recording) {
    struct timeline timeline;
    struct timeline_span span;
    uint64_t end_ns = 0;
    timeline_start(&timeline, recording);
    while (timeline_next(&timeline, &span))
        end_ns = span.end_ns != UINT64_MAX ? span.end_ns : span.start_ns + timeline.point_ns;
    return end_ns;
}

static size_t step_at(uint64_t at_ns, uint64_t end_ns) {
    double step = (double)at_ns / (double)end_ns * LIFE_STEPS;
    return step < LIFE_STEPS ? (size_t)step : LIFE_STEPS - 1;
}

bool life_read(const struct recording *recording, uint64_t live[LIFE_STEPS]) {
    struct timeline timeline;
    struct timeline_span span;
    uint64_t end_ns = end_of(recording);
    memset(live, 0, LIFE_STEPS * sizeof *live);
    timeline_start(&timeline, recording);
    while (end_ns && timeline_next(&timeline, &span)) {
        if (span.start_ns >= span.end_ns) continue;
        size_t last = step_at(span.end_ns - 1, end_ns);
        for (size_t step = step_at(span.start_ns, end_ns); step <= last; step++)
            if (span.high_bytes > live[step]) live[step] = span.high_bytes;
    }
    return end_ns > 0;
}
