// SPDX-License-Identifier: Apache-2.0
// Guard bands around a block, and the table of blocks that have them (format/bands.h has both as
// they lie in memory).
//
// The band behind begins right after the last byte, so that a single byte too many is seen. What a
// block is like stands in a table beside the heap, not in the block: a program that writes before
// its block cannot destroy it.
//
// An entry has one owner at a time. BANDS_OWNED: the thread that has the block. BANDS_CHECKED: a
// thread that looks at all blocks reads its bands, so that its memory must not go. Who frees it
// meanwhile leaves it behind (BANDS_LEFT) for that thread to free. Nobody waits.
#ifndef RUNTIME_GUARD_BANDS_H
#define RUNTIME_GUARD_BANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/bands.h"

// Bytes of a band: set once, a multiple of 16.
void bands_open(uint32_t band_bytes);

// Where the table begins, for the tool: BANDS_TOPS pointers.
const void *bands_tops(void);

// What has to be asked of the allocator for a block: the whole, and where in it the block begins.
// False: too much. `alignment` is a power of two.
bool bands_plan(size_t size, size_t alignment, size_t *whole_bytes, size_t *front_bytes);

// Paints both bands and enters the block. False without memory for the entry.
bool bands_put(uintptr_t address, size_t size, size_t alignment);

// The entry of a block with bands; NULL: it has none.
struct bands_entry *bands_find(uintptr_t address);
struct bands_block bands_block(uintptr_t address, uint64_t word);

// Takes the block out: the word that it had, or 0 if it is being looked at and was left behind.
uint64_t bands_take(struct bands_entry *entry);

// What has changed in a block's bands. True if anything.
bool bands_compare(const struct bands_block *block, struct cairn_overrun *overrun);

// Calls `look` for each block, one after the other, which stays where it is meanwhile; what it says
// becomes BANDS_TOLD. `release` is given blocks that were left behind.
struct bands_visitor {
    bool (*look)(const struct bands_block *block, const struct bands_entry *entry, bool is_told,
                 void *context);
    void (*release)(void *memory);
    void *context;
};
void bands_each(const struct bands_visitor *visitor);

#endif
