// SPDX-License-Identifier: Apache-2.0
// Collapsed stacks: a line a stack, "outer;inner VALUE". What would end a frame or a line in a name
// is replaced, so that every reader finds the value behind the last blank.
#include <inttypes.h>

#include "tool/export/folded.h"

bool export_collapsed(FILE *out, const struct export *export, struct error *error) {
    const struct profile *profile = export->profile;
    struct folded folded;
    if (!folded_open(&folded, export, false, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        int64_t value = measure_stack(export->by, &profile->stacks[i]).value;
        if (value <= 0) continue;
        is_ok = folded_put(out, &folded, profile->stacks[i].node, error);
        fprintf(out, " %" PRId64 "\n", value);
    }
    folded_close(&folded);
    return is_ok;
}
