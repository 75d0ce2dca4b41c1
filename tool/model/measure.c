// SPDX-License-Identifier: Apache-2.0
#include "tool/model/measure.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS                                                                                     \
    { "block", "blocks" }
#define CALLS                                                                                      \
    { "call", "calls" }

// clang-format off
static const struct measure_row rows[MEASURE_COUNT] = {
    [MEASURE_PEAK] = {"peak", "at the peak", "what they held at the peak", BLOCKS, true,
                      MEASURE_PEAK_BLOCKS},
    [MEASURE_EXIT] = {"exit", "at the end", "what they hold at the end", BLOCKS, true,
                      MEASURE_EXIT_BLOCKS},
    [MEASURE_ALLOCATED] = {"allocated", "allocated", "the bytes they allocated", CALLS, true,
                           MEASURE_CALLS},
    [MEASURE_CALLS] = {"calls", "allocation calls", "their calls", CALLS, false, MEASURE_CALLS},
    [MEASURE_PEAK_BLOCKS] = {"peak blocks", "at the peak", "their blocks at the peak", BLOCKS,
                             false, MEASURE_PEAK_BLOCKS},
    [MEASURE_EXIT_BLOCKS] = {"exit blocks", "at the end", "their blocks at the end", BLOCKS, false,
                             MEASURE_EXIT_BLOCKS},
    [MEASURE_TEMPORARY] = {"temporary", "temporary blocks", "their temporary blocks", BLOCKS, false,
                           MEASURE_TEMPORARY},
    [MEASURE_SLACK] = {"slack", "of slack", "the room beyond what was asked for", CALLS, true,
                       MEASURE_CALLS},
};
// clang-format on

const struct measure_row *measure_about(enum measure measure) {
    return &rows[measure];
}

const char *measure_name(enum measure measure) {
    return rows[measure].name;
}

bool measure_parse(const char *name, enum measure *measure) {
    for (int i = 0; i < MEASURE_COUNT; i++) {
        if (strchr(rows[i].name, ' ') || strcmp(name, rows[i].name) != 0) continue;
        *measure = (enum measure)i;
        return true;
    }
    return false;
}

void measured_add(struct measured *sum, struct measured added) {
    sum->value = (int64_t)((uint64_t)sum->value + (uint64_t)added.value);
    sum->blocks = (int64_t)((uint64_t)sum->blocks + (uint64_t)added.blocks);
}

struct measured measure_stack(enum measure measure, const struct stack *stack) {
    int64_t calls = (int64_t)stack->allocations;
    switch (measure) {
    case MEASURE_PEAK:
        return (struct measured){stack->peak_bytes, stack->peak_blocks};
    case MEASURE_EXIT:
        return (struct measured){stack->exit_bytes, stack->exit_blocks};
    case MEASURE_ALLOCATED:
        return (struct measured){(int64_t)stack->allocated_bytes, calls};
    case MEASURE_PEAK_BLOCKS:
        return (struct measured){stack->peak_blocks, stack->peak_blocks};
    case MEASURE_EXIT_BLOCKS:
        return (struct measured){stack->exit_blocks, stack->exit_blocks};
    case MEASURE_TEMPORARY:
        return (struct measured){(int64_t)stack->temporary, (int64_t)stack->temporary};
    case MEASURE_SLACK:
        return (struct measured){(int64_t)stack->slack_bytes, calls};
    default:
        return (struct measured){calls, calls};
    }
}

struct measured measure_total(enum measure measure, const struct profile *profile) {
    int64_t calls = (int64_t)profile->totals.allocations;
    switch (measure) {
    case MEASURE_PEAK:
        return (struct measured){profile->peak.bytes, profile->peak.blocks};
    case MEASURE_EXIT:
        return (struct measured){profile->exit_bytes, profile->exit_blocks};
    case MEASURE_ALLOCATED:
        return (struct measured){(int64_t)profile->totals.allocated_bytes, calls};
    case MEASURE_PEAK_BLOCKS:
        return (struct measured){profile->peak.blocks, profile->peak.blocks};
    case MEASURE_EXIT_BLOCKS:
        return (struct measured){profile->exit_blocks, profile->exit_blocks};
    case MEASURE_TEMPORARY:
        return (struct measured){(int64_t)profile->totals.temporary,
                                 (int64_t)profile->totals.temporary};
    case MEASURE_SLACK:
        return (struct measured){(int64_t)profile->totals.slack_bytes, calls};
    default:
        return (struct measured){calls, calls};
    }
}

struct ranked {
    int64_t value;
    uint64_t id;
    uint32_t index;
};

static int compare(const void *a, const void *b) {
    const struct ranked *first = a, *second = b;
    if (first->value != second->value) return first->value < second->value ? 1 : -1;
    return (first->id > second->id) - (first->id < second->id);
}

static uint32_t *rank(enum measure measure, const struct profile *profile, int64_t above,
                      size_t *count) {
    *count = 0;
    struct ranked *ranked = calloc(profile->stack_count + 1, sizeof *ranked);
    uint32_t *indexes = calloc(profile->stack_count + 1, sizeof *indexes);
    if (ranked && indexes) {
        for (size_t i = 0; i < profile->stack_count; i++) {
            const struct stack *stack = &profile->stacks[i];
            int64_t value = measure_stack(measure, stack).value;
            if (value > above) ranked[(*count)++] = (struct ranked){value, stack->id, (uint32_t)i};
        }
        qsort(ranked, *count, sizeof *ranked, compare);
        for (size_t i = 0; i < *count; i++) indexes[i] = ranked[i].index;
        free(ranked);
        return indexes;
    }
    free(ranked);
    free(indexes);
    return NULL;
}

uint32_t *measure_rank(enum measure measure, const struct profile *profile, size_t *count) {
    return rank(measure, profile, 0, count);
}

uint32_t *measure_rank_all(enum measure measure, const struct profile *profile, size_t *count) {
    return rank(measure, profile, INT64_MIN, count);
}
