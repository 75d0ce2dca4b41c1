// SPDX-License-Identifier: Apache-2.0
#include "tool/model/stack_fields.h"

#include <stddef.h>
#include <string.h>

#define IS_SIGNED(member) _Generic(((struct stack *)0)->member, int64_t : true, uint64_t : false)
#define FIELD(key, member) {key, offsetof(struct stack, member), IS_SIGNED(member)},

const struct stack_field stack_fields[] = {STACK_FIELDS(FIELD){0}};

int64_t stack_field_value(const struct stack_field *field, const struct stack *stack) {
    int64_t value;
    memcpy(&value, (const char *)stack + field->offset, sizeof value);
    return value;
}

static bool is_of_calls(const struct stack_field *field) {
    return field->offset == offsetof(struct stack, allocations) ||
           field->offset == offsetof(struct stack, allocated_bytes);
}

// Returns true of what was live at the peak or the end; `has_blocks`: in numbers of blocks.
static bool is_live(const struct stack_field *field, bool has_blocks) {
    return field->offset == offsetof(struct stack, peak_bytes) ||
           field->offset == offsetof(struct stack, exit_bytes) ||
           (has_blocks && (field->offset == offsetof(struct stack, peak_blocks) ||
                           field->offset == offsetof(struct stack, exit_blocks)));
}

bool stack_field_is_known(const struct stack_field *field, const struct profile *profile) {
    if (!profile_has_frees(profile)) return is_of_calls(field);
    if (is_live(field, true)) return is_live(field, profile_has_blocks(profile));
    return profile_has_calls(profile);
}
