// SPDX-License-Identifier: Apache-2.0
// The growth of growth.c as samples have it.
//
// claim: growth
// flags: -O2
// flags: -O2 -DTHREADS=8
// run: --sample --rate=64K --seed=1
#define SLACK 0.5
#include "growth.c"
