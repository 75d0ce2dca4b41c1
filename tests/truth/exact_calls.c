// SPDX-License-Identifier: Apache-2.0
// Blocks are drawn at random (--sample), while calls are counted; of its twin all is known.
//
// claim: exact_calls
// flags: -O2
// run-1: --sample
#include "exact.c"
