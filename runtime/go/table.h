// SPDX-License-Identifier: Apache-2.0
// What a Go program says of its functions (pclntab, in the form of Go 1.18 and later): where each
// begins, its name, and how large its frame is at an instruction. The table and the record of the
// module that leads to it are found by their first words, so that a stripped program has them too.
#ifndef RUNTIME_GO_TABLE_H
#define RUNTIME_GO_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/managed/memory.h"
#include "runtime/sys/object.h"

// Addresses; what they lead to is read as foreign memory.
struct go_table {
    uint64_t text, text_end;  // code that Go compiled
    uint64_t names, values, functions;
    uint64_t function_count;
};

enum { GO_NAME_BYTES = 40 };

struct go_function {
    uint64_t start;
    int32_t frame_bytes;       // from the stack pointer to the return address
    char name[GO_NAME_BYTES];  // cut
};

enum go_table_state {
    GO_TABLE_ABSENT,   // it is no Go
    GO_TABLE_UNKNOWN,  // of a version whose table has another form
    GO_TABLE_READ,
};

// Looks through what the object has in memory. `minor`: 19 of Go 1.19, 0: not said.
enum go_table_state go_table_find(struct memory_reader *memory, const struct object *object,
                                  struct go_table *table, uint32_t *minor);

// The function that the instruction at an address is of; false: of none.
bool go_table_look_up(struct memory_reader *memory, const struct go_table *table, uint64_t pc,
                      struct go_function *function);

#endif
