// SPDX-License-Identifier: Apache-2.0
// One of the changes of diff.h.
//
// claim: diff_shrunk
// flags: -O2 -DKIND=DIFF_SHRUNK
// file: diff
#include "diff.h"
