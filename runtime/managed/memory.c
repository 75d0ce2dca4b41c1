// SPDX-License-Identifier: Apache-2.0
#include "runtime/managed/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

uint32_t memory_changes;

// The process, as long as it is this one: the kernel wipes the page in forked children. Alone on
// its page.
static struct {
    _Alignas(SYS_PAGE_MOST) int32_t pid;  // (atomic) 0: not known
    bool is_wiped;                        // the kernel does so
} process;

void memory_init(void) {
    process.is_wiped =
        !sys_call(SYS_madvise, (long)&process, sizeof process, MADV_WIPEONFORK, 0, 0, 0);
}

static int process_id(void) {
    int pid = __atomic_load_n(&process.pid, __ATOMIC_RELAXED);
    if (likely(pid)) return pid;
    pid = sys_pid();
    if (process.is_wiped) __atomic_store_n(&process.pid, pid, __ATOMIC_RELAXED);
    return pid;
}

bool memory_read_carefully(uintptr_t address, void *bytes, size_t size) {
    struct iovec here = {bytes, size}, there = {(void *)address, size};
    if (!size) return true;
    if (sys_is_confined()) return false;
    return sys_call(SYS_process_vm_readv, process_id(), (long)&here, 1, (long)&there, 1, 0) ==
           (long)size;
}

static bool is_page_readable(uintptr_t page) {
    return sys_is_confined() ||  // where nothing may be asked
           sys_is_readable((const void *)(page << MEMORY_PAGE_SHIFT));
}

NOINLINE bool memory_page_look(struct memory_reader *memory, uintptr_t page) {
    uintptr_t *ways = memory->pages[page % MEMORY_PAGE_SETS];
    unsigned way = 1;
    while (way < MEMORY_PAGE_WAYS && ways[way] != page) way++;
    if (way == MEMORY_PAGE_WAYS && !is_page_readable(page)) return false;
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
