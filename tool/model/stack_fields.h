// SPDX-License-Identifier: Apache-2.0
// The values of a stack, as reports and exports name them: a new one is a member of struct stack
// and a row here; JSON, ndjson, CSV, SQL and the page have it from then on (docs/reference/json.md
// explains them).
#ifndef TOOL_MODEL_STACK_FIELDS_H
#define TOOL_MODEL_STACK_FIELDS_H

#include "tool/model/profile.h"

// row(key, member): of 64 bits, with or without a sign.
#define STACK_FIELDS(row)                                                                          \
    row("allocations", allocations) row("frees", frees) row("temporary", temporary)                \
        row("watched", watched.blocks) row("watched_short_lived", watched.short_lived)             \
            row("allocated_bytes", allocated_bytes) row("freed_bytes", freed_bytes)                \
                row("slack_bytes", slack_bytes) row("alignment_waste_bytes", waste_bytes)          \
                    row("peak_blocks", peak_blocks) row("peak_bytes", peak_bytes)                  \
                        row("at_exit_blocks", exit_blocks) row("at_exit_bytes", exit_bytes)

#define STACK_FIELD_ONE(key, member) +1
enum { STACK_FIELD_COUNT = 0 STACK_FIELDS(STACK_FIELD_ONE) };

// What is added for samples: half the 95 % intervals of bytes and blocks, and the samples behind
// them (tool/model/estimate.h). row(key of the value, member, key of blocks, key of their samples).
#define STACK_ESTIMATES(row)                                                                       \
    row("peak", ESTIMATED_PEAK, "blocks", "peak_block_samples")                                    \
        row("at_exit", ESTIMATED_EXIT, "blocks", "at_exit_block_samples")                          \
            row("allocated", ESTIMATED_ALLOCATED, "calls", "call_samples")

// Their names with something between, for the heading of a table and its declaration.
#define STACK_FIELD_NAMES(between) STACK_FIELDS(STACK_FIELD_NAME_##between)
#define STACK_ESTIMATE_NAMES(between) STACK_ESTIMATES(STACK_ESTIMATE_NAME_##between)
#define STACK_FIELD_NAME_COMMA(key, member) key ","
#define STACK_FIELD_NAME_SQL(key, member) ", " key " INTEGER"
#define STACK_ESTIMATE_NAME_COMMA(key, kind, noun, samples)                                        \
    key "_interval_bytes," key "_interval_" noun "," key "_samples," samples "," key               \
        "_certain_samples,"
#define STACK_ESTIMATE_NAME_SQL(key, kind, noun, samples)                                          \
    ", " key "_interval_bytes INTEGER, " key "_interval_" noun " INTEGER, " key                    \
    "_samples INTEGER, " samples " INTEGER, " key "_certain_samples INTEGER"

struct stack_field {
    const char *key;
    size_t offset;  // in struct stack
    bool is_signed;
};

extern const struct stack_field stack_fields[];  // ends with key NULL

// False: of an import that does not say it.
bool stack_field_is_known(const struct stack_field *field, const struct profile *profile);

int64_t stack_field_value(const struct stack_field *field, const struct stack *stack);

#endif
