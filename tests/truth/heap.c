// SPDX-License-Identifier: Apache-2.0
// The live part of the resident heap, of the programs of resident.c.
//
// claim: heap
// both: live_bytes
// flags: -O2
// needs: look-within
#define WHOLE "heap_bytes"
#include "resident.c"
