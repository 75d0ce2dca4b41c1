// SPDX-License-Identifier: Apache-2.0
// A row a stack, for spreadsheets and data frames (RFC 4180, with LF): all values, then the frames
// as "outer;inner"; of samples, with how sure they are in front of these. What a spreadsheet would
// take for a formula starts with an apostrophe.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/export/folded.h"

static bool put_frames(FILE *out, struct folded *folded, uint32_t node, struct error *error) {
    if (!frame_table_stack(&folded->frames, node)) return error_set(error, "no memory for a stack");
    size_t outermost = folded->frames.stack.items[folded->frames.stack.count - 1];
    fputc_unlocked('"', out);
    if (strchr("=+-@", *folded->titles[outermost].text)) fputc_unlocked('\'', out);
    bool is_ok = folded_put(out, folded, node, error);
    fputs("\"\n", out);
    return is_ok;
}

static void put_values(FILE *out, const struct stack *stack) {
    fprintf(out, "%016" PRIx64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", stack->id,
            stack->allocations, stack->frees, stack->allocated_bytes, stack->freed_bytes);
    fprintf(out,
            "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
            ",%s,",
            stack->peak_blocks, stack->peak_bytes, stack->exit_blocks, stack->exit_bytes,
            stack->temporary, stack->slack_bytes, stack->waste_bytes,
            stack->cut ? cut_key(stack->cut) : "");
}

// Of samples: half the 95 % intervals of bytes and blocks, and the samples behind them.
static const char estimate_columns[] =
    "peak_interval_bytes,peak_interval_blocks,peak_samples,at_exit_interval_bytes,"
    "at_exit_interval_blocks,at_exit_samples,allocated_interval_bytes,allocated_interval_calls,"
    "allocated_samples,";

static void put_estimates(FILE *out, const struct stack *stack) {
    for (int kind = 0; kind < ESTIMATED_THEN; kind++) {
        const struct estimate *estimate = &stack->estimates[kind];
        fprintf(out, "%" PRId64 ",%" PRId64 ",%" PRId64 ",",
                estimate_interval(estimate->bytes_variance),
                estimate_interval(estimate->blocks_variance), estimate->samples);
    }
}

static bool put_rows(FILE *out, const struct export *export, struct folded *folded,
                     struct error *error) {
    size_t count;
    bool is_ok = true;
    uint32_t *ranking = measure_rank_all(export->by, export->profile, &count);
    if (!ranking) return error_set(error, "no memory for rows");
    for (size_t i = 0; i < count && is_ok; i++) {
        const struct stack *stack = &export->profile->stacks[ranking[i]];
        put_values(out, stack);
        if (export->profile->sampling.is_on) put_estimates(out, stack);
        is_ok = put_frames(out, folded, stack->node, error);
    }
    free(ranking);
    return is_ok;
}

bool export_csv(FILE *out, const struct export *export, struct error *error) {
    struct folded folded;
    if (!folded_open(&folded, export, true, error)) return false;
    fputs("id,allocations,frees,allocated_bytes,freed_bytes,peak_blocks,peak_bytes,at_exit_blocks,"
          "at_exit_bytes,temporary,slack_bytes,alignment_waste_bytes,incomplete,",
          out);
    if (export->profile->sampling.is_on) fputs(estimate_columns, out);
    fputs("frames\n", out);
    bool is_ok = put_rows(out, export, &folded, error);
    folded_close(&folded);
    return is_ok;
}
