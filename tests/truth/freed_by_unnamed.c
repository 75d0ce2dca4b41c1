// SPDX-License-Identifier: Apache-2.0
// The hand-over of freed_by.c between threads that nobody gave a name.
//
// claim: freed_by
// flags: -O2
// flags: -O3 -s -DMAKERS=8
#define MAKER "program"
#define TAKER "program"
#include "freed_by.c"
