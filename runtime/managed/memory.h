// SPDX-License-Identifier: Apache-2.0
// Reading a runtime's memory, whatever its words say: by a system call that fails where there is
// none, or directly once the page was found readable. That holds as long as the runtime keeps its
// objects: what a thread's own frames reach does not vanish meanwhile. Where it may, all is read by
// system calls. What is found by way of caches may be older than that: pages are forgotten when
// the program takes memory away (memory_changes).
#ifndef RUNTIME_MANAGED_MEMORY_H
#define RUNTIME_MANAGED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sys/sys.h"

enum { MEMORY_PAGE_SETS = 256, MEMORY_PAGE_WAYS = 4, MEMORY_PAGE_SHIFT = 12 };
enum { MEMORY_COPIES = 16, MEMORY_PAGE_BYTES = 1 << MEMORY_PAGE_SHIFT };

// Pages as they were when they were first read in an event, so that the many words which stay as
// they are while it lasts (the frames of a thread, all on a few pages) take one system call a page.
struct memory_copies {
    uintptr_t pages[MEMORY_COPIES];  // numbers; 0: none
    uint32_t count, oldest;          // of pages; which is replaced next once all are used
    uint64_t bytes[MEMORY_COPIES][MEMORY_PAGE_BYTES / sizeof(uint64_t)];
};

// One owner.
struct memory_reader {
    // Numbers of pages that are readable, the last one used of each set in front.
    uintptr_t pages[MEMORY_PAGE_SETS][MEMORY_PAGE_WAYS];
    struct memory_copies *copies;  // what is careful reads from these; NULL: each by a call
    uint32_t changes;              // memory_changes, when they were found to be
    bool is_careful;               // nothing is trusted to stay
    bool is_trusting;  // where nothing may be asked (seccomp), pages count as readable; without it
                       // they count as not
};

// (atomic) Counts the calls by which the program takes memory away that was readable, before and
// after they are made.
extern HIDDEN uint32_t memory_changes;

ALWAYS_INLINE void memory_note_change(void) {
    __atomic_fetch_add(&memory_changes, 1, __ATOMIC_ACQ_REL);
}

// Where the number of this process may be kept: the kernel makes 0 of it in forked children. NULL:
// nowhere, it is asked for each time.
void memory_remember_pid(int32_t *wiped);
// The number of this process.
int memory_process_id(void);

// Pages that may be gone are no longer known. Before the frames of an event are read, where a
// runtime gives memory back.
void memory_begin(struct memory_reader *memory);

// True if the bytes could be read, all of them.
bool memory_read_carefully(uintptr_t address, void *bytes, size_t size);
// The same, by copies of pages where the reader has some.
bool memory_read_copied(struct memory_reader *memory, uintptr_t address, void *bytes, size_t size);
// Another event: what was copied may have changed.
ALWAYS_INLINE void memory_forget_copies(struct memory_reader *memory) {
    if (likely(memory->copies)) memory->copies->count = 0;
}

// True if the page can be read; it is known from then on, and in front of its set.
bool memory_page_look(struct memory_reader *memory, uintptr_t page);

ALWAYS_INLINE bool memory_is_page_known(struct memory_reader *memory, uintptr_t page) {
    return likely(memory->pages[page % MEMORY_PAGE_SETS][0] == page) ||
           memory_page_look(memory, page);
}

// Up to a page, at an address that is a multiple of 8.
ALWAYS_INLINE bool memory_read(struct memory_reader *memory, uintptr_t address, void *bytes,
                               size_t size) {
#if defined(__aarch64__)
    const unsigned user_bits = 48;
#else
    const unsigned user_bits = 47;
#endif
    if (unlikely(address < SYS_PAGE_LEAST || address >> user_bits || address % sizeof address))
        return false;
    if (unlikely(memory->is_careful || size > SYS_PAGE_LEAST))
        return memory_read_copied(memory, address, bytes, size);
    uintptr_t first = address >> MEMORY_PAGE_SHIFT;
    uintptr_t last = (address + size - !!size) >> MEMORY_PAGE_SHIFT;
    if (!memory_is_page_known(memory, first)) return false;
    if (unlikely(last != first) && !memory_is_page_known(memory, last)) return false;
    __builtin_memcpy(bytes, (const void *)address, size);
    return true;
}

ALWAYS_INLINE bool memory_read_word(struct memory_reader *memory, uintptr_t address,
                                    uint64_t *word) {
    return memory_read(memory, address, word, sizeof *word);
}

// A number of 4 bytes, or of one, out of the word that it is in.
ALWAYS_INLINE bool memory_read_part(struct memory_reader *memory, uintptr_t address, uint32_t mask,
                                    uint32_t *value) {
    const unsigned bits = 8;
    uintptr_t aside = address % sizeof(uint64_t);
    uint64_t word;
    if (!memory_read_word(memory, address - aside, &word)) return false;
    *value = (uint32_t)(word >> aside * bits) & mask;
    return true;
}

#endif
