// SPDX-License-Identifier: Apache-2.0
// What frames of a recording that have no address belong to, numbered, each once by what it says:
// pieces of Python code, and names that stand for no code. Texts are copies.
#ifndef TOOL_MODEL_CODES_H
#define TOOL_MODEL_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/base/array.h"
#include "tool/model/index_table.h"
#include "tool/model/reader.h"

struct code {
    const char *function;  // as Python has it, "Class.method"; "" for code that is not known
    const char *file;
    uint32_t first_line;
    bool is_name;       // no code: `function` is the name, which needs no other one
    uint64_t identity;  // hash of function and file; the same in every run
};

struct code_number {
    uint32_t number, index;
};

struct codes {
    ARRAY(struct code) list;
    struct index_table table;
    ARRAY(struct code_number) numbers;  // of the recording's records
    struct index_table number_table;
    uint64_t read_bytes;
};

void codes_free(struct codes *codes);

enum codes_result { CODES_OK, CODES_DAMAGED, CODES_NO_MEMORY };

// Index of the code whose record is that number of the recording (format.h, CAIRN_CODE_PYTHON).
enum codes_result codes_read(struct codes *codes, const struct recording *recording,
                             uint32_t number, uint32_t *index);

// Index of the name at that offset of STRINGS (format.h, CAIRN_CODE_NAME).
enum codes_result codes_of_name(struct codes *codes, struct recording *recording, uint32_t offset,
                                uint32_t *index);

// Index of a code that says the same, which is added if there is none. False without memory.
bool codes_add(struct codes *codes, const struct code *wanted, uint32_t *index);

#endif
