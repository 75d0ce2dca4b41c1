// SPDX-License-Identifier: Apache-2.0
// The blocks of a process that cairn has not seen the allocation of: what glibc's allocator has
// handed out, by reading its own data. Each has a kind, by the word that it begins with: the class
// whose vtable that points to, else the symbol in memory that the program does not write.
//
// A block that a thread was in the middle of allocating or freeing when the process was stopped may
// be there or not.
#ifndef TOOL_ATTACH_CENSUS_H
#define TOOL_ATTACH_CENSUS_H

#include "format/attachment.h"
#include "tool/attach/heap_copy.h"
#include "tool/model/index_table.h"

// Who knows symbols: the one at this address (as the file spells it) or NULL; and how a person
// spells it, for free().
struct census_names {
    const char *(*symbol_at)(void *context, uint64_t address);
    void *context;
    char *(*readable)(const char *symbol);
};

struct word_kind {
    uint64_t word;
    uint32_t kind;
};

struct census {
    const struct remote *remote;
    struct census_names names;
    struct heap_copy copy;
    ARRAY(struct cairn_census_block) blocks;
    uint64_t room_bytes;    // of all of them
    uint64_t broken_count;  // places where the allocator's data made no sense
    ARRAY(char *) kinds;
    ARRAY(struct word_kind) words;  // what begins blocks and was looked up
    struct index_table word_table;
};

// `libc_start`, `libc_end`: the module that the process' malloc is in.
void census_open(struct census *census, const struct remote *remote, uint64_t libc_start,
                 uint64_t libc_end, const struct census_names *names);
void census_close(struct census *census);

// Bytes of the allocator's memory that have to be read while the process is stopped.
bool census_measure(struct census *census, uint64_t *bytes, struct error *error);

// Finds the blocks. The first time may be while the process runs, to have everything at hand that
// the second one, while it is stopped, needs.
bool census_take(struct census *census, struct error *error);

// Before another census_take.
void census_clear(struct census *census);

// The names of the group and of all kinds, as `count` wants them (format/attachment.h); for free().
// NULL without memory.
char *census_texts(const struct census *census, size_t *bytes);

#endif
