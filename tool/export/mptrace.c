// SPDX-License-Identifier: Apache-2.0
// The lines that MallocProfiler writes, for the scripts of its users: a stack with its number of
// calls, bytes in total, bytes live at the end, and the most bytes it was seen to hold.
#include <inttypes.h>

#include "tool/export/folded.h"

// cairn knows what a stack held at two snapshots; its own maximum is at least the larger one.
static int64_t most_bytes(const struct stack *stack) {
    return stack->peak_bytes > stack->exit_bytes ? stack->peak_bytes : stack->exit_bytes;
}

bool export_mptrace(FILE *out, const struct export *export, struct error *error) {
    const struct profile *profile = export->profile;
    struct folded folded;
    if (!folded_open(&folded, export, false, error)) return false;
    bool is_ok = true;
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        const struct stack *stack = &profile->stacks[i];
        fputs("_mpTrace_;", out);
        is_ok = folded_put(out, &folded, stack->node, error);
        fprintf(out, " $%" PRIu64 "$%" PRIu64 "$%" PRId64 "$%" PRId64 "\n", stack->allocations,
                stack->allocated_bytes, stack->exit_bytes, most_bytes(stack));
    }
    folded_close(&folded);
    return is_ok;
}
