// SPDX-License-Identifier: Apache-2.0
// A row a stack, for spreadsheets and data frames (RFC 4180, with LF): all values, then the frames
// as "outer;inner". What a spreadsheet would take for a formula starts with an apostrophe.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/export/export.h"
#include "tool/export/titles.h"

static void put_quoted(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '"') fputc_unlocked('"', out);
        fputc_unlocked(*text, out);
    }
}

static void put_frames(FILE *out, const struct frame_table *frames, const struct titles *titles) {
    size_t count = frames->stack.count;
    fputc_unlocked('"', out);
    for (size_t i = count; i-- > 0;) {
        const char *title = titles->list[frames->stack.items[i]];
        if (i + 1 == count && strchr("=+-@", *title)) fputc_unlocked('\'', out);
        put_quoted(out, title);
        if (i) fputc_unlocked(';', out);
    }
    fputs("\"\n", out);
}

static void put_values(FILE *out, const struct stack *stack) {
    fprintf(out, "%016" PRIx64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", stack->id,
            stack->allocations, stack->frees, stack->allocated_bytes, stack->freed_bytes);
    fprintf(out, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,", stack->peak_blocks,
            stack->peak_bytes, stack->exit_blocks, stack->exit_bytes,
            stack->cut ? cut_key(stack->cut) : "");
}

static bool put_rows(FILE *out, const struct export *export, struct frame_table *frames,
                     const struct titles *titles) {
    size_t count;
    bool is_ok = true;
    uint32_t *ranking = measure_rank_all(export->by, export->profile, &count);
    for (size_t i = 0; ranking && i < count && is_ok; i++) {
        const struct stack *stack = &export->profile->stacks[ranking[i]];
        is_ok = frame_table_stack(frames, stack->node);
        if (!is_ok) break;
        put_values(out, stack);
        put_frames(out, frames, titles);
    }
    free(ranking);
    return is_ok && ranking;
}

bool export_csv(FILE *out, const struct export *export, struct error *error) {
    struct frame_table frames;
    struct titles titles;
    if (!frame_table_build(&frames, export, FRAMES_PICTURE, error)) return false;
    fputs("id,allocations,frees,allocated_bytes,freed_bytes,peak_blocks,peak_bytes,at_exit_blocks,"
          "at_exit_bytes,incomplete,frames\n",
          out);
    bool is_ok =
        titles_build(&titles, &frames, error) &&
        (put_rows(out, export, &frames, &titles) || error_set(error, "no memory for rows"));
    titles_free(&titles);
    frame_table_free(&frames);
    return is_ok;
}
