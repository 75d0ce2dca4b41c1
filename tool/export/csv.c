// SPDX-License-Identifier: Apache-2.0
// A row a stack, for spreadsheets and data frames (RFC 4180, with LF): all values, then the frames
// as "outer;inner"; of samples, with how sure they are in front of these. A value that is not known
// is empty. What a spreadsheet would take for a formula starts with an apostrophe.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/export/folded.h"
#include "tool/model/stack_fields.h"

static bool put_frames(FILE *out, struct folded *folded, uint32_t node, struct error *error) {
    if (!frame_table_stack(&folded->frames, node)) return error_set(error, "no memory for a stack");
    size_t outermost = folded->frames.stack.items[folded->frames.stack.count - 1];
    fputc_unlocked('"', out);
    if (strchr("=+-@", *folded->titles[outermost].text)) fputc_unlocked('\'', out);
    bool is_ok = folded_put(out, folded, node, error);
    fputs("\"\n", out);
    return is_ok;
}

static void put_values(FILE *out, const struct stack *stack, const struct profile *profile) {
    fprintf(out, "%016" PRIx64 ",", stack->id);
    for (const struct stack_field *field = stack_fields; field->key; field++)
        if (stack_field_is_known(field, profile))
            fprintf(out, field->is_signed ? "%" PRId64 "," : "%" PRIu64 ",",
                    stack_field_value(field, stack));
        else
            fputc(',', out);
    fprintf(out, "%s,", stack->cut ? cut_key(stack->cut) : "");
}

static void put_estimates(FILE *out, const struct stack *stack) {
    for (int kind = 0; kind < ESTIMATED_AT; kind++) {
        const struct estimate *estimate = &stack_more(stack)->estimates[kind];
        const int64_t values[] = {estimate_bytes_interval(estimate),
                                  estimate_blocks_interval(estimate), estimate_samples(estimate),
                                  estimate_block_samples(estimate), estimate_certain(estimate)};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            fprintf(out, "%" PRId64 ",", values[i]);
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
        put_values(out, stack, export->profile);
        if (export->profile->sampling.is_on) put_estimates(out, stack);
        is_ok = put_frames(out, folded, stack->node, error);
    }
    free(ranking);
    return is_ok;
}

bool export_csv(FILE *out, const struct export *export, struct error *error) {
    struct folded folded;
    if (!folded_open(&folded, export, true, error)) return false;
    fputs("id," STACK_FIELD_NAMES(COMMA) "incomplete,", out);
    if (export->profile->sampling.is_on) fputs(STACK_ESTIMATE_NAMES(COMMA), out);
    fputs("frames\n", out);
    bool is_ok = put_rows(out, export, &folded, error);
    folded_close(&folded);
    return is_ok;
}
