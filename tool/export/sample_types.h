// SPDX-License-Identifier: Apache-2.0
// The values that pprof and OTLP have of each stack. Of an interval there are no peaks; where it
// was sampled, the ends of each value's 95 % interval are values of their own, so that error bars
// survive in an engine that knows of none. (Ends of several stacks add up to a wider interval than
// that of their sum.)
#ifndef TOOL_EXPORT_SAMPLE_TYPES_H
#define TOOL_EXPORT_SAMPLE_TYPES_H

#include "tool/export/export.h"

enum sample_end { SAMPLE_VALUE_ITSELF, SAMPLE_LOW, SAMPLE_HIGH };

struct sample_type {
    const char *name, *unit;
    enum measure measure;
    enum sample_end end;
};

struct sample_types {
    const struct sample_type *types;
    size_t count;
    size_t usual;  // which of them is shown first
};

struct sample_types sample_types_of(const struct export *export);
int64_t sample_type_value(const struct sample_type *type, const struct stack *stack);

// Of what time the values are: the interval's, or the recording's.
struct sample_span {
    uint64_t start_unix_ns, duration_ns;
};
struct sample_span sample_span_of(const struct export *export);

// Bytes between two samples on average, as Go's heap profiles say it; the values are estimates of
// all.
uint64_t sample_period(const struct recording *recording);

#endif
