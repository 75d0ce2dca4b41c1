// SPDX-License-Identifier: Apache-2.0
// The file is: "PAR1", row groups, what they are (in Thrift's compact form), its length, "PAR1". A
// row group has a chunk for each column: for texts a page with the dictionary, then a page with
// the values. In front of a page's values are the levels: of a list's, whether each begins a row,
// and of all, whether there is a value.
#include "tool/export/parquet_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "tool/base/array.h"
#include "tool/export/thrift.h"
#include "tool/model/strings.h"

// Values of a row group, all columns together: some 50 MB of memory at most.
enum { GROUP_VALUES = 2 << 20, COMPRESSION_LEVEL = 3, MAGIC_BYTES = 4, GROUP_OF_BITS = 8 };
static const char magic[] = "PAR1";

// --- numbers of the format (parquet.thrift)

enum physical_type { TYPE_INT64 = 2, TYPE_BYTES = 6 };
enum converted_type {
    CONVERTED_UTF8 = 0,
    CONVERTED_LIST = 3,
    CONVERTED_TIME_MICROS = 10,
    CONVERTED_NONE = -1
};
enum repetition { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum encoding { ENCODING_PLAIN = 0, ENCODING_DICTIONARY = 2, ENCODING_LEVELS = 3 };
enum page_type { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { CODEC_ZSTD = 6, FILE_VERSION = 1 };

enum schema_field {
    SCHEMA_TYPE = 1,
    SCHEMA_REPETITION = 3,
    SCHEMA_NAME = 4,
    SCHEMA_CHILDREN = 5,
    SCHEMA_CONVERTED = 6
};
enum page_field {
    PAGE_TYPE = 1,
    PAGE_BYTES = 2,
    PAGE_BYTES_COMPRESSED = 3,
    PAGE_HEADER_DATA = 5,
    PAGE_HEADER_DICTIONARY = 7
};
enum chunk_field { CHUNK_OFFSET = 2, CHUNK_ABOUT = 3 };
enum about_field {
    ABOUT_TYPE = 1,
    ABOUT_ENCODINGS = 2,
    ABOUT_PATH = 3,
    ABOUT_CODEC = 4,
    ABOUT_VALUES = 5,
    ABOUT_BYTES = 6,
    ABOUT_BYTES_COMPRESSED = 7,
    ABOUT_DATA_PAGE = 9,
    ABOUT_DICTIONARY_PAGE = 11
};
enum group_field { GROUP_CHUNKS = 1, GROUP_BYTES = 2, GROUP_ROWS = 3 };
enum file_field {
    FILE_VERSION_FIELD = 1,
    FILE_SCHEMA = 2,
    FILE_ROWS = 3,
    FILE_GROUPS = 4,
    FILE_CREATOR = 6
};

// --- what is kept

struct column {
    const char *name;
    enum parquet_kind kind;
    bool is_put;                  // the row has a value
    ARRAY(uint32_t) repetitions;  // of a list: 0 begins a row
    ARRAY(uint32_t) definitions;  // 1: there is a value
    ARRAY(int64_t) numbers;       // that there are; of texts their numbers
};

struct chunk {
    uint64_t dictionary_offset, data_offset;  // of pages; no dictionary: 0
    uint64_t values, bytes, compressed_bytes;
};

struct group {
    size_t first_chunk;
    uint64_t rows, bytes;
};

struct parquet {
    FILE *out;
    const char *creator;
    ARRAY(struct column) columns;
    ARRAY(struct chunk) chunks;  // of all groups, in the order of the columns
    ARRAY(struct group) groups;
    struct strings texts;  // of the group
    uint64_t offset, rows, group_rows;
    size_t group_values;
    struct byte_buffer page, packed, header;
    bool has_failed;
};

struct parquet *parquet_open(FILE *out, const char *creator, struct error *error) {
    struct parquet *parquet = calloc(1, sizeof *parquet);
    if (!parquet) {
        error_set(error, "no memory for a table");
        return NULL;
    }
    parquet->out = out;
    parquet->creator = creator;
    strings_start(&parquet->texts);
    fwrite(magic, 1, MAGIC_BYTES, out);
    parquet->offset = MAGIC_BYTES;
    return parquet;
}

size_t parquet_add_column(struct parquet *parquet, const char *name, enum parquet_kind kind) {
    struct column *column = array_push(&parquet->columns);
    if (column)
        *column = (struct column){.name = name, .kind = kind};
    else
        parquet->has_failed = true;
    return parquet->columns.count - 1;
}

uint32_t parquet_text(struct parquet *parquet, const char *text) {
    return strings_number(&parquet->texts, text);
}

size_t parquet_group(const struct parquet *parquet) {
    return parquet->groups.count;
}

static bool push(struct parquet *parquet, struct column *column, bool is_first, bool is_there,
                 int64_t value) {
    uint32_t *definition = array_push(&column->definitions);
    uint32_t *repetition = column->kind == PARQUET_TEXTS ? array_push(&column->repetitions) : NULL;
    int64_t *number = is_there ? array_push(&column->numbers) : NULL;
    bool is_ok =
        definition && (repetition || column->kind != PARQUET_TEXTS) && (number || !is_there);
    if (definition) *definition = is_there;
    if (repetition) *repetition = !is_first;
    if (number) *number = value;
    parquet->has_failed |= !is_ok;
    parquet->group_values++;
    column->is_put = true;
    return is_ok;
}

void parquet_put_number(struct parquet *parquet, size_t column, int64_t value) {
    push(parquet, &parquet->columns.items[column], true, true, value);
}

void parquet_put_text(struct parquet *parquet, size_t column, uint32_t text) {
    push(parquet, &parquet->columns.items[column], true, true, text);
}

void parquet_put_in_list(struct parquet *parquet, size_t column, uint32_t text) {
    struct column *list = &parquet->columns.items[column];
    push(parquet, list, !list->is_put, true, text);
}

// --- pages

static unsigned width_of(size_t count) {
    unsigned width = 1;
    while ((uint64_t)1 << width < count) width++;
    return width;
}

static size_t run_length(const uint32_t *values, size_t count) {
    size_t length = 1;
    while (length < count && values[length] == *values) length++;
    return length;
}

// Eight values, of which the last group may lack some.
static void put_packed(struct byte_buffer *out, const uint32_t *values, size_t count,
                       unsigned width) {
    uint64_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < GROUP_OF_BITS; i++) {
        bits |= (uint64_t)(i < count ? values[i] : 0) << held;
        for (held += width; held >= CHAR_BIT; held -= CHAR_BIT, bits >>= CHAR_BIT)
            byte_buffer_put_number(out, bits & UCHAR_MAX, 1);
    }
}

void parquet_put_hybrid(struct byte_buffer *out, const uint32_t *values, size_t count,
                        unsigned width) {
    const size_t value_bytes = (width + CHAR_BIT - 1) / CHAR_BIT;
    for (size_t at = 0; at < count;) {
        size_t run = run_length(values + at, count - at);
        if (run >= GROUP_OF_BITS) {
            byte_buffer_put_varint(out, (uint64_t)run << 1);
            byte_buffer_put_number(out, values[at], value_bytes);
            at += run;
            continue;
        }
        size_t end = at;
        while (end < count && run_length(values + end, count - end) < GROUP_OF_BITS)
            end += GROUP_OF_BITS;
        size_t groups = (end - at) / GROUP_OF_BITS;
        byte_buffer_put_varint(out, (uint64_t)groups << 1 | 1);
        for (; groups--; at += GROUP_OF_BITS) put_packed(out, values + at, count - at, width);
    }
}

static void put_levels(struct byte_buffer *page, const uint32_t *levels, size_t count) {
    enum { LENGTH_BYTES = 4, LEVEL_BITS = 1 };
    size_t start = page->size;
    byte_buffer_put_number(page, 0, LENGTH_BYTES);
    parquet_put_hybrid(page, levels, count, LEVEL_BITS);
    if (page->has_failed) return;
    size_t length = page->size - start - LENGTH_BYTES;
    page->size = start;
    byte_buffer_put_number(page, length, LENGTH_BYTES);
    page->size += length;
}

// The numbers of texts become indexes of the dictionary, which is the page; its size.
static size_t make_dictionary(struct parquet *parquet, struct column *column) {
    size_t count = 0;
    uint32_t *indexes = calloc(parquet->texts.list.count + 1, sizeof *indexes);
    parquet->has_failed |= !indexes;
    for (size_t i = 0; indexes && i < column->numbers.count; i++) {
        size_t text = (size_t)column->numbers.items[i];
        if (!indexes[text]) {
            const char *bytes = parquet->texts.list.items[text];
            byte_buffer_put_number(&parquet->page, strlen(bytes), sizeof(uint32_t));
            byte_buffer_put(&parquet->page, bytes, strlen(bytes));
            indexes[text] = (uint32_t)++count;
        }
        column->numbers.items[i] = indexes[text] - 1;
    }
    free(indexes);
    return count;
}

static void put_indexes(struct parquet *parquet, const struct column *column, size_t dictionary) {
    uint32_t *indexes = calloc(column->numbers.count + 1, sizeof *indexes);
    unsigned width = width_of(dictionary);
    parquet->has_failed |= !indexes;
    if (!indexes) return;
    for (size_t i = 0; i < column->numbers.count; i++)
        indexes[i] = (uint32_t)column->numbers.items[i];
    byte_buffer_put_number(&parquet->page, width, 1);
    parquet_put_hybrid(&parquet->page, indexes, column->numbers.count, width);
    free(indexes);
}

static void put_page_header(struct parquet *parquet, enum page_type type, enum encoding encoding,
                            size_t values) {
    enum { VALUES = 1, ENCODING = 2, LEVELS_DEFINITION = 3, LEVELS_REPETITION = 4 };
    struct thrift thrift = {.out = &parquet->header};
    thrift_put_integer(&thrift, PAGE_TYPE, THRIFT_I32, type);
    thrift_put_integer(&thrift, PAGE_BYTES, THRIFT_I32, (int64_t)parquet->page.size);
    thrift_put_integer(&thrift, PAGE_BYTES_COMPRESSED, THRIFT_I32, (int64_t)parquet->packed.size);
    thrift_open_struct(&thrift, type == PAGE_DATA ? PAGE_HEADER_DATA : PAGE_HEADER_DICTIONARY);
    thrift_put_integer(&thrift, VALUES, THRIFT_I32, (int64_t)values);
    thrift_put_integer(&thrift, ENCODING, THRIFT_I32, encoding);
    if (type == PAGE_DATA) {
        thrift_put_integer(&thrift, LEVELS_DEFINITION, THRIFT_I32, ENCODING_LEVELS);
        thrift_put_integer(&thrift, LEVELS_REPETITION, THRIFT_I32, ENCODING_LEVELS);
    }
    thrift_close_struct(&thrift);
    thrift_end(&thrift);
}

// What is in `page`; its offset in the file.
static uint64_t write_page(struct parquet *parquet, struct chunk *chunk, enum page_type type,
                           enum encoding encoding, size_t values) {
    struct byte_buffer *page = &parquet->page, *packed = &parquet->packed;
    uint64_t offset = parquet->offset;
    packed->size = parquet->header.size = 0;
    if (byte_buffer_reserve(packed, ZSTD_compressBound(page->size)))
        packed->size = ZSTD_compress(packed->bytes, packed->capacity, page->bytes, page->size,
                                     COMPRESSION_LEVEL);
    bool is_packed = !packed->has_failed && !ZSTD_isError(packed->size);
    parquet->has_failed |= !is_packed || page->has_failed || page->size > INT32_MAX;
    if (!parquet->has_failed) put_page_header(parquet, type, encoding, values);
    if ((parquet->has_failed |= parquet->header.has_failed)) return 0;
    fwrite(parquet->header.bytes, 1, parquet->header.size, parquet->out);
    fwrite(packed->bytes, 1, packed->size, parquet->out);
    chunk->bytes += parquet->header.size + page->size;
    chunk->compressed_bytes += parquet->header.size + packed->size;
    parquet->offset += parquet->header.size + packed->size;
    page->size = 0;
    return offset;
}

static void write_chunk(struct parquet *parquet, struct column *column) {
    struct chunk chunk = {.values = column->definitions.count};
    bool is_text = column->kind == PARQUET_TEXT || column->kind == PARQUET_TEXTS;
    size_t dictionary = is_text ? make_dictionary(parquet, column) : 0;
    if (dictionary)
        chunk.dictionary_offset =
            write_page(parquet, &chunk, PAGE_DICTIONARY, ENCODING_DICTIONARY, dictionary);
    if (column->kind == PARQUET_TEXTS)
        put_levels(&parquet->page, column->repetitions.items, column->repetitions.count);
    put_levels(&parquet->page, column->definitions.items, column->definitions.count);
    if (dictionary)
        put_indexes(parquet, column, dictionary);
    else
        for (size_t i = 0; i < column->numbers.count; i++)
            byte_buffer_put_number(&parquet->page, (uint64_t)column->numbers.items[i],
                                   sizeof(int64_t));
    chunk.data_offset =
        write_page(parquet, &chunk, PAGE_DATA, dictionary ? ENCODING_DICTIONARY : ENCODING_PLAIN,
                   column->definitions.count);
    struct chunk *slot = array_push(&parquet->chunks);
    if (slot) *slot = chunk;
    parquet->has_failed |= !slot;
    column->repetitions.count = column->definitions.count = column->numbers.count = 0;
}

static void write_group(struct parquet *parquet) {
    struct group *group = parquet->group_rows ? array_push(&parquet->groups) : NULL;
    parquet->has_failed |= parquet->group_rows && !group;
    if (!group || parquet->has_failed) return;
    *group = (struct group){.first_chunk = parquet->chunks.count, .rows = parquet->group_rows};
    for (size_t i = 0; i < parquet->columns.count && !parquet->has_failed; i++) {
        write_chunk(parquet, &parquet->columns.items[i]);
        if (!parquet->has_failed)
            group->bytes += parquet->chunks.items[group->first_chunk + i].bytes;
    }
    strings_free(&parquet->texts);
    strings_start(&parquet->texts);
    parquet->rows += parquet->group_rows;
    parquet->group_rows = parquet->group_values = 0;
}

bool parquet_end_row(struct parquet *parquet, struct error *error) {
    for (size_t i = 0; i < parquet->columns.count; i++) {
        struct column *column = &parquet->columns.items[i];
        if (!column->is_put) push(parquet, column, true, false, 0);
        column->is_put = false;
    }
    parquet->group_rows++;
    if (parquet->group_values >= GROUP_VALUES) write_group(parquet);
    bool has_failed = parquet->has_failed || parquet->texts.has_failed;
    return !has_failed || error_set(error, "no memory for rows");
}

// --- the end of the file

static void put_schema_element(struct thrift *thrift, const char *name, int type, int repetition,
                               int children, int converted) {
    thrift_open_struct(thrift, 0);
    if (type >= 0) thrift_put_integer(thrift, SCHEMA_TYPE, THRIFT_I32, type);
    if (repetition >= 0) thrift_put_integer(thrift, SCHEMA_REPETITION, THRIFT_I32, repetition);
    thrift_put_binary(thrift, SCHEMA_NAME, name);
    if (children) thrift_put_integer(thrift, SCHEMA_CHILDREN, THRIFT_I32, children);
    if (converted != CONVERTED_NONE)
        thrift_put_integer(thrift, SCHEMA_CONVERTED, THRIFT_I32, converted);
    thrift_close_struct(thrift);
}

static bool is_of_bytes(const struct column *column) {
    return column->kind == PARQUET_TEXT || column->kind == PARQUET_TEXTS;
}

// A list is a group in a group, as the format's rules for lists want it.
static void put_schema(struct thrift *thrift, const struct parquet *parquet) {
    size_t count = parquet->columns.count, elements = count + 1;
    for (size_t i = 0; i < count; i++)
        if (parquet->columns.items[i].kind == PARQUET_TEXTS) elements += 2;
    thrift_open_list(thrift, FILE_SCHEMA, THRIFT_STRUCT, elements);
    put_schema_element(thrift, "cairn", -1, -1, (int)count, CONVERTED_NONE);
    for (size_t i = 0; i < count; i++) {
        const struct column *column = &parquet->columns.items[i];
        if (column->kind == PARQUET_TEXTS) {
            put_schema_element(thrift, column->name, -1, REQUIRED, 1, CONVERTED_LIST);
            put_schema_element(thrift, "list", -1, REPEATED, 1, CONVERTED_NONE);
            put_schema_element(thrift, "element", TYPE_BYTES, REQUIRED, 0, CONVERTED_UTF8);
            continue;
        }
        int converted = column->kind == PARQUET_TEXT   ? CONVERTED_UTF8
                        : column->kind == PARQUET_TIME ? CONVERTED_TIME_MICROS
                                                       : CONVERTED_NONE;
        put_schema_element(thrift, column->name, is_of_bytes(column) ? TYPE_BYTES : TYPE_INT64,
                           OPTIONAL, 0, converted);
    }
}

static void put_path(struct thrift *thrift, const struct column *column) {
    bool is_list = column->kind == PARQUET_TEXTS;
    enum { LIST_DEPTH = 3 };
    thrift_open_list(thrift, ABOUT_PATH, THRIFT_BINARY, is_list ? LIST_DEPTH : 1);
    thrift_put_binary(thrift, 0, column->name);
    if (!is_list) return;
    thrift_put_binary(thrift, 0, "list");
    thrift_put_binary(thrift, 0, "element");
}

static void put_chunk(struct thrift *thrift, const struct column *column,
                      const struct chunk *chunk) {
    bool has_dictionary = chunk->dictionary_offset != 0;
    uint64_t first = has_dictionary ? chunk->dictionary_offset : chunk->data_offset;
    thrift_open_struct(thrift, 0);
    thrift_put_integer(thrift, CHUNK_OFFSET, THRIFT_I64, (int64_t)first);
    thrift_open_struct(thrift, CHUNK_ABOUT);
    thrift_put_integer(thrift, ABOUT_TYPE, THRIFT_I32,
                       is_of_bytes(column) ? TYPE_BYTES : TYPE_INT64);
    thrift_open_list(thrift, ABOUT_ENCODINGS, THRIFT_I32, 2);
    thrift_put_integer(thrift, 0, THRIFT_I32,
                       has_dictionary ? ENCODING_DICTIONARY : ENCODING_PLAIN);
    thrift_put_integer(thrift, 0, THRIFT_I32, ENCODING_LEVELS);
    put_path(thrift, column);
    thrift_put_integer(thrift, ABOUT_CODEC, THRIFT_I32, CODEC_ZSTD);
    thrift_put_integer(thrift, ABOUT_VALUES, THRIFT_I64, (int64_t)chunk->values);
    thrift_put_integer(thrift, ABOUT_BYTES, THRIFT_I64, (int64_t)chunk->bytes);
    thrift_put_integer(thrift, ABOUT_BYTES_COMPRESSED, THRIFT_I64,
                       (int64_t)chunk->compressed_bytes);
    thrift_put_integer(thrift, ABOUT_DATA_PAGE, THRIFT_I64, (int64_t)chunk->data_offset);
    if (has_dictionary)
        thrift_put_integer(thrift, ABOUT_DICTIONARY_PAGE, THRIFT_I64,
                           (int64_t)chunk->dictionary_offset);
    thrift_close_struct(thrift);
    thrift_close_struct(thrift);
}

static void put_groups(struct thrift *thrift, const struct parquet *parquet) {
    thrift_open_list(thrift, FILE_GROUPS, THRIFT_STRUCT, parquet->groups.count);
    for (size_t i = 0; i < parquet->groups.count; i++) {
        const struct group *group = &parquet->groups.items[i];
        thrift_open_struct(thrift, 0);
        thrift_open_list(thrift, GROUP_CHUNKS, THRIFT_STRUCT, parquet->columns.count);
        for (size_t at = 0; at < parquet->columns.count; at++)
            put_chunk(thrift, &parquet->columns.items[at],
                      &parquet->chunks.items[group->first_chunk + at]);
        thrift_put_integer(thrift, GROUP_BYTES, THRIFT_I64, (int64_t)group->bytes);
        thrift_put_integer(thrift, GROUP_ROWS, THRIFT_I64, (int64_t)group->rows);
        thrift_close_struct(thrift);
    }
}

static void write_end(struct parquet *parquet) {
    struct byte_buffer *footer = &parquet->header;
    struct thrift thrift = {.out = footer};
    footer->size = 0;
    thrift_put_integer(&thrift, FILE_VERSION_FIELD, THRIFT_I32, FILE_VERSION);
    put_schema(&thrift, parquet);
    thrift_put_integer(&thrift, FILE_ROWS, THRIFT_I64, (int64_t)parquet->rows);
    put_groups(&thrift, parquet);
    thrift_put_binary(&thrift, FILE_CREATOR, parquet->creator);
    thrift_end(&thrift);
    size_t length = footer->size;
    byte_buffer_put_number(footer, length, sizeof(uint32_t));
    byte_buffer_put(footer, magic, MAGIC_BYTES);
    parquet->has_failed |= footer->has_failed;
    if (!footer->has_failed) fwrite(footer->bytes, 1, footer->size, parquet->out);
}

bool parquet_close(struct parquet *parquet, struct error *error) {
    write_group(parquet);
    if (!parquet->has_failed) write_end(parquet);
    bool is_ok = !parquet->has_failed;
    parquet_abandon(parquet);
    return is_ok || error_set(error, "no memory for a table");
}

void parquet_abandon(struct parquet *parquet) {
    if (!parquet) return;
    for (size_t i = 0; i < parquet->columns.count; i++) {
        struct column *column = &parquet->columns.items[i];
        array_free(&column->repetitions);
        array_free(&column->definitions);
        array_free(&column->numbers);
    }
    array_free(&parquet->columns);
    array_free(&parquet->chunks);
    array_free(&parquet->groups);
    strings_free(&parquet->texts);
    byte_buffer_free(&parquet->page);
    byte_buffer_free(&parquet->packed);
    byte_buffer_free(&parquet->header);
    free(parquet);
}
