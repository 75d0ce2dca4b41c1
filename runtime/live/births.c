// SPDX-License-Identifier: Apache-2.0
#include "runtime/live/births.h"

#include "runtime/live/live.h"
#include "runtime/sys/beside.h"

static struct beside births = {.entry_bytes = sizeof(struct birth)};

struct birth *births_at(uintptr_t address) {
    births.granule_shift = live.is_wide ? LIVE_WIDE_SHIFT : LIVE_NARROW_SHIFT;
    return beside_at(&births, address, true);
}
