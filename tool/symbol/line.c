// SPDX-License-Identifier: Apache-2.0
// The program of a line table makes rows (address, file, line) in sequences of rising addresses.
// Rows are not kept: a row answers the requests from its address up to the next row's, and both
// rows and requests are in order, so one pass answers all.
#include "tool/symbol/line.h"

#include <dwarf.h>
#include <stdlib.h>

struct row {
    uint64_t address;
    uint64_t file;
    uint64_t line;
};

struct run {
    struct line_table *table;
    const struct image *image;
    struct request *requests;
    size_t count;
    struct string_pool *names;
    struct row now;
    struct row last;  // last row of the sequence
    bool has_last;
    bool is_code;  // the sequence begins in code: it is not of a removed function
    size_t next;   // first request that is not below the last row
    bool is_failed;
};

static const struct row first_row = {.file = 1, .line = 1};

static void answer(struct run *run, struct request *request) {
    if (request->has_line) return;
    request->has_line = true;
    request->line = run->last.line <= UINT32_MAX ? (uint32_t)run->last.line : 0;
    if (!line_table_file(run->table, run->last.file, run->names, &request->file))
        run->is_failed = true;
}

static void begin_sequence(struct run *run) {
    run->next = request_lower_bound(run->requests, run->count, run->now.address);
    run->is_code = image_is_code(run->image, run->now.address);
}

static void add_row(struct run *run) {
    if (!run->has_last || run->now.address < run->last.address) {
        begin_sequence(run);
    } else if (run->is_code) {
        while (run->next < run->count && run->requests[run->next].address < run->now.address &&
               effort_spend(run->table->effort, 1))
            answer(run, &run->requests[run->next++]);
    }
    run->last = run->now;
    run->has_last = true;
}

static void end_sequence(struct run *run) {
    add_row(run);
    run->has_last = false;
    run->now = first_row;
}

static void advance(struct run *run, uint64_t operations) {
    run->now.address += operations * run->table->instruction_bytes;
}

static void run_extended(struct run *run, struct bytes *program) {
    uint64_t length = bytes_uleb(program);
    if (!length || length > bytes_left(program)) {
        bytes_fail(program);
        return;
    }
    struct bytes operands = {program->at, program->at + length, false};
    program->at += length;
    switch (bytes_u8(&operands)) {
    case DW_LNE_end_sequence:
        end_sequence(run);
        break;
    case DW_LNE_set_address:
        run->now.address = bytes_number(&operands, bytes_left(&operands));
        break;
    default:
        break;
    }
}

static void run_standard(struct run *run, struct bytes *program, uint8_t opcode) {
    const struct line_table *table = run->table;
    switch (opcode) {
    case DW_LNS_copy:
        add_row(run);
        break;
    case DW_LNS_advance_pc:
        advance(run, bytes_uleb(program));
        break;
    case DW_LNS_advance_line:
        run->now.line += (uint64_t)bytes_sleb(program);
        break;
    case DW_LNS_set_file:
        run->now.file = bytes_uleb(program);
        break;
    case DW_LNS_const_add_pc:
        advance(run, (UINT8_MAX - table->opcode_base) / table->line_range);
        break;
    case DW_LNS_fixed_advance_pc:
        run->now.address += bytes_number(program, 2);
        break;
    default:
        for (size_t i = 0; i < table->opcode_lengths[opcode]; i++) bytes_uleb(program);
        break;
    }
}

static void run_special(struct run *run, uint8_t opcode) {
    uint8_t adjusted = (uint8_t)(opcode - run->table->opcode_base);
    advance(run, adjusted / run->table->line_range);
    run->now.line += (uint64_t)(run->table->line_base + adjusted % run->table->line_range);
    add_row(run);
}

bool line_find(struct line_table *table, const struct image *image, struct request *requests,
               size_t count, struct string_pool *names) {
    struct run run = {.table = table,
                      .image = image,
                      .requests = requests,
                      .count = count,
                      .names = names,
                      .now = first_row};
    struct bytes program = table->program;
    while (bytes_left(&program) && !run.is_failed) {
        uint8_t opcode = bytes_u8(&program);
        if (opcode >= table->opcode_base)
            run_special(&run, opcode);
        else if (opcode)
            run_standard(&run, &program, opcode);
        else
            run_extended(&run, &program);
    }
    return !run.is_failed;
}

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

bool line_table_file(struct line_table *table, uint64_t number, struct string_pool *names,
                     const char **path) {
    *path = NULL;
    if (number >= table->file_count || !table->files[number].name) return true;
    struct line_file *file = &table->files[number];
    if (!file->path) {
        const char *directory = table->compile_directory;
        if (file->directory < table->directory_count && table->directories[file->directory])
            directory = string_pool_path(names, directory, table->directories[file->directory]);
        file->path = string_pool_path(names, directory, file->name);
    }
    *path = file->path;
    return *path;
}

void line_table_close(struct line_table *table) {
    free(table->directories);
    free(table->files);
    *table = (struct line_table){0};
}
