// SPDX-License-Identifier: Apache-2.0
#include "runtime/managed/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

uint32_t memory_changes;

static int32_t *known_pid;  // (atomic) 0: not known; NULL: not remembered

void memory_remember_pid(int32_t *wiped) {
    known_pid = wiped;
}

int memory_process_id(void) {
    if (unlikely(!known_pid)) return sys_pid();
    int pid = __atomic_load_n(known_pid, __ATOMIC_RELAXED);
    if (likely(pid)) return pid;
    pid = sys_pid();
    __atomic_store_n(known_pid, pid, __ATOMIC_RELAXED);
    return pid;
}

bool memory_read_carefully(uintptr_t address, void *bytes, size_t size) {
    struct iovec here = {bytes, size}, there = {(void *)address, size};
    if (!size) return true;
    if (sys_is_confined()) return false;
    return sys_call(SYS_process_vm_readv, memory_process_id(), (long)&here, 1, (long)&there, 1,
                    0) == (long)size;
}

// NULL: it cannot be read.
static const char *copy_of(struct memory_copies *copies, uintptr_t page) {
    uint32_t slot = 0;
    while (slot < copies->count && copies->pages[slot] != page) slot++;
    if (likely(slot < copies->count)) return (const char *)copies->bytes[slot];
    if (slot == MEMORY_COPIES) slot = copies->oldest++ % MEMORY_COPIES;
    copies->pages[slot] = 0;
    compiler_barrier();
    if (!memory_read_carefully(page << MEMORY_PAGE_SHIFT, copies->bytes[slot], MEMORY_PAGE_BYTES))
        return NULL;
    compiler_barrier();
    copies->pages[slot] = page;
    if (slot == copies->count) copies->count++;
    return (const char *)copies->bytes[slot];
}

NOINLINE bool memory_read_copied(struct memory_reader *memory, uintptr_t address, void *bytes,
                                 size_t size) {
    char *out = bytes;
    if (!memory->is_careful || !memory->copies) return memory_read_carefully(address, bytes, size);
    while (size) {
        const char *copy = copy_of(memory->copies, address >> MEMORY_PAGE_SHIFT);
        size_t at = address % MEMORY_PAGE_BYTES, piece = MEMORY_PAGE_BYTES - at;
        if (piece > size) piece = size;
        if (!copy) return false;
        memcpy(out, copy + at, piece);
        out += piece;
        address += piece;
        size -= piece;
    }
    return true;
}

static bool is_page_readable(const struct memory_reader *memory, uintptr_t page) {
    if (sys_is_confined()) return memory->is_trusting;
    return sys_is_readable((const void *)(page << MEMORY_PAGE_SHIFT));
}

NOINLINE bool memory_page_look(struct memory_reader *memory, uintptr_t page) {
    uintptr_t *ways = memory->pages[page % MEMORY_PAGE_SETS];
    unsigned way = 1;
    while (way < MEMORY_PAGE_WAYS && ways[way] != page) way++;
    if (way == MEMORY_PAGE_WAYS && !is_page_readable(memory, page)) return false;
    if (way == MEMORY_PAGE_WAYS) way--;
    for (; way > 0; way--) ways[way] = ways[way - 1];
    ways[0] = page;
    return true;
}

void memory_begin(struct memory_reader *memory) {
    uint32_t changes = __atomic_load_n(&memory_changes, __ATOMIC_ACQUIRE);
    if (likely(memory->changes == changes)) return;
    memset(memory->pages, 0, sizeof memory->pages);
    memory->changes = changes;
}
