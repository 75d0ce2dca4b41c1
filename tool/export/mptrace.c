// SPDX-License-Identifier: Apache-2.0
// The lines that MallocProfiler writes, for the scripts of its users: a stack with its number of
// calls, bytes in total, bytes live at the end, and the most bytes it was seen to hold.
#include <inttypes.h>

#include "tool/export/export.h"
#include "tool/export/titles.h"

// cairn knows what a stack held at two moments; its own maximum is at least the larger one.
static int64_t most_bytes(const struct stack *stack) {
    return stack->peak_bytes > stack->exit_bytes ? stack->peak_bytes : stack->exit_bytes;
}

static void put_stack(FILE *out, const struct frame_table *frames, const struct titles *titles,
                      const struct stack *stack) {
    fputs("_mpTrace_", out);
    for (size_t i = frames->stack.count; i-- > 0;) {
        fputc_unlocked(';', out);
        fputs_unlocked(titles->list[frames->stack.items[i]], out);
    }
    fprintf(out, " $%" PRIu64 "$%" PRIu64 "$%" PRId64 "$%" PRId64 "\n", stack->allocations,
            stack->allocated_bytes, stack->exit_bytes, most_bytes(stack));
}

bool export_mptrace(FILE *out, const struct export *export, struct error *error) {
    struct frame_table frames;
    struct titles titles;
    const struct profile *profile = export->profile;
    if (!frame_table_build(&frames, export, FRAMES_PICTURE, error)) return false;
    bool is_ok = titles_build(&titles, &frames, error);
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        is_ok = frame_table_stack(&frames, profile->stacks[i].node) ||
                error_set(error, "no memory for a stack");
        if (is_ok) put_stack(out, &frames, &titles, &profile->stacks[i]);
    }
    titles_free(&titles);
    frame_table_free(&frames);
    return is_ok;
}
