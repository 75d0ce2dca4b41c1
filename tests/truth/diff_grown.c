// SPDX-License-Identifier: Apache-2.0
// One of the changes of diff.h.
//
// claim: diff_grown
// flags: -O2 -DKIND=DIFF_GROWN
// file: diff
#include "diff.h"
