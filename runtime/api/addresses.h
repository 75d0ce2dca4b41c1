// SPDX-License-Identifier: Apache-2.0
// A table by address, of pools (pool.h) and arenas (arena.h), in memory of cairn's: open addressing
// with linear probing. Taking an entry out moves later ones up, so that no marks stay, and makes
// pointers to entries stale, as adding does.
//
// Entries are structures of one size that begin with their key: the complement of an address, so
// that leak scanners take nothing here for a pointer. 0: no entry.
#ifndef RUNTIME_API_ADDRESSES_H
#define RUNTIME_API_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addresses {
    uint8_t *entries;
    size_t entry_bytes;
    uint64_t slots, used;  // a power of two; at most three quarters are used
};

static inline uint64_t addresses_key(uintptr_t address) {
    return ~(uint64_t)address;
}

// False without memory: then nothing is in it, and nothing can be added.
bool addresses_open(struct addresses *table, size_t entry_bytes);
void addresses_close(struct addresses *table);

// Puts in order, in a forked child, what another thread may have changed while the kernel copied
// one page after the other: entries that are there twice, or where no search finds them, and their
// number. Nothing is in it afterwards if there is no memory.
void addresses_renew(struct addresses *table);

// The entry; NULL: there is none.
void *addresses_find(const struct addresses *table, uint64_t key);

// The entry, or a new one of zeros but for its key; NULL without memory, or without a key.
void *addresses_add(struct addresses *table, uint64_t key);

// The entry after `entry`, or the first one after NULL, in any order; NULL: there is no other.
void *addresses_next(const struct addresses *table, const void *entry);

// Takes out an entry that was found.
void addresses_drop(struct addresses *table, void *entry);

#endif
