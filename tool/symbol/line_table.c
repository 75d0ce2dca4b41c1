// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol/line_table.h"

#include <dwarf.h>
#include <stdlib.h>

#define LENGTH_64_BIT 0xffffffffu    // a 64-bit length follows
#define LENGTH_RESERVED 0xfffffff0u  // from here on: not a length
#define VERSION_MIN 2
#define VERSION_MAX 5
#define FORMATS_MAX 16  // kinds of content per entry of a DWARF 5 list; five are defined

// What one field of a DWARF 5 directory or file entry means, and how it is written.
struct format {
    uint64_t content;
    uint64_t form;
};

void line_table_open(struct line_table *table, const struct image *image) {
    table->line = image_bytes(image, ".debug_line", ".zdebug_line");
    table->line_text = image_bytes(image, ".debug_line_str", ".zdebug_line_str");
    table->text = image_bytes(image, ".debug_str", ".zdebug_str");
}

void line_table_open_split(struct line_table *table, Elf *elf) {
    struct image image = IMAGE_CLOSED;
    image.elf = elf;
    if (elf_getshdrstrndx(elf, &image.string_section) < 0) image.elf = NULL;
    table->is_split = true;
    table->line = image_bytes(&image, ".debug_line.dwo", ".zdebug_line.dwo");
    table->line_text = image_bytes(&image, ".debug_line_str.dwo", ".zdebug_line_str.dwo");
    table->text = image_bytes(&image, ".debug_str.dwo", ".zdebug_str.dwo");
}

static bool add_directory(struct line_table *table, const char *name) {
    if (table->directory_count == table->directory_capacity) {
        size_t capacity = table->directory_capacity ? table->directory_capacity * 2 : 64;
        const char **grown = reallocarray(table->directories, capacity, sizeof *grown);
        if (!grown) return false;
        table->directories = grown;
        table->directory_capacity = capacity;
    }
    table->directories[table->directory_count++] = name;
    return true;
}

static bool add_file(struct line_table *table, const char *name, uint64_t directory) {
    if (table->file_count == table->file_capacity) {
        size_t capacity = table->file_capacity ? table->file_capacity * 2 : 256;
        struct line_file *grown = reallocarray(table->files, capacity, sizeof *grown);
        if (!grown) return false;
        table->files = grown;
        table->file_capacity = capacity;
    }
    table->files[table->file_count++] = (struct line_file){name, directory, NULL};
    return true;
}

// DWARF 2 to 4: texts until an empty one. Number 0 is the compile directory, and no file.
static bool read_old_lists(struct line_table *table, struct bytes *header) {
    if (!add_directory(table, NULL) || !add_file(table, NULL, 0)) return false;
    for (const char *name; (name = bytes_text(header)) && name[0];)
        if (!add_directory(table, name)) return false;
    for (const char *name; (name = bytes_text(header)) && name[0];) {
        uint64_t directory = bytes_uleb(header);
        bytes_uleb(header);  // time
        bytes_uleb(header);  // size
        if (!add_file(table, name, directory)) return false;
    }
    return true;
}

static size_t read_formats(struct bytes *header, struct format formats[FORMATS_MAX]) {
    size_t count = bytes_u8(header);
    if (count > FORMATS_MAX) bytes_fail(header);
    for (size_t i = 0; i < count && !header->is_bad; i++) {
        formats[i].content = bytes_uleb(header);
        formats[i].form = bytes_uleb(header);
    }
    return count;
}

// Reads one field; texts go to *text, numbers are returned. An unknown form ends the header, for
// its length is unknown too.
static uint64_t read_field(const struct line_table *table, struct bytes *header, uint64_t form,
                           const char **text) {
    switch (form) {
    case DW_FORM_string:
        *text = bytes_text(header);
        return 0;
    case DW_FORM_line_strp:
        *text = bytes_text_at(&table->line_text, bytes_number(header, table->offset_bytes));
        return 0;
    case DW_FORM_strp:
        *text = bytes_text_at(&table->text, bytes_number(header, table->offset_bytes));
        return 0;
    case DW_FORM_udata:
        return bytes_uleb(header);
    case DW_FORM_data1:
        return bytes_u8(header);
    case DW_FORM_data2:
        return bytes_number(header, 2);
    case DW_FORM_data4:
        return bytes_number(header, 4);
    case DW_FORM_data8:
        return bytes_number(header, 8);
    case DW_FORM_data16:
        bytes_skip(header, 16);
        return 0;
    case DW_FORM_block:
        bytes_skip(header, bytes_uleb(header));
        return 0;
    default:
        bytes_fail(header);
        return 0;
    }
}

// DWARF 5: one list of directories or files that says itself what its entries hold.
static bool read_list(struct line_table *table, struct bytes *header, bool is_files) {
    struct format formats[FORMATS_MAX] = {{0}};
    size_t format_count = read_formats(header, formats);
    uint64_t count = bytes_uleb(header);
    if (!format_count && count) bytes_fail(header);
    for (; count && !header->is_bad && bytes_left(header); count--) {
        const char *name = NULL, *other = NULL;
        uint64_t directory = 0;
        for (size_t i = 0; i < format_count; i++) {
            bool is_name = formats[i].content == DW_LNCT_path;
            uint64_t value = read_field(table, header, formats[i].form, is_name ? &name : &other);
            if (formats[i].content == DW_LNCT_directory_index) directory = value;
        }
        if (header->is_bad) break;
        if (is_files ? !add_file(table, name, directory) : !add_directory(table, name))
            return false;
    }
    return true;
}

// The part of the section that is this unit's table; also learns whether offsets have 8 bytes.
static struct bytes table_bytes(struct line_table *table, uint64_t offset) {
    struct bytes all = table->line;
    bytes_skip(&all, offset);
    uint64_t length = bytes_number(&all, 4);
    table->offset_bytes = length == LENGTH_64_BIT ? 8 : 4;
    if (length == LENGTH_64_BIT)
        length = bytes_number(&all, 8);
    else if (length >= LENGTH_RESERVED)
        bytes_fail(&all);
    if (all.is_bad || length > bytes_left(&all)) return (struct bytes){0};
    return (struct bytes){all.at, all.at + length, false};
}

static bool read_header(struct line_table *table, struct bytes *whole) {
    table->version = (uint16_t)bytes_number(whole, 2);
    if (table->version < VERSION_MIN || table->version > VERSION_MAX) return true;
    if (table->version >= 5) bytes_skip(whole, 2);  // sizes of addresses and segments
    uint64_t header_bytes = bytes_number(whole, table->offset_bytes);
    if (whole->is_bad || header_bytes > bytes_left(whole)) return true;
    struct bytes header = {whole->at, whole->at + header_bytes, false};
    table->instruction_bytes = bytes_u8(&header);
    if (table->version >= 4) bytes_u8(&header);  // operations per instruction: 1 but for VLIW
    bytes_u8(&header);                           // is_stmt by default
    table->line_base = (int8_t)bytes_u8(&header);
    table->line_range = bytes_u8(&header);
    table->opcode_base = bytes_u8(&header);
    for (size_t i = 1; i < table->opcode_base; i++) table->opcode_lengths[i] = bytes_u8(&header);
    if (header.is_bad || !table->line_range || !table->opcode_base) return true;
    bool is_read = table->version < 5
                       ? read_old_lists(table, &header)
                       : read_list(table, &header, false) && read_list(table, &header, true);
    table->program = (struct bytes){whole->at + header_bytes, whole->end, false};
    return is_read;
}

bool line_table_read(struct line_table *table, Dwarf_Die *unit) {
    table->program = (struct bytes){0};
    table->directory_count = 0;
    table->file_count = 0;
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;
    table->compile_directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    if (!table->is_split && dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attribute), &offset))
        return true;
    struct bytes whole = table_bytes(table, offset);
    size_t table_size = bytes_left(&whole);
    if (!table_size || !effort_spend(table->effort, table_size)) return true;
    return read_header(table, &whole);
}

bool line_table_file(struct line_table *table, uint64_t number, struct store *names,
                     const char **path) {
    *path = NULL;
    if (number >= table->file_count || !table->files[number].name) return true;
    struct line_file *file = &table->files[number];
    if (!file->path) {
        const char *directory = table->compile_directory;
        if (file->directory < table->directory_count && table->directories[file->directory])
            directory = store_path(names, directory, table->directories[file->directory]);
        file->path = store_path(names, directory, file->name);
    }
    *path = file->path;
    return *path;
}

void line_table_close(struct line_table *table) {
    free(table->directories);
    free(table->files);
    *table = (struct line_table){0};
}
