// SPDX-License-Identifier: Apache-2.0
#include "tool/export/sample_types.h"

#include "tool/model/figures.h"

#define ROW(name, unit, measure)                                                                   \
    { name, unit, measure, SAMPLE_VALUE_ITSELF }
#define ENDS(name, unit, measure)                                                                  \
    {name "_low", unit, measure, SAMPLE_LOW}, {                                                    \
        name "_high", unit, measure, SAMPLE_HIGH                                                   \
    }
#define USUAL_ROWS                                                                                 \
    ROW("alloc_objects", "count", MEASURE_CALLS), ROW("alloc_space", "bytes", MEASURE_ALLOCATED),  \
        ROW("inuse_objects", "count", MEASURE_EXIT_BLOCKS),                                        \
        ROW("inuse_space", "bytes", MEASURE_EXIT)

static const struct sample_type of_recording[] = {
    USUAL_ROWS,
    ROW("peak_objects", "count", MEASURE_PEAK_BLOCKS),
    ROW("peak_space", "bytes", MEASURE_PEAK),
};

static const struct sample_type of_interval[] = {
    USUAL_ROWS,
    ENDS("alloc_objects", "count", MEASURE_CALLS),
    ENDS("alloc_space", "bytes", MEASURE_ALLOCATED),
    ENDS("inuse_objects", "count", MEASURE_EXIT_BLOCKS),
    ENDS("inuse_space", "bytes", MEASURE_EXIT),
};
enum { EXACT_TYPES = 4, INUSE_SPACE = 3, CALL_TYPES = 2, ALLOC_SPACE = 1 };

struct sample_types sample_types_of(const struct export *export) {
    struct sample_types types = {of_recording, sizeof of_recording / sizeof *of_recording,
                                 INUSE_SPACE};
    if (export->interval) {
        bool is_sampled = recording_is_sampled(export->profile->recording);
        types.types = of_interval;
        types.count = is_sampled ? sizeof of_interval / sizeof *of_interval : EXACT_TYPES;
    }
    if (!profile_has_calls(export->profile)) {
        types.types += CALL_TYPES;
        types.count -= CALL_TYPES;
        types.usual -= CALL_TYPES;
    }
    if (!profile_has_frees(export->profile)) {
        types.count = CALL_TYPES;
        types.usual = ALLOC_SPACE;
    }
    for (size_t i = 0; export->is_by_chosen && i < types.count; i++)
        if (types.types[i].measure == export->by && !types.types[i].end) types.usual = i;
    return types;
}

int64_t sample_type_value(const struct sample_type *type, const struct stack *stack) {
    if (type->end == SAMPLE_VALUE_ITSELF) return measure_value(type->measure, stack);
    struct measured measured = measure_stack(type->measure, stack);
    if (type->end == SAMPLE_LOW) {
        int64_t least = measured_least(measured);
        return least > 0 ? least : 0;
    }
    return figures_add(measured.value, measured_interval(measured));
}

struct sample_span sample_span_of(const struct export *export) {
    const struct export_interval *interval = export->interval;
    const struct recording *recording = export->profile->recording;
    if (interval)
        return (struct sample_span){interval->end_unix_ns - interval->duration_ns,
                                    interval->duration_ns};
    return (struct sample_span){recording->header.start_unix_ns, recording_last_ns(recording)};
}

uint64_t sample_period(const struct recording *recording) {
    struct cairn_sampling sampling;
    bool is_sampled = recording_sampling(recording, &sampling) && sampling.is_on;
    return is_sampled && sampling.rate_bytes ? sampling.rate_bytes : 1;
}
