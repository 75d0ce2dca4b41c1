// SPDX-License-Identifier: Apache-2.0
// Sets of addresses as stretches, and what they leave of others.
#ifndef TOOL_CORE_SPANS_H
#define TOOL_CORE_SPANS_H

#include <stdint.h>

#include "tool/base/array.h"

struct core_span {
    uint64_t start, end;  // addresses
};

struct core_spans {
    ARRAY(struct core_span) items;
};

// False without memory. What is empty is not added.
bool core_spans_add(struct core_spans *spans, uint64_t start, uint64_t end);

// To be called when all are there: makes them ascending and apart from each other.
void core_spans_settle(struct core_spans *spans);
void core_spans_free(struct core_spans *spans);

// The next stretch of [*at, end) that is in none of the settled spans; moves *at behind it. False:
// there is none.
bool core_spans_gap(const struct core_spans *spans, uint64_t *at, uint64_t end,
                    struct core_span *gap);

#endif
