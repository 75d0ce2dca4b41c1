// SPDX-License-Identifier: Apache-2.0
// One of the changes of diff.h.
//
// claim: diff_gone
// flags: -O2 -DKIND=DIFF_GONE
// file: diff
#include "diff.h"
