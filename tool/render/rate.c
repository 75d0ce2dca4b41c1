// SPDX-License-Identifier: Apache-2.0
#include "tool/render/rate.h"

#include <stdint.h>
#include <stdio.h>

#include "tool/base/units.h"

enum { MINUTE_S = 60, HOUR_MIN = 60 };

void rate_text(double bytes_per_s, char *out, size_t size) {
    const double small = 10 * 1024;
    const char *unit = "s";
    if (bytes_per_s < small) {
        bytes_per_s *= MINUTE_S;
        unit = "min";
    }
    if (bytes_per_s < small) {
        bytes_per_s *= HOUR_MIN;
        unit = "h";
    }
    const double most = 0x1p62;
    int64_t bytes = (int64_t)(bytes_per_s < most ? bytes_per_s : most);
    snprintf(out, size, "%s/%s", units_size(bytes).text, unit);
}
