// SPDX-License-Identifier: Apache-2.0
// Room of its own for the names of managed code (runtime/managed/codes.h), without a recording.
#ifndef TESTS_UNIT_RUNTIME_CODES_PLACE_H
#define TESTS_UNIT_RUNTIME_CODES_PLACE_H

#include <stdint.h>

#include "runtime/managed/codes.h"
#include "runtime/sys/sys.h"

// Include cmocka.h first.
static void codes_make_place(uint64_t bytes) {
    static uint64_t used_bytes, space_bytes;
    codes.region = (struct region){.base = sys_map(bytes),
                                   .capacity_bytes = bytes,
                                   .chunk_bytes = bytes,
                                   .used_bytes = &used_bytes,
                                   .space_bytes = &space_bytes,
                                   .claimed_bytes = bytes};
    assert_non_null(codes.region.base);
    assert_true(codes_begin());
}

#endif
