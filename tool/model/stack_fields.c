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

bool stack_field_is_of_calls(const struct stack_field *field) {
    return field->offset == offsetof(struct stack, allocations) ||
           field->offset == offsetof(struct stack, allocated_bytes);
}
