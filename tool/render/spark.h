// SPDX-License-Identifier: Apache-2.0
// A row of numbers as a row of block characters.
#ifndef TOOL_RENDER_SPARK_H
#define TOOL_RENDER_SPARK_H

#include <stddef.h>
#include <stdint.h>

#include "tool/render/terminal.h"

// At most `columns` characters; where there are more values each stands for the highest of several.
// The highest value fills its character; what is above 0 is never blank.
void spark_print(const struct terminal *terminal, const int64_t *values, size_t count,
                 size_t columns);

// The same for a histogram: each value is one character, and 0 is a dot.
void spark_print_histogram(const struct terminal *terminal, const uint64_t *values, size_t count);

#endif
