// SPDX-License-Identifier: Apache-2.0
#include "tool/export/thrift.h"

#include <string.h>

enum { SHORT_LIST = 15, NIBBLE_BITS = 4, SIGN_BIT = 63 };

static void put_field(struct thrift *thrift, int field, enum thrift_type type) {
    if (!field) return;
    int *last = &thrift->last_field[thrift->depth];
    byte_buffer_put_number(thrift->out, (uint64_t)(field - *last) << NIBBLE_BITS | type, 1);
    *last = field;
}

void thrift_put_integer(struct thrift *thrift, int field, enum thrift_type type, int64_t value) {
    put_field(thrift, field, type);
    byte_buffer_put_varint(thrift->out, (uint64_t)value << 1 ^ (uint64_t)(value >> SIGN_BIT));
}

void thrift_put_binary(struct thrift *thrift, int field, const char *text) {
    put_field(thrift, field, THRIFT_BINARY);
    byte_buffer_put_varint(thrift->out, strlen(text));
    byte_buffer_put(thrift->out, text, strlen(text));
}

void thrift_open_list(struct thrift *thrift, int field, enum thrift_type type, size_t count) {
    put_field(thrift, field, THRIFT_LIST);
    bool is_short = count < SHORT_LIST;
    uint64_t size = is_short ? count : SHORT_LIST;
    byte_buffer_put_number(thrift->out, size << NIBBLE_BITS | type, 1);
    if (!is_short) byte_buffer_put_varint(thrift->out, count);
}

void thrift_open_struct(struct thrift *thrift, int field) {
    put_field(thrift, field, THRIFT_STRUCT);
    thrift->last_field[++thrift->depth] = 0;
}

void thrift_close_struct(struct thrift *thrift) {
    byte_buffer_put_number(thrift->out, 0, 1);
    thrift->depth--;
}

void thrift_end(struct thrift *thrift) {
    byte_buffer_put_number(thrift->out, 0, 1);
}
