// SPDX-License-Identifier: Apache-2.0
// A Parquet file, written as a stream of rows: https://parquet.apache.org/docs/file-format. What is
// used of the format is what readers have known since its beginning: version 1, data pages of
// version 1, dictionaries for texts, converted types. Only the compression is newer (zstd).
//
// Rows are kept until there are enough for a row group, which is then written, one page a column;
// so memory does not grow with the number of rows. Every value but those of lists may be missing
// (NULL).
#ifndef TOOL_EXPORT_PARQUET_FILE_H
#define TOOL_EXPORT_PARQUET_FILE_H

#include <stdio.h>

#include "tool/base/byte_buffer.h"
#include "tool/base/error.h"

enum parquet_kind {
    PARQUET_NUMBER,  // 64 bits with a sign
    PARQUET_TIME,    // microseconds since 1970, UTC
    PARQUET_TEXT,
    PARQUET_TEXTS,  // a list of texts
};

struct parquet;

// A table of columns, of rows `row(NUMBER, "name", KIND)`.
struct parquet_column {
    const char *name;
    enum parquet_kind kind;
};
#define PARQUET_COLUMN_NUMBER(number, name, kind) COLUMN_##number,
#define PARQUET_COLUMN_ABOUT(number, name, kind) {name, PARQUET_##kind},

// NULL without memory. `creator` names the program that writes.
struct parquet *parquet_open(FILE *out, const char *creator, struct error *error);

// Columns are added before the first row; the result is a column's number. Names are unique, and
// must live until the file is closed.
size_t parquet_add_column(struct parquet *parquet, const char *name, enum parquet_kind kind);

// The number of a text in its safe form, for the functions below. It holds as long as
// parquet_group is the same.
uint32_t parquet_text(struct parquet *parquet, const char *text);
size_t parquet_group(const struct parquet *parquet);

// Each column has one value a row; what was not given one is NULL (a list: empty) after
// parquet_end_row.
void parquet_put_number(struct parquet *parquet, size_t column, int64_t value);
void parquet_put_text(struct parquet *parquet, size_t column, uint32_t text);
void parquet_put_in_list(struct parquet *parquet, size_t column, uint32_t text);
// False without memory.
bool parquet_end_row(struct parquet *parquet, struct error *error);

// Writes what is left and the end of the file; errors of the stream are the caller's to notice.
bool parquet_close(struct parquet *parquet, struct error *error);
// Frees what parquet_close would, and writes nothing.
void parquet_abandon(struct parquet *parquet);

// Integers of `width` bits, as levels and indexes are written: runs of equal ones, and groups of
// eight packed into bits.
void parquet_put_hybrid(struct byte_buffer *out, const uint32_t *values, size_t count,
                        unsigned width);

#endif
