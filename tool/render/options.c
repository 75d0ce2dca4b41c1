// SPDX-License-Identifier: Apache-2.0
#include "tool/render/options.h"

#include <math.h>

int64_t view_threshold(const struct view_options *view, int64_t whole) {
    double share = ceil((double)whole * view->threshold);
    int64_t least = share >= 1 && share < (double)INT64_MAX ? (int64_t)share : 1;
    return least > view->min_bytes ? least : view->min_bytes;
}
