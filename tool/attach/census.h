// SPDX-License-Identifier: Apache-2.0
// The blocks of a process that cairn has not seen the allocation of: what glibc's allocator has
// handed out, by reading its own data. Each has a kind, by the word that it begins with: what
// tool/core/types.h says of it, by the process' own memory and the files that are mapped there.
//
// There are at most CAIRN_CENSUS_KINDS_MAX kinds. Classes may take all of them, other names half:
// places without a symbol can be many. Blocks beyond that are of an unknown type.
//
// A block that a thread was in the middle of allocating or freeing when the process was stopped may
// be there or not.
#ifndef TOOL_ATTACH_CENSUS_H
#define TOOL_ATTACH_CENSUS_H

#include "format/attachment.h"
#include "tool/attach/heap_copy.h"
#include "tool/core/types.h"
#include "tool/model/index_table.h"

struct census {
    const struct remote *remote;
    struct heap_copy copy;
    struct core_image files;  // what is mapped of files, not copied: it is read where it lies
    struct core_types *types;
    ARRAY(struct cairn_census_block) blocks;
    uint64_t room_bytes;            // of all of them
    uint64_t broken_count;          // places where the allocator's data made no sense
    ARRAY(const char *) kinds;      // names
    struct index_table kind_table;  // by the address of the name
};

// `libc_start`, `libc_end`: the module that the process' malloc is in. What is mapped of files is
// noted as it is now. `remote` and `symbols` must outlive the census. Close it even after an error.
bool census_open(struct census *census, const struct remote *remote, uint64_t libc_start,
                 uint64_t libc_end, const struct symbol_options *symbols, struct error *error);
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
