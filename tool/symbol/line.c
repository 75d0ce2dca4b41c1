// SPDX-License-Identifier: Apache-2.0
// The program of a line table makes rows (address, file, line) in sequences of rising addresses.
// Rows are not kept: a row answers the requests from its address up to the next row's, and both
// rows and requests are in order, so one pass answers all.
#include "tool/symbol/line.h"

#include <dwarf.h>

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
    struct store *names;
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
               size_t count, struct store *names) {
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
