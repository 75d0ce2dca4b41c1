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

static int process_id(void) {
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
    return sys_call(SYS_process_vm_readv, process_id(), (long)&here, 1, (long)&there, 1, 0) ==
           (long)size;
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
