// SPDX-License-Identifier: Apache-2.0
// Reading the interpreter's memory, whatever its words say: by a system call that fails where there
// is none, or directly once the page was found readable. That holds as long as the interpreter
// keeps its objects: what a thread that may run Python code reaches does not vanish meanwhile.
// Where it may, all is read by system calls.
#ifndef RUNTIME_PYTHON_READ_H
#define RUNTIME_PYTHON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

enum { PYTHON_PAGE_SETS = 256, PYTHON_PAGE_WAYS = 4, PYTHON_PAGE_SHIFT = 12 };

// One owner.
struct python_memory {
    // Numbers of pages that are readable, the last one used of each set in front.
    uintptr_t pages[PYTHON_PAGE_SETS][PYTHON_PAGE_WAYS];
    bool is_careful;  // nothing is trusted to stay
};

// True if the bytes could be read, all of them.
bool python_read_carefully(uintptr_t address, void *bytes, size_t size);

// True if the page can be read; it is known from then on, and in front of its set.
bool python_page_look(struct python_memory *memory, uintptr_t page);

ALWAYS_INLINE bool python_is_page_known(struct python_memory *memory, uintptr_t page) {
    return likely(memory->pages[page % PYTHON_PAGE_SETS][0] == page) ||
           python_page_look(memory, page);
}

// Up to a page, at an address that is a multiple of 8.
ALWAYS_INLINE bool python_read(struct python_memory *memory, uintptr_t address, void *bytes,
                               size_t size) {
#if defined(__aarch64__)
    const unsigned user_bits = 48;
#else
    const unsigned user_bits = 47;
#endif
    if (unlikely(address < SYS_PAGE_LEAST || address >> user_bits || address % sizeof address))
        return false;
    if (unlikely(memory->is_careful || size > SYS_PAGE_LEAST))
        return python_read_carefully(address, bytes, size);
    uintptr_t first = address >> PYTHON_PAGE_SHIFT;
    uintptr_t last = (address + size - !!size) >> PYTHON_PAGE_SHIFT;
    if (!python_is_page_known(memory, first)) return false;
    if (unlikely(last != first) && !python_is_page_known(memory, last)) return false;
    __builtin_memcpy(bytes, (const void *)address, size);
    return true;
}

ALWAYS_INLINE bool python_read_word(struct python_memory *memory, uintptr_t address,
                                    uint64_t *word) {
    return python_read(memory, address, word, sizeof *word);
}

// A number of 4 bytes, or of one, out of the word that it is in.
ALWAYS_INLINE bool python_read_part(struct python_memory *memory, uintptr_t address, uint32_t mask,
                                    uint32_t *value) {
    const unsigned bits = 8;
    uintptr_t aside = address % sizeof(uint64_t);
    uint64_t word;
    if (!python_read_word(memory, address - aside, &word)) return false;
    *value = (uint32_t)(word >> aside * bits) & mask;
    return true;
}

#endif
