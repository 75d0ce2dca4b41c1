// SPDX-License-Identifier: Apache-2.0
// Thrift's compact form, in which Parquet says what its pages and files are. A structure's fields
// are put in ascending order; the outermost structure ends with thrift_end.
#ifndef TOOL_EXPORT_THRIFT_H
#define TOOL_EXPORT_THRIFT_H

#include "tool/base/byte_buffer.h"

enum thrift_type {
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12
};
#define THRIFT_DEPTH 8

struct thrift {
    struct byte_buffer *out;
    int last_field[THRIFT_DEPTH];  // fields say how far they are behind the last one
    int depth;
};

// Field 0: a member of a list, which has no header of its own.
void thrift_put_integer(struct thrift *thrift, int field, enum thrift_type type, int64_t value);
void thrift_put_binary(struct thrift *thrift, int field, const char *text);
// Its members follow.
void thrift_open_list(struct thrift *thrift, int field, enum thrift_type type, size_t count);
void thrift_open_struct(struct thrift *thrift, int field);
void thrift_close_struct(struct thrift *thrift);
void thrift_end(struct thrift *thrift);

#endif
