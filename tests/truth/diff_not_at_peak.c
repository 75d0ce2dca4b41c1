// SPDX-License-Identifier: Apache-2.0
// One of the changes of diff.h.
//
// claim: diff_not_at_peak
// flags: -O2 -DKIND=DIFF_NOT_AT_PEAK
// file: diff
#include "diff.h"
