// SPDX-License-Identifier: Apache-2.0
// How much of the resident heap is live, of the programs of resident.c.
//
// claim: heap
// both: live_bytes
// flags: -O2
// needs: look-within
#define WHOLE "heap_bytes"
#include "resident.c"
