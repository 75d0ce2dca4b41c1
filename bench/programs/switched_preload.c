// SPDX-License-Identifier: Apache-2.0
// Preloaded behind cairn: records a block before main, then switches recording off. What events
// cost from then on is to be what they cost where recording begins switched off.
#include <stdlib.h>

#include "include/cairn/cairn.h"

void *switched_block;  // where the compiler cannot do without it

__attribute__((constructor)) static void switch_off(void) {
    switched_block = malloc(1);
    cairn_disable(CAIRN_PROCESS);
}
