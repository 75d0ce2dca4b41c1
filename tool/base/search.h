// SPDX-License-Identifier: Apache-2.0
// Where in something ascending a condition begins to hold.
//
//     size_t at;
//     search_first(at, list.count, list.items[at].end > address);
#ifndef TOOL_BASE_SEARCH_H
#define TOOL_BASE_SEARCH_H

#include <stddef.h>

// Sets `at` to the smallest number below `count` for which `is_it` holds, an expression in `at`
// that holds for all larger ones too; to `count` if it holds for none.
#define search_first(at, count, is_it)                                                             \
    for (size_t low_ = 0, high_ = (count); (at) = low_ + (high_ - low_) / 2, low_ < high_;)        \
        if (is_it)                                                                                 \
            high_ = (at);                                                                          \
        else                                                                                       \
            low_ = (at) + 1

#endif
