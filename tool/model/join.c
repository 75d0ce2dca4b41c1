// SPDX-License-Identifier: Apache-2.0
#include "tool/model/join.h"

#include <stdlib.h>

static void add_rest(struct stack *stack, const struct stack *added) {
    const struct stack_more *more = stack_more(added);
    stack->at_bytes = figures_add(stack->at_bytes, added->at_bytes);
    stack->at_blocks = figures_add(stack->at_blocks, added->at_blocks);
    if (!stack->more) return;
    stack->more->mapping_kinds |= more->mapping_kinds;
    stack->more->reserved_bytes = figures_add(stack->more->reserved_bytes, more->reserved_bytes);
    stack->more->reserved_ranges = figures_add(stack->more->reserved_ranges, more->reserved_ranges);
}

// Adds the values, and notes the id. False without memory.
static bool add(struct profile *profile, struct stack *stack, const struct stack *added) {
    const struct cell_values values = stack_values(added);
    if (added->more && !stack_pool_give(&profile->more, stack)) return false;
    stack_add(stack, &values);
    add_rest(stack, added);
    struct joined_id *id = array_push(&profile->joined);
    if (id) *id = (struct joined_id){stack->number, added->id};
    return id != NULL;
}

static int by_number(const void *left, const void *right) {
    const struct joined_id *a = left, *b = right;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

// Keeps the numbers by those that were built, through all that was joined before. Takes them.
static void keep_numbers(struct profile *profile, uint32_t *numbers) {
    uint32_t *kept = profile->joined_numbers;
    for (size_t i = 0; kept && i < profile->built_stack_count; i++)
        if (kept[i]) kept[i] = numbers[kept[i] - 1];
    if (kept)
        free(numbers);
    else
        profile->joined_numbers = numbers;
}

// Gives stacks that stay the numbers of their places in the list, and cells those of the stacks
// that theirs were added to.
static bool renumber(struct profile *profile, const uint32_t *into) {
    const size_t built = profile->built_stack_count;
    uint32_t *numbers = calloc(built + 1, sizeof *numbers), kept = 0;
    struct stack *stacks = profile->stacks;
    if (!numbers) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (stacks[i].number < built) numbers[stacks[i].number] = (uint32_t)i + 1;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (into[i] == i) stacks[i].number = kept++;
    for (size_t i = 0; i < built; i++)
        if (numbers[i]) numbers[i] = stacks[into[numbers[i] - 1]].number + 1;
    for (size_t i = 0; i < profile->joined.count; i++) {
        uint32_t *number = &profile->joined.items[i].number;
        *number = numbers[*number] - 1;
    }
    for (size_t cell = 0; profile->stack_of_cell && cell < profile->cell_count; cell++) {
        uint32_t *stack = &profile->stack_of_cell[cell];
        *stack = *stack && *stack <= built ? numbers[*stack - 1] : 0;
    }
    keep_numbers(profile, numbers);
    return true;
}

bool profile_join(struct profile *profile, const uint32_t *into) {
    size_t kept = 0;
    if (!renumber(profile, into)) return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (into[i] != i && !add(profile, &profile->stacks[into[i]], &profile->stacks[i]))
            return false;
    for (size_t i = 0; i < profile->stack_count; i++)
        if (into[i] == i) profile->stacks[kept++] = profile->stacks[i];
    profile->stack_count = kept;
    if (profile->joined.count)
        qsort(profile->joined.items, profile->joined.count, sizeof *profile->joined.items,
              by_number);
    return true;
}

uint32_t profile_joined_number(const struct profile *profile, uint32_t built) {
    const uint32_t *numbers = profile->joined_numbers;
    return numbers && numbers[built] ? numbers[built] - 1 : built;
}

const struct joined_id *profile_joined_ids(const struct profile *profile, const struct stack *stack,
                                           size_t *count) {
    const struct joined_id *ids = profile->joined.items;
    size_t low = 0, high = profile->joined.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ids[middle].number < stack->number)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < profile->joined.count; ++*count)
        if (ids[low + *count].number != stack->number) break;
    return ids ? ids + low : NULL;
}
