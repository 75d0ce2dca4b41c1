// SPDX-License-Identifier: Apache-2.0
// Bytes over time, "1.2 MiB/min": in the unit of time in which the number is handy.
#ifndef TOOL_RENDER_RATE_H
#define TOOL_RENDER_RATE_H

#include <stddef.h>

void rate_text(double bytes_per_s, char *out, size_t size);

#endif
