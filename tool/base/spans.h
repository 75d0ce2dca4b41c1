// SPDX-License-Identifier: Apache-2.0
// Sets of addresses as stretches, and what they leave of others.
#ifndef TOOL_BASE_SPANS_H
#define TOOL_BASE_SPANS_H

#include <stdint.h>

#include "tool/base/array.h"

struct span {
    uint64_t start, end;  // addresses
};

struct spans {
    ARRAY(struct span) items;
};

// False without memory. What is empty is not added.
bool spans_add(struct spans *spans, uint64_t start, uint64_t end);

// To be called when all are there: makes them ascending and apart from each other.
void spans_settle(struct spans *spans);
void spans_free(struct spans *spans);

// Of settled ones.
bool spans_have(const struct spans *spans, uint64_t address);

// The next stretch of [*at, end) that is in none of the settled spans; moves *at behind it. False:
// there is none.
bool spans_gap(const struct spans *spans, uint64_t *at, uint64_t end, struct span *gap);

#endif
