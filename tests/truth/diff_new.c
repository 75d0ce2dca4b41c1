// SPDX-License-Identifier: Apache-2.0
// One of the changes of diff.h.
//
// claim: diff_new
// flags: -O2 -DKIND=DIFF_NEW
// file: diff
#include "diff.h"
