// SPDX-License-Identifier: Apache-2.0
// Allocators by name (--wrap) in a process that is attached to. The library has a way to its hook
// for each of CAIRN_WRAP_FUNCTIONS functions, and a table of what the hook calls then. The tool
// finds the functions, leads slots of the GOT to the ways (got_patch.h) or writes jumps (patch.h),
// once all functions of a heap are there, and fills in the table.
//
// Code of the program may have read a slot and come to a way whenever it likes, even after the tool
// has left: so a way stays that of its function for as long as the process lives, and the table is
// kept when the library is stopped.
#ifndef TOOL_ATTACH_WRAPPED_H
#define TOOL_ATTACH_WRAPPED_H

#include "tool/attach/session.h"

// Reads rows (format/wrap.h) as wishes, with way 1; `heaps` or NULL.
size_t wrapped_read(const char *rows, struct entry_wish wishes[CAIRN_WRAP_FUNCTIONS],
                    uint8_t heaps[CAIRN_WRAP_FUNCTIONS]);

// Takes up the rows (NULL: none), and finds functions of the executable among them. False, with a
// clause that begins with its name: one of them cannot be led.
bool wrapped_open(struct attach *attach, const char *rows, struct error *error);

// The rows of a tool that has not left, or of the process that this one is a fork of, from the
// library's settings.
void wrapped_recover(struct attach *attach);

// Of a fork that records, and goes on with the rows of its parent: heaps that were complete there
// are so here, and others may become so.
void wrapped_inherit(struct attach *attach);

// The library is loaded: gives each function its way.
bool wrapped_choose_ways(struct attach *attach, struct error *error);

// The functions of attach->slots were found: those of heaps that are complete get their hooks.
void wrapped_lead(struct attach *attach);

// Fills in the table, and says how many slots lead to each function. The process is stopped.
void wrapped_tell(struct attach *attach);
void wrapped_count(const struct attach *attach);

// The table around a stop of the library, which forgets it.
struct wrapped_table {
    uint64_t actual[CAIRN_WRAP_FUNCTIONS];
};
void wrapped_keep(const struct attach *attach, struct wrapped_table *table);
void wrapped_put_back(const struct attach *attach, const struct wrapped_table *table);

// The first function or variable that is not there; NULL: all are.
const struct entry_wish *wrapped_missing(const struct attach *attach);

#endif
