// SPDX-License-Identifier: Apache-2.0
// Collapsed stacks: a line a stack, "outer;inner VALUE". What would end a frame or a line in a name
// is replaced, so that every reader finds the value behind the last blank.
#include <inttypes.h>
#include <string.h>

#include "tool/export/export.h"
#include "tool/export/titles.h"

static void put_stack(FILE *out, const struct frame_table *frames, const struct titles *titles,
                      int64_t value) {
    for (size_t i = frames->stack.count; i-- > 0;) {
        fputs_unlocked(titles->list[frames->stack.items[i]], out);
        if (i) fputc_unlocked(';', out);
    }
    fprintf(out, " %" PRId64 "\n", value);
}

bool export_collapsed(FILE *out, const struct export *export, struct error *error) {
    struct frame_table frames;
    struct titles titles;
    const struct profile *profile = export->profile;
    if (!frame_table_build(&frames, export, FRAMES_PICTURE, error)) return false;
    bool is_ok = titles_build(&titles, &frames, error);
    for (size_t i = 0; i < profile->stack_count && is_ok; i++) {
        int64_t value = measure_stack(export->by, &profile->stacks[i]).value;
        if (value <= 0) continue;
        is_ok = frame_table_stack(&frames, profile->stacks[i].node) ||
                error_set(error, "no memory for a stack");
        if (is_ok) put_stack(out, &frames, &titles, value);
    }
    titles_free(&titles);
    frame_table_free(&frames);
    return is_ok;
}
