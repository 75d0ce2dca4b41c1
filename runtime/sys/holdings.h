// SPDX-License-Identifier: Apache-2.0
// The address space that cairn holds in this process, whatever it uses of it. Those who do to the
// program's memory what the kernel would do to all (preload/locked.c) leave it out.
//
// Addresses and sizes are whole pages. Any thread may add and remove, signal handlers included. A
// forked child has its parent's.
#ifndef RUNTIME_SYS_HOLDINGS_H
#define RUNTIME_SYS_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// False if the list is full: then holdings_extend, and once more. Memory that is never added passes
// for the program's.
bool holdings_add(uintptr_t start, size_t bytes);
void holdings_remove(uintptr_t start, size_t bytes);

// Gives the list zeroed memory for more. False if it does not take it.
enum { HOLDINGS_PIECE_BYTES = 64 << 10 };
bool holdings_extend(void *memory);

uint64_t holdings_bytes(void);

// Finds the lowest stretch that ends beyond `from`, or a part of it. False: there is none.
bool holdings_next(uintptr_t from, uintptr_t *start, uintptr_t *end);

#endif
